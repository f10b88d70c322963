/**
 * Single parts of the controller on a real API server, in this process, as the one that leads: caches, events, no
 * lease.
 *
 *   const controller = await startParts(plane.kubeconfig, { usage: startUsage });
 *   …                                            // controller.caches.pools.items, controller.problems("usage")
 *   controller.resign();                          // `leading` ends, as when the lease is lost; then close the parts
 *   await controller.close();
 *
 * `kubeconfig` may be a proxy's (api-proxy.ts), or one that plane.writeKubeconfig made for an account with fewer
 * rights.
 */
import { type OpenCaches, openCaches } from "../../../host/controller/caches.ts";
import { type LeadershipDeps, startLeadership } from "../../../host/controller/leadership.ts";
import { type OpenPoolOwners, openPoolOwners } from "../../../host/controller/owners/pool-owners.ts";
import { PoolWrites } from "../../../host/controller/pool-writes.ts";
import type {
  AddressOwners,
  ControllerDeps,
  Measurements,
  PoolOwners,
  StartController,
} from "../../../host/controller/types.ts";
import { EventSender, type KubeEvent } from "../../../host/kubernetes/events.ts";
import type { KubeApi } from "../../../host/kubernetes/kube-api.ts";
import { type LogLevel, openLog } from "../../../host/lib/log.ts";
import { connectClient } from "./in-process.ts";
import { WatchedApi } from "./watched-api.ts";

/** Owners whose addresses stay retained. */
export const UNKNOWN_OWNERS: AddressOwners = {
  readLiveness: async () => "unknown",
  findNaming: () => [],
  findUid: () => undefined,
  subscribe: () => () => {},
};

export interface LabControllerOptions {
  /** Default: owners of unknown liveness. */
  readonly addressOwners?: AddressOwners;
  /** Default: the workloads of the cluster. */
  readonly poolOwners?: PoolOwners;
  /** Namespace of the ConfigMap vendor-conf. Default: kube-system. */
  readonly configNamespace?: string;
  /** Gets the events instead of the API server. */
  readonly events?: KubeEvent[];
  /** Replace single dependencies, such as the clock. */
  readonly deps?: Partial<Pick<ControllerDeps, "clock" | "poolWrites" | "random">>;
  /** Prepares the way to the API server before the first call. */
  readonly prepare?: (api: WatchedApi) => void;
  /** Longest time until the caches are complete. Default: 60,000, for other work may load the machine. */
  readonly readyMs?: number;
  /** Default: silent. */
  readonly logLevel?: LogLevel;
}

export interface LabController {
  /** With the same account, unrecorded. */
  readonly client: KubeApi;
  readonly api: WatchedApi;
  readonly deps: LeadershipDeps;
  readonly caches: OpenCaches;
  readonly poolOwners: OpenPoolOwners;
  /** Throws for a name that was not started. */
  problems(part: string): readonly string[];
  /** Of all parts, now. */
  measure(): Measurements;
  /** Ends `leading`. */
  resign(): void;
  /** Ends `leading`, then the parts, then their dependencies. */
  close(): Promise<void>;
}

/** Resolves when the caches are complete and the parts are started. Rejects with the missing ones. */
export async function startParts(
  kubeconfig: string,
  parts: Readonly<Record<string, StartController>>,
  options: LabControllerOptions = {},
): Promise<LabController> {
  const { addressOwners = UNKNOWN_OWNERS, configNamespace = "kube-system", readyMs = 60_000, prepare } = options;
  const log = openLog("lab-controller", options.logLevel ?? "silent");
  const client = await connectClient(kubeconfig, "berth-controller");
  const api = new WatchedApi(client);
  prepare?.(api);
  const caches = openCaches({ api, configNamespace, log, random: Math.random });
  const poolOwners = openPoolOwners({ api, budget: caches.budget, log, random: Math.random });
  const leading = new AbortController();
  const recorded = options.events;
  const events =
    recorded === undefined
      ? new EventSender({ api, component: "berth-controller", node: "lab", log })
      : { emit: (event: KubeEvent) => void recorded.push(event), close: async () => {} };
  const release = async (): Promise<void> => {
    for (const each of [events, poolOwners, caches, api]) await each.close();
  };
  try {
    const ready = AbortSignal.timeout(readyMs);
    await Promise.all([caches.synced(ready), poolOwners.synced(ready)]);
  } catch (error) {
    const missing = [...caches.unread, ...caches.problems, ...poolOwners.problems].join("; ");
    await release();
    throw new Error(`The caches are not complete after ${readyMs} ms: ${missing}`, { cause: error });
  }
  const deps: LeadershipDeps = {
    api,
    caches,
    owners: { addresses: addressOwners, pools: options.poolOwners ?? poolOwners, pods: poolOwners.pods },
    events,
    log,
    clock: { nowMs: () => performance.now(), now: () => new Date() },
    random: Math.random,
    poolWrites: new PoolWrites({ nodes: () => caches.nodes.items.size, nowMs: () => performance.now() }),
    leading: leading.signal,
    ...options.deps,
  };
  const leadership = startLeadership(parts, deps);
  const resign = () => leading.abort(new Error("The lab's controller leads no more"));
  return {
    ...{ client, api, deps, caches, poolOwners, resign },
    measure: () => leadership.measurements,
    problems: (name) => {
      const found = leadership.problems[name];
      if (found === undefined) throw new Error(`There is no part "${name}"`);
      return found;
    },
    close: async () => {
      resign();
      await leadership.close();
      await release();
    },
  };
}
