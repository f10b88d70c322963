/** The meaning of an error of a call to the hub. */
import { ConfigError } from "../../../host/config/config-error.ts";
import { ApiError } from "../../../host/kubernetes/kube-api.ts";
import { errnoOf, messageOf } from "../../../host/lib/describe.ts";
import type { SourceReason } from "../../../host/resources/pool-source.ts";
import { SourceFailure } from "./block-source.ts";

/** Most causes of one error that are searched. */
const MAX_DEPTH = 8;

/** Codes with which TLS refuses a server. */
const NOT_TRUSTED = /^(?:CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERR_TLS_|ERR_SSL_)/;

export function hubFailure(error: unknown): SourceFailure {
  return error instanceof SourceFailure ? error : new SourceFailure(reasonOf(error), messageOf(error), error);
}

function reasonOf(error: unknown): SourceReason {
  if (error instanceof ConfigError) return "OtherVersion";
  if (error instanceof ApiError) return reasonOfAnswer(error);
  return isNotTrusted(error) ? "HubNotTrusted" : "HubAway";
}

/** A server without the kind answers a page that is no Status. */
function reasonOfAnswer({ status, reason }: ApiError): SourceReason {
  if (status === 401) return "TokenRefused";
  if (status === 403) return "Forbidden";
  if (status === 404) return reason === "NotFound" ? "NoRange" : "OtherVersion";
  return status === 422 || status === 400 ? "OtherVersion" : "HubAway";
}

function isNotTrusted(error: unknown): boolean {
  let each: unknown = error;
  for (let depth = 0; depth < MAX_DEPTH && each instanceof Error; depth++) {
    if (NOT_TRUSTED.test(errnoOf(each) ?? "")) return true;
    each = each instanceof AggregateError ? each.errors[0] : each.cause;
  }
  return false;
}
