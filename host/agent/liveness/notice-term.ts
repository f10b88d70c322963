/**
 * Whether one controller has led all the time, and sends notices: its Lease says both (recreate,
 * docs/decisions/0035). An older controller sends none, and between two leaders no controller does.
 */
import type { KubeApi } from "../../kubernetes/kube-api.ts";
import { decodeLease } from "../../kubernetes/lease/lease-object.ts";
import { LEASES, type ObjectName, objectPath } from "../../kubernetes/paths.ts";
import { NOTIFIER_ANNOTATION } from "../../resources/allocation-notice.ts";
import { SWEEP_PATIENCE_MS } from "./live-status.ts";

/** One time of leading. */
interface Term {
  readonly key: string;
  readonly renewed: string | null | undefined;
}

/**
 * Returns a function that reads whether the same controller has led since the call before, and has renewed its Lease.
 * It never rejects, and resolves with false the first time, and when there is no answer.
 */
export function openNoticeTerm(api: KubeApi, lease: ObjectName): () => Promise<boolean> {
  let before: Term | undefined;
  return async () => {
    const now = await readTerm(api, lease).catch(() => undefined);
    const isSame = now !== undefined && now.key === before?.key && now.renewed !== before.renewed;
    before = now;
    return isSame;
  };
}

/** Returns undefined unless the holder sends notices. */
async function readTerm(api: KubeApi, lease: ObjectName): Promise<Term | undefined> {
  const path = objectPath(LEASES, lease);
  // A started agent's ADDs wait for the first of these reads.
  const call = { method: "GET", path, lane: "pod", patienceMs: SWEEP_PATIENCE_MS } as const;
  const { metadata, spec } = decodeLease(await api.call(call));
  const { holderIdentity, acquireTime, leaseTransitions, renewTime } = spec ?? {};
  if (metadata.annotations?.[NOTIFIER_ANNOTATION] !== holderIdentity || !holderIdentity) return undefined;
  return { key: [metadata.uid, holderIdentity, acquireTime, leaseTransitions].join(" "), renewed: renewTime };
}
