/** The registry changes: its kind is recreated, the API server goes back in time, or writes take long. */
import { REGISTRY_KINDS } from "../../host/registry/epoch/kubernetes-epoch.ts";
import { ALLOCATIONS } from "../fakes/memory-api-server.ts";
import type { Cluster } from "./cluster.ts";
import { CUSTOM_KINDS } from "./collections.ts";
import { addressOf } from "./ledger.ts";
import type { SimulatedTime } from "./simulated-time.ts";

/** A webhook is there for so long: milliseconds. */
const WEBHOOK_MS = 120_000;

const [ALLOCATION_KIND] = REGISTRY_KINDS;

/** After a restore without the kind it is created again after so long: milliseconds. */
const KIND_MS = 3_000;

/** The kind of allocations is deleted with all of them, and is served again after so long. */
export function recreateKind(cluster: Cluster, afterMs: number, time: SimulatedTime): void {
  const { server, network, ledger } = cluster;
  for (const name of [...server.objects.keys()]) cluster.deleteAllocation(name);
  ledger.loseRegistry();
  server.remove(ALLOCATION_KIND, CUSTOM_KINDS);
  network.unserved.add(ALLOCATIONS);
  network.breakWatches();
  createKind(cluster, afterMs, time);
}

function createKind({ server, network }: Cluster, afterMs: number, time: SimulatedTime): void {
  time.schedule(afterMs, "the kind is created again", time.current, () => {
    // A restored copy may have had it.
    if (!network.unserved.delete(ALLOCATIONS)) return;
    server.put(CUSTOM_KINDS, ALLOCATION_KIND, { metadata: { uid: `kind-${time.nowMs}` } });
    network.breakWatches();
  });
}

/** A copy of everything is made now, and takes the place of everything after so long. */
export function restoreLater(cluster: Cluster, afterMs: number, time: SimulatedTime): void {
  const { server, network, ledger } = cluster;
  const copy = server.snapshot();
  const sets = cluster.workloads.map(({ life, replicas }) => ({ life, replicas }));
  time.schedule(afterMs, "the API server goes back in time", time.current, () => {
    const before = new Map(server.objects);
    server.restore(copy);
    if (server.collection(CUSTOM_KINDS).has(ALLOCATION_KIND)) network.unserved.delete(ALLOCATIONS);
    else {
      network.unserved.add(ALLOCATIONS);
      createKind(cluster, KIND_MS, time);
    }
    for (const name of new Set([...before.keys(), ...server.objects.keys()])) {
      const [was, is] = [before.get(name), server.objects.get(name)];
      if (was?.metadata.resourceVersion === is?.metadata.resourceVersion) continue;
      if (was !== undefined) ledger.written(was, undefined, true, "");
      if (is !== undefined) ledger.written(undefined, is, true, "");
      ledger.forgetAddress(addressOf(name));
    }
    // A set that was recreated since is the earlier one again, and one that was scaled has its former size.
    for (const [index, workload] of cluster.workloads.entries()) Object.assign(workload, sets[index]);
    ledger.loseRegistry();
    network.breakWatches();
  });
}

/** An admission webhook keeps each write of Berth's kinds for so long, unless there is one. */
export function keepWrites({ network }: Cluster, keepMs: number, time: SimulatedTime): void {
  if (network.webhookMs !== undefined) return;
  network.webhookMs = keepMs;
  time.schedule(WEBHOOK_MS, "no webhook keeps writes", time.current, () => {
    network.webhookMs = undefined;
  });
}
