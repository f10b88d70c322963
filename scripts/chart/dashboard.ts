/** The Grafana dashboard, from one line per panel. */
import { AGENT_METRICS } from "../../host/metrics/agent-metrics.ts";
import { CONTROLLER_METRICS } from "../../host/metrics/controller-metrics.ts";
import type { MetricDefinition } from "../../host/metrics/metric.ts";
import manifest from "../../package.json" with { type: "json" };
import type { GeneratedText } from "../generate/generated-text.ts";
import { CHART } from "./generated-values.ts";

interface Panel {
  readonly title: string;
  /** Grafana's name of the unit: `s`, `percentunit`, `bytes`, `short`, `ops`. */
  readonly unit: string;
  /** Queries with their legends. */
  readonly queries: readonly (readonly [expression: string, legend: string])[];
  readonly description?: string;
}

/** A number of the first row: what an operator looks at first, in colours from `warning` and `critical` on. */
interface Figure extends Panel {
  readonly warning: number;
  readonly critical: number;
  /** Section of docs/runbooks.md. */
  readonly runbook: string;
  /** Small numbers are the bad ones. */
  readonly isLowBad?: true;
}

const FREE_SHARE =
  'max by (pool, family) (berth_pool_addresses{state="free"} / ignoring (state) (berth_pool_size_addresses > 0))';

const FIGURES: readonly Figure[] = [
  {
    title: "Agents that are not ready",
    unit: "short",
    queries: [["count(berth_agent_ready == 0) or vector(0)", ""]],
    description: "Their nodes start no pods: kubectl berth health",
    ...{ warning: 1, critical: 1, runbook: "berthagentnotready" },
  },
  {
    title: "Least free share of a pool",
    unit: "percentunit",
    queries: [[`min(${FREE_SHARE})`, ""]],
    description: "The table beside it names the pools.",
    ...{ warning: 0.1, critical: 0.02, isLowBad: true, runbook: "berthpoolnearlyfull" },
  },
  {
    title: "Quarantined addresses",
    unit: "short",
    queries: [['sum(berth_pool_addresses{state="quarantined"}) or vector(0)', ""]],
    description: "Another machine answered for them, or their node was lost: kubectl berth check",
    ...{ warning: 1, critical: 10, runbook: "berthquarantinegrowing" },
  },
  {
    title: "Repairs within an hour",
    unit: "short",
    queries: [["sum(increase(berth_node_repairs_total[1h])) or vector(0)", ""]],
    description: "Other software removes rules and routes of pods, and agents restore them: kubectl berth check",
    ...{ warning: 1, critical: 50, runbook: "berthnoderepairsrepeat" },
  },
];

const quantile = (share: number, metric: string, { by = "", matching = "" } = {}): string =>
  `histogram_quantile(${share}, sum by (${by}le) (rate(${metric}_bucket${matching}[$__rate_interval])))`;

const rate = (metric: string, by: string): string => `sum by (${by}) (rate(${metric}[$__rate_interval]))`;

