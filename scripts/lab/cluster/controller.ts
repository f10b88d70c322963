/**
 * Single parts of the controller on a real API server, in this process, as the one that leads: caches, events, no lease.
 *
 *   const controller = await startParts(plane.kubeconfig, { usage: startUsage });
 *   …                                            // controller.caches.pools.items, controller.problems("usage")
 *   controller.resign();                          // `leading` ends, as when the lease is lost; the parts are still to be closed
 *   await controller.close();
 *
 * `kubeconfig` may be a proxy's (api-proxy.ts), or one that plane.writeKubeconfig made for an account with fewer rights.
 * Effects: connections to the API server; those of the parts.
 */

import { type OpenCaches, openCaches } from "../../../host/controller/caches.ts";
import { startLeadership } from "../../../host/controller/leadership.ts";
import { type OpenPoolOwners, openPoolOwners } from "../../../host/controller/owners/pool-owners.ts";
import type { AddressOwners, ControllerDeps, PoolOwners, StartController } from "../../../host/controller/types.ts";
import type { KubeClient } from "../../../host/kubernetes/client.ts";
import { openEvents } from "../../../host/kubernetes/events.ts";
import { type LogLevel, openLog } from "../../../host/lib/log.ts";
import { connectClient } from "./in-process.ts";

/** Owners whose addresses stay retained. */
const UNKNOWN_OWNERS: AddressOwners = { readLiveness: async () => "unknown", subscribe: () => () => {} };

export interface LabControllerOptions {
  /** Default: owners of unknown liveness. */
  readonly addressOwners?: AddressOwners;
  /** Default: the workloads of the cluster. */
  readonly poolOwners?: PoolOwners;
  /** Of the ConfigMap vendor-conf. Default: kube-system. */
  readonly configNamespace?: string;
  /** Replace single dependencies, such as the clock. */
  readonly deps?: Partial<Pick<ControllerDeps, "clock" | "random" | "events" | "api">>;
  /** How long the caches may take to be complete. Default: 60,000, for other work may load the machine. */
  readonly readyMs?: number;
  /** Default: silent. */
  readonly logLevel?: LogLevel;
}

export interface LabController {
  readonly client: KubeClient;
  readonly deps: ControllerDeps;
  readonly caches: OpenCaches;
  readonly poolOwners: OpenPoolOwners;
  /** Throws for a name that was not started. */
  problems(part: string): readonly string[];
  /** Ends `leading`. */
  resign(): void;
  /** Ends `leading`, then the parts, then what they stood on. */
  close(): Promise<void>;
}

/** Resolves when the caches are complete and the parts are started. Rejects with what is missing. */
export async function startParts(
  kubeconfig: string,
  parts: Readonly<Record<string, StartController>>,
  options: LabControllerOptions = {},
): Promise<LabController> {
  const { addressOwners = UNKNOWN_OWNERS, configNamespace = "kube-system", readyMs = 60_000 } = options;
  const log = openLog("lab-controller", options.logLevel ?? "silent");
  const client = await connectClient(kubeconfig, "berth-controller");
  const api = options.deps?.api ?? client;
  const caches = openCaches({ api, configNamespace, log, random: Math.random });
  const poolOwners = openPoolOwners({ api, log, random: Math.random });
  const leading = new AbortController();
  const events = openEvents({ api, component: "berth-controller", node: "lab", log });
  const release = async (): Promise<void> => {
    await events.close();
    await poolOwners.close();
    await caches.close();
    await client.close();
  };
  try {
    const ready = AbortSignal.timeout(readyMs);
    await Promise.all([caches.synced(ready), poolOwners.synced(ready)]);
  } catch (error) {
    const missing = [...caches.unread, ...caches.problems, ...poolOwners.problems].join("; ");
    await release();
    throw new Error(`The caches are not complete after ${readyMs} ms: ${missing}`, { cause: error });
  }
  const deps: ControllerDeps = {
    api,
    caches,
    owners: { addresses: addressOwners, pools: options.poolOwners ?? poolOwners },
    events,
    log,
    clock: { nowMs: () => performance.now(), now: () => new Date() },
    random: Math.random,
    leading: leading.signal,
    ...options.deps,
  };
  const leadership = startLeadership(parts, deps);
  const resign = () => leading.abort(new Error("The lab's controller leads no more"));
  return {
    ...{ client, deps, caches, poolOwners, resign },
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
