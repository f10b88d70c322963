/** Reports a write that the API server refused to a controller: in the log, and as an event of the object. */
import type { ApiError, KubeCall } from "../kubernetes/kube-api.ts";
import { API_VERSION } from "../resources/fields/metadata.ts";
import type { ControllerDeps } from "./types.ts";

/** Kinds whose events people read, by the name of their collection. */
const KINDS: Readonly<Record<string, string>> = {
  ippools: "IPPool",
  subnets: "Subnet",
  reservedips: "ReservedIP",
  coordinators: "Coordinator",
  ipallocations: "IPAllocation",
};

const COLLECTION = /\/ipam\.vendor\.io\/v1\/([a-z]+)\/([^/]+)/;

/** An object that was never created has no events. */
export function sendRefusal(
  { log, events }: Pick<ControllerDeps, "log" | "events">,
  call: KubeCall,
  refusal: ApiError,
) {
  const { method, path, body = {} } = call;
  log.warn(
    { method, path, reason: refusal.message },
    "The API server refuses a write; it is repeated ever more rarely",
  );
  const [, plural = "", name = ""] = COLLECTION.exec(path) ?? [];
  const { metadata, preconditions } = body as Partial<Record<"metadata" | "preconditions", { readonly uid?: string }>>;
  const { uid } = preconditions ?? metadata ?? {};
  const kind = KINDS[plural];
  if (kind === undefined || uid === undefined) return;
  events.emit({
    regarding: { kind, apiVersion: API_VERSION, namespace: "", name: decodeURIComponent(name), uid },
    reason: REFUSED,
    note: `The API server refuses a write of the controller: ${refusal.message}`,
    type: "Warning",
    action: "Write",
  });
}

/** Reason of events and of the condition Supplied. */
export const REFUSED = "Refused";