const ROWS: readonly (readonly [title: string, panels: readonly Panel[]])[] = [
  [
    "Pools",
    [
      {
        title: "Free share of each pool",
        unit: "percentunit",
        queries: [[FREE_SHARE, "{{pool}} {{family}}"]],
      },
      {
        title: "Addresses by state",
        unit: "short",
        queries: [['sum by (state) (berth_pool_addresses{state!="free"})', "{{state}}"]],
      },
      {
        title: "Quarantined addresses",
        unit: "short",
        queries: [['sum by (pool) (berth_pool_addresses{state="quarantined"}) > 0', "{{pool}}"]],
      },
      {
        title: "Free share of each Subnet",
        unit: "percentunit",
        queries: [
          [
            'max by (subnet, family) (berth_subnet_addresses{state="free"} / ignoring (state) (berth_subnet_size_addresses > 0))',
            "{{subnet}} {{family}}",
          ],
        ],
      },
      { title: "Pools", unit: "short", queries: [["sum by (kind) (berth_pools)", "{{kind}}"]] },
    ],
  ],
  [
    "Calls of CNI",
    [
      {
        title: "Calls",
        unit: "ops",
        queries: [[rate("berth_cni_requests_total", "plugin, command"), "{{plugin}} {{command}}"]],
      },
      {
        title: "Failed calls by code",
        unit: "ops",
        description: "The codes are explained in docs/errors.md.",
        queries: [
          [rate('berth_cni_requests_total{code!="0"}', "plugin, command, code"), "{{plugin}} {{command}} {{code}}"],
        ],
      },
      {
        title: "Duration of ADD, p50 and p99",
        unit: "s",
        queries: [0.5, 0.99].map((share) => [
          quantile(share, "berth_cni_request_duration_seconds", { by: "plugin, ", matching: '{command="ADD"}' }),
          `{{plugin}} p${share * 100}`,
        ]),
      },
      {
        title: "Duration of a claim, p50 and p99",
        unit: "s",
        queries: [0.5, 0.99].map((share) => [quantile(share, "berth_claim_duration_seconds"), `p${share * 100}`]),
      },
      { title: "Claims by outcome", unit: "ops", queries: [[rate("berth_claims_total", "outcome"), "{{outcome}}"]] },
      {
        title: "Prefetch: hits of ADDs, waste of claims",
        unit: "percentunit",
        queries: [
          [
            "sum(rate(berth_prefetch_hits_total[$__rate_interval])) / sum(rate(berth_prefetch_adds_total[$__rate_interval]))",
            "hits",
          ],
          [
            'sum(rate(berth_prefetch_waste_total[$__rate_interval])) / sum(rate(berth_prefetch_nics_total{result="claimed"}[$__rate_interval]))',
            "waste",
          ],
        ],
      },
    ],
  ],
  [
    "Health",
    [
      {
        title: "Agents that are not ready",
        unit: "short",
        queries: [["count(berth_agent_ready == 0) or vector(0)", "agents"]],
      },
      { title: "Leading controllers", unit: "short", queries: [["sum(berth_controller_leader)", "leaders"]] },
      {
        title: "Depth of spool, journal and publisher",
        unit: "short",
        queries: [
          ["sum by (state) (berth_spool_files)", "spool: {{state}}"],
          ["sum(berth_journal_pending_calls)", "journal"],
          ["sum(berth_publisher_backlog_addresses)", "publisher"],
        ],
      },
      {
        title: "Collection of leaked addresses",
        unit: "short",
        queries: [
          ["sum(berth_gc_candidates)", "candidates"],
          ["sum(increase(berth_gc_collected_total[1h]))", "collected by agents within an hour"],
          ["sum by (action) (increase(berth_gc_actions_total[1h]))", "controller within an hour: {{action}}"],
        ],
      },
      {
        title: "Address conflicts",
        unit: "short",
        queries: [["sum by (action) (increase(berth_address_conflicts_total[1h]))", "{{action}}"]],
      },
      {
        title: "Open epoch of the registry",
        unit: "short",
        description: "New addresses are probed first, or wait, until all nodes have written what their pods have.",
        queries: [
          ["sum(berth_registry_epoch_open)", "processes that see one"],
          ["sum(berth_registry_epoch_waiting_nodes)", "nodes that are waited for"],
        ],
      },
      {
        title: "Problems",
        unit: "short",
        queries: [
          ["sum by (instance) (berth_agent_problems) > 0", "{{instance}}"],
          ["sum by (part) (berth_controller_problems) > 0", "controller: {{part}}"],
        ],
      },
    ],
  ],
  [
    "API server and processes",
    [
      {
        title: "Requests by verb and code",
        unit: "ops",
        queries: [[rate("berth_api_requests_total", "verb, code"), "{{verb}} {{code}}"]],
      },
      {
        title: "Longest possible lag of watches",
        unit: "s",
        queries: [["max by (collection) (time() - berth_watch_last_event_timestamp_seconds)", "{{collection}}"]],
      },
      {
        title: "Delay of the event loop, p99",
        unit: "s",
        queries: [[quantile(0.99, "berth_event_loop_delay_seconds", { by: "job, " }), "{{job}}"]],
      },
      {
        title: "CPU",
        unit: "short",
        queries: [
          ["rate(process_cpu_seconds_total[$__rate_interval]) and on (job, instance) berth_build_info", "{{instance}}"],
        ],
      },
      {
        title: "Memory",
        unit: "bytes",
        queries: [["process_resident_memory_bytes and on (job, instance) berth_build_info", "{{instance}}"]],
      },
      { title: "Versions", unit: "short", queries: [["count by (version) (berth_build_info)", "{{version}}"]] },
    ],
  ],
];

