import { expect, it } from "vitest";
import { ConfigError } from "../../../../../host/config/config-error.ts";
import { ApiError, ApiUnavailable } from "../../../../../host/kubernetes/kube-api.ts";
import type { SourceReason } from "../../../../../host/resources/pool-source.ts";
import { SourceFailure } from "../../../blocks/block-source.ts";
import { hubFailure } from "../../../blocks/hub-failure.ts";

const answer = (status: number, reason = "") => new ApiError({ status, reason, operation: "GET /", message: "no" });

/** As the client has it: the error of the socket is behind two others. */
function unreached(code: string): ApiUnavailable {
  const cause = new Error("fetch failed", { cause: Object.assign(new Error(code), { code }) });
  return new ApiUnavailable("GET /", `GET / failed: ${code}`, { cause });
}

it.each<[what: string, error: unknown, wanted: SourceReason]>([
  ["no route", unreached("EHOSTUNREACH"), "HubAway"],
  ["a broken server", answer(503), "HubAway"],
  ["another authority", unreached("SELF_SIGNED_CERT_IN_CHAIN"), "HubNotTrusted"],
  ["another name", unreached("ERR_TLS_CERT_ALTNAME_INVALID"), "HubNotTrusted"],
  ["an old certificate", unreached("CERT_HAS_EXPIRED"), "HubNotTrusted"],
  ["an old token", answer(401, "Unauthorized"), "TokenRefused"],
  ["a wrong account", answer(403, "Forbidden"), "Forbidden"],
  ["no such object", answer(404, "NotFound"), "NoRange"],
  ["no such kind", answer(404), "OtherVersion"],
  ["a status of another version", answer(422, "Invalid"), "OtherVersion"],
  ["an object of another version", new ConfigError("range", [{ path: "spec", got: "", wanted: "" }]), "OtherVersion"],
])("%s: the reason", (_, error, wanted) => {
  const failure = hubFailure(error);
  expect(failure.reason).toBe(wanted);
  expect(failure.message).toBe((error as Error).message);
  expect(hubFailure(failure)).toBe(failure);
  expect(failure).toBeInstanceOf(SourceFailure);
});
