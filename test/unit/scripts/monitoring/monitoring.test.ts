/** Alerts and dashboard of the chart, judged by Prometheus' own tool. */
import { spawnSync } from "node:child_process";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { AGENT_METRICS } from "../../../../host/metrics/agent-metrics.ts";
import type { MetricDefinition } from "../../../../host/metrics/metric.ts";
import manifest from "../../../../package.json" with { type: "json" };
import { controllerMetrics } from "../../../../scripts/generate/pages/metrics.ts";
import { root } from "../../../../scripts/setup/paths.mjs";
import { temporaryDirectory } from "../../../world/temporary-directory.ts";
import { isAlone } from "../../house/sources.ts";

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: Readonly<Record<string, string>>;
}

const place = temporaryDirectory("berth-alerts-");

const read = (...path: readonly string[]): string => readFileSync(join(root, ...path), "utf8");
const RULES: readonly Rule[] = parse(read("deploy/chart/berth/files/alerts.yaml")).groups[0].rules;
const DASHBOARD = JSON.parse(read("deploy/chart/berth/files/dashboard.json"));
const QUERIES: readonly string[] = DASHBOARD.panels.flatMap(({ targets = [] }: { targets?: { expr: string }[] }) =>
  targets.map(({ expr }) => expr),
);

interface Case {
  readonly name: string;
  readonly series: Readonly<Record<string, string>>;
  /** By `TIME NAME`: with which labels each fires, beside the rule's own. */
  readonly alerts: Readonly<
    Record<string, readonly ({ readonly summary: string } & Readonly<Record<string, string>>)[]>
  >;
}

const CASES: readonly Case[] = parse(read("test/unit/scripts/monitoring/alerts.yaml"));

/** Returns a file of `promtool test rules`. */
const toTests = (cases: readonly Case[]) => ({
  rule_files: ["alerts.rules.yaml"],
  tests: cases.map(({ name, series, alerts }) => ({
    ...{ name, interval: "1m" },
    input_series: Object.entries(series).map(([each, values]) => ({ series: each, values })),
    alert_rule_test: Object.entries(alerts).map(([when, fires]) => {
      const [at, alertname] = when.split(" ");
      const { labels: own, annotations } = RULES.find(({ alert }) => alert === alertname) ?? {};
      const exp_alerts = fires.map(({ summary, ...labels }) => ({
        exp_labels: { ...own, ...labels },
        exp_annotations: { ...annotations, summary },
      }));
      return { eval_time: at, alertname, exp_alerts };
    }),
  })),
});

function promtool(...args: readonly string[]): { readonly status: number | null; readonly output: string } {
  const { status, stdout, stderr } = spawnSync("promtool", args, { cwd: place, encoding: "utf8" });
  return { status, output: `${stdout}${stderr}` };
}

/** Checks the expressions as recording rules; Grafana's variable stands for a duration. */
function checkQueries(queries: readonly string[]) {
  const rules = queries.map((query, index) => ({
    record: `q:${index}`,
    expr: query.replaceAll("$__rate_interval", "5m"),
  }));
  writeFileSync(join(place, "queries.yaml"), JSON.stringify({ groups: [{ name: "q", rules }] }));
  return promtool("check", "rules", "queries.yaml");
}

/** Names of series, with a histogram's suffixes. */
const NAMES = new Set(
  [...Object.values<MetricDefinition>(AGENT_METRICS), ...controllerMetrics].flatMap(({ name, kind }) =>
    kind === "histogram" ? ["_bucket", "_sum", "_count"].map((suffix) => `${name}${suffix}`) : [name],
  ),
);

/** Metrics of packages, which may be away. */
const OF_PACKAGES = /^berth_(?:range|records)_/;

function unknownMetrics(expression: string): string[] {
  return (expression.match(/\b(?:berth|process|nodejs)_\w+/g) ?? []).filter(
    (name) => !NAMES.has(name) && !(isAlone && OF_PACKAGES.test(name)),
  );
}

