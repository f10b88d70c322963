/** The tables of metrics in docs/monitoring.md. */
import { AGENT_METRICS } from "../../../host/metrics/agent-metrics.ts";
import { CONTROLLER_METRICS } from "../../../host/metrics/controller-metrics.ts";
import type { MetricDefinition } from "../../../host/metrics/metric.ts";

function row({ name, kind, labels, help }: MetricDefinition, of: string): string {
  const named = labels.map((label) => `\`${label}\``).join(", ");
  return `| \`${name}\` | ${kind} | ${named} | ${of} | ${help.replaceAll("|", "\\|")} |`;
}

/** Returns one row for each name; the two processes may describe it differently. */
export function metricsTable(): string {
  const agent = new Map(Object.values<MetricDefinition>(AGENT_METRICS).map((each) => [each.name, each]));
  const controller = new Map(Object.values<MetricDefinition>(CONTROLLER_METRICS).map((each) => [each.name, each]));
  const rows = [...new Set([...agent.keys(), ...controller.keys()])].sort().flatMap((name) => {
    const [one, other] = [agent.get(name), controller.get(name)];
    if (one !== undefined && other !== undefined && one.help === other.help) return [row(one, "both")];
    return [
      ...(one === undefined ? [] : [row(one, "agent")]),
      ...(other === undefined ? [] : [row(other, "controller")]),
    ];
  });
  return ["| Metric | Kind | Labels | Of | Meaning |", "|---|---|---|---|---|", ...rows].join("\n");
}