const METRICS: readonly (readonly [program: string, definition: MetricDefinition])[] = [
  ...Object.values<MetricDefinition>(AGENT_METRICS).map((metric) => ["agent", metric] as const),
  ...Object.values<MetricDefinition>(CONTROLLER_METRICS).map((metric) => ["controller", metric] as const),
];

/** Labels that the dashboard's variables choose; a series without the label is chosen by "All". */
function labelsOf(name: string): readonly string[] {
  const owners = METRICS.filter(([, metric]) => metric.name === name || name.startsWith(`${metric.name}_`));
  if (owners.length === 0) return [];
  const isOfPool = owners.some(([, { labels }]) => (labels as readonly string[]).includes("pool"));
  const isOfNodes = owners.every(([program]) => program === "agent");
  return ["cluster", ...(isOfPool ? ["pool"] : []), ...(isOfNodes ? ["node"] : [])];
}

/** Adds what the variables choose to each metric of a query. */
function choose(query: string): string {
  return query.replace(/\b((?:berth|process|nodejs)_\w+)(?:\{([^}]*)\})?/g, (_, name: string, matchers?: string) => {
    const chosen = labelsOf(name).map((label) => `${label}=~"$${label}"`);
    const all = [...(matchers === undefined ? [] : [matchers]), ...chosen];
    return all.length === 0 ? name : `${name}{${all.join(", ")}}`;
  });
}

function variable(name: string, label: string, metric: string): object {
  const query = `label_values(${metric}, ${name})`;
  return {
    ...{ name, label, type: "query", datasource: DATASOURCE, definition: query, query: { query, refId: name } },
    ...{ refresh: 2, sort: 1, multi: true, includeAll: true, allValue: ".*" },
    current: { text: ["All"], value: ["$__all"] },
  };
}

const WIDTH = 24;
const PANEL_WIDTH = 8;
const PANEL_HEIGHT = 8;
const FIGURE_WIDTH = 5;
const FIGURE_HEIGHT = 4;
const DATASOURCE = { type: "prometheus", uid: "$" + "{datasource}" };

/** Returns the queries of all panels, for the test. */
export function dashboardQueries(): readonly string[] {
  const shown = [...FIGURES, ...ROWS.flatMap(([, panels]) => panels)];
  return shown.flatMap(({ queries }) => queries.map(([expression]) => choose(expression)));
}

function panels(): object[] {
  const all: object[] = FIGURES.map((figure, at) => {
    const [x, y] = [(at % 2) * FIGURE_WIDTH, Math.floor(at / 2) * FIGURE_HEIGHT];
    return stat(at + 1, figure, { x, y, w: FIGURE_WIDTH, h: FIGURE_HEIGHT });
  });
  const [left, high] = [2 * FIGURE_WIDTH, 2 * FIGURE_HEIGHT];
  all.push(poolTable(all.length + 1, { x: left, y: 0, w: WIDTH - left, h: high }));
  let y = high;
  for (const [title, row] of ROWS) {
    all.push({
      id: all.length + 1,
      type: "row",
      title,
      collapsed: false,
      panels: [],
      gridPos: { x: 0, y, w: WIDTH, h: 1 },
    });
    y++;
    for (const [index, panel] of row.entries()) {
      const x = (index * PANEL_WIDTH) % WIDTH;
      if (index > 0 && x === 0) y += PANEL_HEIGHT;
      all.push(timeSeries(all.length + 1, panel, { x, y, w: PANEL_WIDTH, h: PANEL_HEIGHT }));
    }
    y += PANEL_HEIGHT;
  }
  return all;
}

function stepsOf({ warning, critical, isLowBad }: Pick<Figure, "warning" | "critical" | "isLowBad">): object[] {
  const [good, fair, bad] = ["green", "orange", "red"];
  return isLowBad
    ? [
        { color: bad, value: null },
        { color: fair, value: critical },
        { color: good, value: warning },
      ]
    : [
        { color: good, value: null },
        { color: fair, value: warning },
        { color: bad, value: critical },
      ];
}

const instant = (refId: string, expr: string) => ({
  ...{ refId, datasource: DATASOURCE, expr: choose(expr), instant: true, format: "table" },
});

/** All that Grafana's schema wants of a link besides its title and place. */
const LINK = {
  ...{ type: "link", icon: "doc", tooltip: "", tags: [], targetBlank: true },
  ...{ asDropdown: false, includeVars: false, keepTime: false },
};

