/** Sets the metrics of addresses and prefetches at a scrape. */
import type { AgentMetrics } from "../../metrics/agent-metrics.ts";
import { setGauge, setTotal, setTotals } from "../../metrics/metric.ts";
import { collectPools, NO_STATES, STATE_LABELS } from "../../metrics/pool-metrics.ts";
import type { Registry, RegistryHealth, UsageCount } from "../../registry/registry.ts";
import type { ReadinessSource } from "../ipam/plugin.ts";
import type { PoolInventory } from "../ipam/pool-inventory.ts";
import type { PrefetchStats } from "../ipam/prefetch/prefetcher.ts";

interface AgentState {
  readonly backend: ReadinessSource & { readonly health: Pick<RegistryHealth, "pendingCalls"> };
  readonly spool: { count(): { readonly waiting: number; readonly rejected: number } };
  readonly audit: { readonly lost: number };
  /** Number of times that the agent restored its socket. */
  readonly restores: number;
}

/** Collects the metrics that an agent has in both modes. */
export function collectAgent(metrics: AgentMetrics, { backend, spool, audit, restores }: AgentState): void {
  const { ready, health, problems } = backend;
  metrics.ready.set(ready && health.trouble === undefined ? 1 : 0);
  metrics.problems.set(problems.length);
  const { waiting, rejected } = spool.count();
  metrics.spoolFiles.set({ state: "waiting" }, waiting);
  metrics.spoolFiles.set({ state: "rejected" }, rejected);
  metrics.journalCalls.set(health.pendingCalls);
  setTotal(metrics.auditLinesLost, audit.lost);
  setTotal(metrics.socketRestores, restores);
}

/** In a cluster: of this node only, as no agent counts those of others. */
export async function collectNodeAddresses(
  registry: Pick<Registry, "countUsage">,
  { nodeAddresses }: Pick<AgentMetrics, "nodeAddresses">,
): Promise<readonly UsageCount[]> {
  const usage = await registry.countUsage();
  const states = sumStates(usage);
  setGauge(
    nodeAddresses,
    Object.entries(states).map(([state, count]) => [{ state }, count]),
  );
  return usage;
}

/** In the embedded mode, where the registry has all addresses of the pools. */
export async function collectPoolUsage(
  { registry, poolCache, snapshot }: PoolInventory,
  metrics: AgentMetrics,
): Promise<void> {
  const usage = Map.groupBy(await collectNodeAddresses(registry, metrics), ({ pool }) => pool);
  const pools = [...snapshot.pools.values()].map(({ name, spec }) => {
    const { total, free } = poolCache.counts(name) ?? { total: 0n, free: 0n };
    const states = { free: Number(free), ...sumStates(usage.get(name) ?? []) };
    return { name, family: spec.subnet.ip.family, subnet: spec.generated?.subnet, size: Number(total), states };
  });
  collectPools(metrics, pools);
}

export function collectPrefetch(metrics: AgentMetrics, stats: PrefetchStats): void {
  const results = ["claimed", "found", "late", "withdrawn", "failed"] as const;
  setTotals(
    metrics.prefetchNics,
    results.map((result) => [{ result }, stats[result]]),
  );
  setTotal(metrics.prefetchAdds, stats.adds);
  setTotal(metrics.prefetchHits, stats.used);
  setTotals(metrics.prefetchWaste, [
    [{ reason: "discarded" }, stats.discarded],
    [{ reason: "returned" }, stats.returned],
    [{ reason: "timed_out" }, stats.timedOut],
  ]);
}

function sumStates(usage: readonly UsageCount[]): Record<string, number> {
  const sums: Record<string, number> = { ...NO_STATES };
  for (const { state, count } of usage) sums[STATE_LABELS[state]] = (sums[STATE_LABELS[state]] ?? 0) + count;
  return sums;
}
