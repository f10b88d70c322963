/**
 * Lets pods through that wait for a scheduling gate while no controller leads, so that none waits for ever. Every
 * agent watches the age of the controller's Lease, by its own clock; the first that finds it old removes the gates.
 * Effects: calls in the background.
 */
import * as z from "zod";
import { callIfThere, isConflict, isNotFound, type KubeApi, type KubeObject } from "../../kubernetes/kube-api.ts";
import { decodeLease, recordOf } from "../../kubernetes/lease/lease-object.ts";
import { listPages } from "../../kubernetes/list.ts";
import { collectionPath, LEASES, type ObjectName, objectPath, PODS } from "../../kubernetes/paths.ts";
import type { Log } from "../../lib/log.ts";
import { PeriodicWorker } from "../../lib/periodic.ts";
import { ADDRESS_GATE } from "../../resources/address-gate.ts";

/** Age of the controller's Lease from which agents remove scheduling gates: milliseconds. @limit */
const ABANDONED_MS = 60_000;

/** Time between two reads of the Lease: milliseconds; up to twice as long at random. */
const LEASE_READ_MS = 20_000;

/** So many times longer is the time after no pod had the gate: of thousands of agents some are always about to look. */
const IDLE_FACTOR = 4;

interface AbandonedGatesOptions {
  readonly api: KubeApi;
  readonly lease: ObjectName;
  /** Monotonic: milliseconds. */
  readonly nowMs: () => number;
  /** Returns a number in [0, 1). */
  readonly random: () => number;
  readonly log: Log;
}

const gated = z.object({
  metadata: z.object({
    namespace: z.string(),
    name: z.string(),
    uid: z.string(),
    resourceVersion: z.string(),
  }),
  spec: z.object({ schedulingGates: z.array(z.object({ name: z.string() })) }),
});

interface Closable {
  /** Removes no further gate. */
  close(): Promise<void>;
}

/** What the API server's cache has: neither read costs it more than an answer. */
const CACHED = { resourceVersion: "0" };

export function watchAbandonedGates({ api, lease, nowMs, random, log }: AbandonedGatesOptions): Closable {
  const closing = new AbortController();
  const spread = (): number => LEASE_READ_MS * (1 + random());
  let seen: { readonly mark: string; readonly sinceMs: number } | undefined;
  const work = async (): Promise<number> => {
    const path = objectPath(LEASES, lease);
    const object = await callIfThere(api, { method: "GET", path, query: CACHED, signal: closing.signal });
    const mark = object === undefined ? "" : recordOf(decodeLease(object)).mark;
    if (seen?.mark !== mark) seen = { mark, sinceMs: nowMs() };
    else if (nowMs() - seen.sinceMs >= ABANDONED_MS && !(await removeGates(api, log, closing.signal)))
      return IDLE_FACTOR * spread();
    return spread();
  };
  const worker = new PeriodicWorker({
    ...{ failure: "Looking after scheduling gates failed", work, log, signal: closing.signal },
    ...{ retryMs: spread, firstMs: spread() },
  });
  return {
    close: async () => {
      closing.abort(new Error("The agent stops"));
      await worker.close();
    },
  };
}

/** Returns whether a pod had it. */
async function removeGates(api: KubeApi, log: Log, signal: AbortSignal): Promise<boolean> {
  let isAny = false;
  const query = { ...CACHED, fieldSelector: "spec.nodeName=,status.phase=Pending" };
  for await (const { items } of listPages(api, { path: collectionPath(PODS), query, signal }))
    for (const item of items) isAny = (await removeGate(api, log, { item, signal })) || isAny;
  return isAny;
}

async function removeGate(
  api: KubeApi,
  log: Log,
  { item, signal }: { readonly item: KubeObject; readonly signal: AbortSignal },
): Promise<boolean> {
  const pod = gated.safeParse(item).data;
  const others = pod?.spec.schedulingGates.filter(({ name }) => name !== ADDRESS_GATE) ?? [];
  if (pod === undefined || others.length === pod.spec.schedulingGates.length) return false;
  const { namespace, name, ...precondition } = pod.metadata;
  const body = { metadata: precondition, spec: { schedulingGates: others } };
  try {
    await api.call({ method: "PATCH", path: objectPath(PODS, { namespace, name }), body, signal });
    log.warn({ namespace, pod: name }, "No controller leads: the scheduling gate of a pod was removed");
  } catch (error) {
    if (!isConflict(error) && !isNotFound(error)) throw error;
  }
  return true;
}