function stat(id: number, figure: Figure, gridPos: object): object {
  const { title, unit, queries, description = "", runbook } = figure;
  return {
    ...{ id, type: "stat", title, description, datasource: DATASOURCE, gridPos },
    links: [{ ...LINK, title: "What to do", url: `${manifest.homepage}/docs/runbooks.html#${runbook}` }],
    fieldConfig: {
      defaults: { unit, decimals: 0, thresholds: { mode: "absolute", steps: stepsOf(figure) } },
      overrides: [],
    },
    options: { colorMode: "background", graphMode: "none", reduceOptions: { calcs: ["lastNotNull"] } },
    targets: queries.map(([expr]) => ({ ...instant("A", expr), format: "time_series" })),
  };
}

/** The pools, the one with the smallest free share first; a click shows only that pool. */
function poolTable(id: number, gridPos: object): object {
  const queries = [
    ["A", FREE_SHARE],
    ["B", 'max by (pool, family) (berth_pool_addresses{state="free"})'],
    ["C", "max by (pool, family) (berth_pool_size_addresses)"],
    ["D", 'max by (pool, family) (berth_pool_addresses{state="quarantined"})'],
  ] as const;
  const names = { pool: "Pool", family: "Family", "Value #A": "Free", "Value #B": "Free addresses" };
  const share = [
    { id: "unit", value: "percentunit" },
    { id: "custom.cellOptions", value: { type: "color-background" } },
    {
      id: "thresholds",
      value: { mode: "absolute", steps: stepsOf({ warning: 0.1, critical: 0.02, isLowBad: true }) },
    },
  ];
  const link = { title: "Only this pool", url: "/d/berth-overview?var-pool=$" + "{__value.raw}" };
  return {
    ...{ id, type: "table", title: "Pools, fullest first", description: "", datasource: DATASOURCE, gridPos },
    fieldConfig: {
      defaults: { unit: "short" },
      overrides: [
        { matcher: { id: "byName", options: "Free" }, properties: share },
        { matcher: { id: "byName", options: "Pool" }, properties: [{ id: "links", value: [link] }] },
      ],
    },
    options: { sortBy: [{ displayName: "Free", desc: false }] },
    transformations: [
      { id: "merge", options: {} },
      {
        id: "organize",
        options: {
          excludeByName: { Time: true },
          renameByName: { ...names, "Value #C": "Addresses", "Value #D": "Quarantined" },
        },
      },
    ],
    targets: queries.map(([refId, expr]) => instant(refId, expr)),
  };
}

function timeSeries(id: number, { title, unit, queries, description = "" }: Panel, gridPos: object): object {
  return {
    id,
    type: "timeseries",
    title,
    description,
    datasource: DATASOURCE,
    gridPos,
    fieldConfig: { defaults: { unit, min: 0, custom: { fillOpacity: 10, showPoints: "never" } }, overrides: [] },
    options: { legend: { displayMode: "list", placement: "bottom" }, tooltip: { mode: "multi", sort: "desc" } },
    targets: queries.map(([expr, legendFormat], index) => ({
      refId: String.fromCharCode("A".charCodeAt(0) + index),
      datasource: DATASOURCE,
      expr: choose(expr),
      legendFormat,
    })),
  };
}

/** Returns the dashboard as JSON, which can have no header. */
export function dashboardText(): GeneratedText {
  const dashboard = {
    description:
      "Addresses, calls and health of Berth. Code generated by npm run generate from scripts/chart/dashboard.ts; DO NOT EDIT.",
    editable: true,
    graphTooltip: 1,
    panels: panels(),
    refresh: "1m",
    schemaVersion: 39,
    tags: ["berth"],
    templating: {
      list: [
        { name: "datasource", label: "Data source", type: "datasource", query: "prometheus", current: {} },
        variable("cluster", "Cluster", "berth_build_info"),
        variable("node", "Node", "berth_agent_ready"),
        variable("pool", "Pool", "berth_pool_size_addresses"),
      ],
    },
    time: { from: "now-6h", to: "now" },
    timezone: "",
    title: "Berth",
    uid: "berth-overview",
  };
  return { path: `${CHART}/files/dashboard.json`, text: `${JSON.stringify(dashboard, null, 2)}\n` };
}
