/** The tables of metrics: those that an operator looks at in docs/monitoring.md, others in docs/develop/metrics.md. */

import { readExtensions } from "../../../host/bin/extensions.ts";
import { AGENT_METRICS } from "../../../host/metrics/agent-metrics.ts";
import { CONTROLLER_METRICS } from "../../../host/metrics/controller-metrics.ts";
import { type MetricDefinition, MetricSet } from "../../../host/metrics/metric.ts";

/** Metrics of a process's inside, and of its way to the API server. */
const INNER =
  /^(?:process_|nodejs_|berth_(?:api|event_loop|watch|prefetch|journal|claim_retries|node_mirror|socket|range_(?!blocked|pinned)[a-z]+|records_(?:drift|requests))_)/;

const set = new MetricSet(CONTROLLER_METRICS, () => {});
for (const { addMetrics } of await readExtensions()) await addMetrics?.(set, () => ({}));

/** With those of the packages that are there. */
export const controllerMetrics: readonly MetricDefinition[] = set.definitions;

function row({ name, labels, help }: MetricDefinition): string {
  const named = labels.length === 0 ? "" : `{${labels.join(", ")}}`;
  return `| \`${name}${named}\` | ${help.replaceAll("|", "\\|")} |`;
}

/** Returns a table for those of the agent, of the controller, and of both. */
function tables(isShown: (metric: MetricDefinition) => boolean): string {
  const agent = Object.values<MetricDefinition>(AGENT_METRICS).filter(isShown).map(row);
  const controller = controllerMetrics.filter(isShown).map(row);
  const groups: Record<string, string[]> = {
    agents: agent.filter((each) => !controller.includes(each)),
    controllers: controller.filter((each) => !agent.includes(each)),
    both: agent.filter((each) => controller.includes(each)),
  };
  return Object.entries(groups)
    .filter(([, rows]) => rows.length > 0)
    .map(([of, rows]) => [`| Of ${of} | |`, "|---|---|", ...rows.sort()].join("\n"))
    .join("\n\n");
}

export function metricsTable(): string {
  return tables(({ name }) => !INNER.test(name));
}

export function innerMetricsPage(): string {
  const introduction = "# Further metrics\n\nBeside those of [monitoring](../monitoring.md).";
  return `${introduction}\n\n${tables(({ name }) => INNER.test(name))}\n`;
}
