/** `berthctl recover`: restores the registry's lost rows from runtimes' cached results and NICs (docs/recovery.md). */
import type { Log } from "../../../lib/log.ts";
import { formatIp } from "../../../net/ip.ts";
import { listRows } from "../../../registry/list-rows.ts";
import type { Allocation, RecoverableRegistry } from "../../../registry/registry.ts";
import type { RecoverOptions } from "../../backend.ts";
import type { PoolInventory } from "../../ipam/pool-inventory.ts";
import { readCookie } from "../../netns/pod-netns.ts";
import { netnsIdOf, readLiveNamespaces } from "../../request/live-namespaces.ts";
import { readRuntimeCache } from "../../request/runtime-cache.ts";
import { type Find, planRecovery, type Recovery } from "./plan-recovery.ts";

interface RecoverDeps {
  readonly registry: RecoverableRegistry;
  readonly inventory: PoolInventory;
  readonly log: Log;
}

/** Returns a report, line by line. Rejects with RegistryError. */
export async function recover({ registry, inventory, log }: RecoverDeps, options: RecoverOptions): Promise<string[]> {
  // An ADD during the search gives its row another version.
  const rows = await Array.fromAsync(listRows(registry));
  const cache = readRuntimeCache(options.results);
  const namespaces = await readLiveNamespaces(options.netns);
  const recovery = planRecovery({
    cached: cache.attachments,
    live: namespaces.addresses,
    rows,
    pools: [...inventory.snapshot.pools.values()],
    isLive: (path) => netnsIdOf(path) !== undefined,
  });
  const { found, kept, gone, ignored } = recovery;
  if (!options.isDryRun) {
    // A DEL that came during the search is not repeated: the end of its namespace releases the address (leak).
    const proven = found.map((find) => ({ ...find, netnsCookie: readCookie(find.netns ?? "") }));
    await registry.recover(proven, gone);
    inventory.reread();
    await inventory.loaded();
    log.warn({ found: found.length, kept: kept.length, gone: gone.length }, "Recovered the registry");
  }
  const outcome = options.isDryRun ? "Dry run: nothing was written" : "Recorded; addresses are allocated again";
  const problems = [...cache.problems, ...namespaces.problems, ...ignored];
  return [...describe(recovery), ...problems.map((text) => `! ${text}`), outcome];
}

function describe({ found, kept, gone }: Recovery): string[] {
  return [
    `${kept.length} addresses are in the registry`,
    `${found.length} addresses of live pods are missing and are recorded`,
    ...found.map(({ source, ...find }) => `${describeRow(find)}, from ${source}`),
    `${gone.length} addresses belong to deleted pods and are released`,
    ...gone.map(describeRow),
  ];
}

function describeRow({ ip, namespace, pod, ifName, containerId, pool }: Omit<Find, "source"> | Allocation): string {
  return `  ${formatIp(ip)} (${pool}): ${pod === "" ? containerId : `${namespace}/${pod}`}, ${ifName}`;
}
