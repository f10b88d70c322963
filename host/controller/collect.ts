/** Sets the controller's metrics to what is known when it is scraped. */
import type { ReflectorStats } from "../kubernetes/reflector.ts";
import { collectWatches } from "../metrics/common-metrics.ts";
import type { ControllerMetrics } from "../metrics/controller-metrics.ts";
import { setGauge, setTotals } from "../metrics/metric.ts";
import { collectPools } from "../metrics/pool-metrics.ts";
import { collectSubnets } from "../metrics/subnet-metrics.ts";
import type { Measurements } from "./types.ts";

interface ControllerState {
  readonly isLeading: boolean;
  /** By the name of the collection. */
  readonly watches: Readonly<Record<string, ReflectorStats & { readonly objects: number }>>;
  /** By the name of the controller. */
  readonly problems: Readonly<Record<string, readonly string[]>>;
  /** Empty while this process does not lead: pools and Subnets would otherwise be counted by each replica. */
  readonly measurements: Measurements;
}

export function collectController(
  metrics: ControllerMetrics,
  { isLeading, watches, problems, measurements }: ControllerState,
): void {
  metrics.leader.set(isLeading ? 1 : 0);
  setGauge(
    metrics.problems,
    Object.entries(problems).map(([part, { length }]) => [{ part }, length]),
  );
  collectWatches(metrics, watches);
  const { pools, subnets, collection } = measurements;
  if (pools === undefined) for (const gauge of [metrics.pools, metrics.poolSize, metrics.poolAddresses]) gauge.reset();
  else collectPools(metrics, pools());
  collectSubnets(metrics, subnets?.() ?? []);
  metrics.gcCandidates.set(collection?.candidates ?? 0);
  setTotals(
    metrics.gcActions,
    [...(collection?.actions ?? [])].map(([action, count]) => [{ action }, count]),
  );
}