describe("alerts", () => {
  it("are valid rules, and fire and do not fire as the cases say", () => {
    copyFileSync(join(root, "deploy/chart/berth/files/alerts.yaml"), join(place, "alerts.rules.yaml"));
    writeFileSync(join(place, "cases.yaml"), JSON.stringify(toTests(CASES)));
    expect(promtool("check", "rules", "alerts.rules.yaml")).toMatchObject({ status: 0 });
    const { status, output } = promtool("test", "rules", "cases.yaml");
    expect(status, output).toBe(0);
  });

  const tested = CASES.flatMap(({ alerts }) => Object.entries(alerts));
  const runbooks = read("docs/runbooks.md");

  it.each(RULES.map((rule) => [rule.alert, rule] as const))("%s is tested, explained and complete", (name, rule) => {
    const outcomes = tested.filter(([when]) => when.endsWith(` ${name}`)).map(([, fires]) => fires.length > 0);
    expect(new Set(outcomes)).toEqual(new Set([true, false]));
    expect(unknownMetrics(rule.expr)).toEqual([]);
    expect(rule.labels.severity).toMatch(/^(?:warning|critical)$/);
    const { summary, description, runbook_url } = rule.annotations;
    expect([summary, description].every((text) => /^.{10,}[^.]\.?$/.test(text ?? ""))).toBe(true);
    expect(runbook_url).toBe(`${manifest.homepage}/docs/runbooks.html#${name.toLowerCase()}`);
    expect(runbooks.toLowerCase()).toContain(`\n## ${name.toLowerCase()}\n\n**${rule.labels.severity}.** `);
  });

  it("have no runbook without an alert", () => {
    const sections = [...runbooks.matchAll(/^## (\w+)$/gm)].map(([, name]) => name);
    expect(sections).toEqual(RULES.map(({ alert }) => alert));
  });
});

describe("the dashboard", () => {
  it("has queries that Prometheus can read", () => {
    const { status, output } = checkQueries(QUERIES);
    expect(status, output).toBe(0);
  });

  it("asks only for metrics that exist", () =>
    expect([...QUERIES, "berth_gone_total"].flatMap(unknownMetrics)).toEqual(["berth_gone_total"]));

  it("asks for the series that its variables choose, also for one without the label", () => {
    expect(QUERIES.filter((query) => !query.includes('cluster=~"$cluster"'))).toEqual([]);
    expect(QUERIES[0]).toBe('count(berth_agent_ready{cluster=~"$cluster", node=~"$node"} == 0) or vector(0)');
    expect(QUERIES[2]).toContain('berth_pool_addresses{state="quarantined", cluster=~"$cluster", pool=~"$pool"}');
    const { templating } = DASHBOARD;
    const values = templating.list.filter(({ type }: { type: string }) => type === "query");
    expect(values.map(({ name, allValue }: Record<string, string>) => `${name} ${allValue}`)).toEqual(
      ["cluster", "node", "pool"].map((name) => `${name} .*`),
    );
  });

  it("begins with numbers, and links to runbooks that exist", () => {
    const { panels } = DASHBOARD;
    const first = panels.filter(({ gridPos }: { gridPos: { y: number } }) => gridPos.y < 8);
    expect(first.map(({ type }: { type: string }) => type)).toEqual(["stat", "stat", "stat", "stat", "table"]);
    const runbooks = read("docs/runbooks.md").toLowerCase();
    for (const { links = [] } of first)
      for (const { url } of links) expect(runbooks, url).toContain(`\n## ${url.split("#")[1]}\n`);
  });

  it("has panels that do not overlap, and a data source that Grafana fills in", () => {
    const { panels, templating } = DASHBOARD;
    expect(templating.list[0].type).toBe("datasource");
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }: { gridPos: Record<"x" | "y" | "w" | "h", number> }) =>
      Array.from({ length: w * h }, (_, index) => `${x + (index % w)},${y + Math.floor(index / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(new Set(panels.map(({ id }: { id: number }) => id)).size).toBe(panels.length);
  });
});
