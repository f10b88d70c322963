/** The meaning of an error of a call to the IPAM of record. */
import { messageOf } from "../../../host/lib/describe.ts";
import type { SourceReason } from "../../../host/resources/pool-source.ts";
import { SourceFailure } from "../blocks/block-source.ts";
import { RecordServerError } from "./http-client.ts";

/** Returns errors of other origin as they are. */
export function recordFailure(error: unknown): unknown {
  const reason = reasonOf(error);
  return reason === undefined ? error : new SourceFailure(reason, messageOf(error), error);
}

function reasonOf(error: unknown): SourceReason | undefined {
  if (error instanceof Error && error.name === "TimeoutError") return "RecordsAway";
  if (!(error instanceof RecordServerError)) return undefined;
  const { status } = error;
  if (status === 401) return "TokenRefused";
  // Nautobot answers a wrong token with it, too.
  if (status === 403) return "Forbidden";
  if (status === 404) return "NoRange";
  return status === undefined || status === 429 || status >= 500 ? "RecordsAway" : "Failed";
}
