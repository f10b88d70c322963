/** The report of a scale run: a table of its phases, and plots over simulated time. */
import { formatFigure, formatTable } from "../../lab/statistics.ts";
import type { Sample, ScaleReport } from "./run-scale.ts";

interface Line {
  readonly name: string;
  /** Undefined where nothing was measured. */
  readonly of: (sample: Sample) => number | undefined;
}

interface TimePlot {
  readonly title: string;
  readonly unit: string;
  readonly isLogarithmic: boolean;
  readonly lines: readonly Line[];
}

const WIDTH = 860;
const HEIGHT = 340;
const [LEFT, RIGHT, TOP, BOTTOM] = [64, 170, 44, 60];
const COLOURS = ["#1b6ca8", "#d1495b", "#3c8d5a", "#8a6d3b", "#6a4c93"];
/** Points of one line at most: seconds are gathered to their mean. */
const MOST_POINTS = 200;

function requestsOf(...kinds: readonly string[]): Line["of"] {
  return ({ requests }) => kinds.reduce((sum, kind) => sum + (requests[kind] ?? 0), 0);
}

const BERTH_WRITES = ["POST ipallocations", "PUT ipallocations", "DELETE ipallocations"];

const PLOTS: Readonly<Record<string, TimePlot>> = {
  add: {
    title: "Time of an ADD",
    unit: "milliseconds, logarithmic",
    isLogarithmic: true,
    lines: [
      { name: "p50", of: ({ adds, addP50Ms }) => (adds === 0 ? undefined : addP50Ms) },
      { name: "p99", of: ({ adds, addP99Ms }) => (adds === 0 ? undefined : addP99Ms) },
    ],
  },
  requests: {
    title: "Requests to the API server",
    unit: "requests a second",
    isLogarithmic: false,
    lines: [
      { name: "create allocation", of: requestsOf("POST ipallocations") },
      { name: "replace, delete", of: requestsOf("PUT ipallocations", "DELETE ipallocations") },
      {
        name: "pools and usage",
        of: requestsOf("PATCH ippools", "POST ippools", "PUT ippools", "POST ippoolusages", "PUT ippoolusages"),
      },
      { name: "reads, watches", of: ({ requests }) => sumOf(requests, (kind) => kind.startsWith("GET")) },
      { name: "pods (Kubernetes)", of: requestsOf("PATCH pods") },
    ],
  },
  watches: {
    title: "Watch traffic",
    unit: "a second, logarithmic",
    isLogarithmic: true,
    lines: [
      { name: "events delivered", of: ({ deliveries }) => deliveries || undefined },
      { name: "bytes / 1000", of: ({ deliveredBytes }) => deliveredBytes / 1_000 || undefined },
    ],
  },
  server: {
    title: "API server: processors in use, and how long requests and events wait",
    unit: "processors, and milliseconds, logarithmic",
    isLogarithmic: true,
    lines: [
      { name: "processors", of: ({ serverUse }) => serverUse || undefined },
      { name: "requests wait (ms)", of: ({ serverWaitMs }) => Math.max(0.1, serverWaitMs) },
      { name: "events wait (ms)", of: ({ watchLagMs }) => Math.max(0.1, watchLagMs) },
    ],
  },
  controller: {
    title: "Controller: processor time",
    unit: "milliseconds a second",
    isLogarithmic: false,
    lines: [{ name: "controller", of: ({ controllerCpuMs }) => controllerCpuMs }],
  },
};

function sumOf(requests: Sample["requests"], isOne: (kind: string) => boolean): number {
  return Object.entries(requests).reduce((sum, [kind, count]) => (isOne(kind) ? sum + count : sum), 0);
}

export function plotsOf({ samples }: ScaleReport): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(PLOTS).map(([name, plot]) => [name, render(plot, samples)]));
}

function text(x: number, y: number, words: string, extra = ""): string {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" ${extra}>${words.replaceAll("&", "&amp;").replaceAll("<", "&lt;")}</text>`;
}

function ticksOf(low: number, high: number, isLogarithmic: boolean): number[] {
  if (isLogarithmic)
    return Array.from({ length: 12 }, (_, at) => 10 ** (at - 2)).filter((tick) => tick >= low && tick <= high);
  const step = 10 ** Math.floor(Math.log10(high / 3));
  const wide = [1, 2, 5, 10].map((factor) => factor * step).find((each) => high / each <= 6) ?? step;
  return Array.from({ length: 8 }, (_, at) => at * wide).filter((tick) => tick <= high);
}

function render({ title, unit, isLogarithmic, lines }: TimePlot, samples: readonly Sample[]): string {
  const width = Math.max(1, Math.ceil(samples.length / MOST_POINTS));
  const gathered = lines.map(({ of }) => gather(samples, of, width));
  const all = gathered.flatMap((points) => points.map(([, value]) => value));
  const [low, high] = [isLogarithmic ? Math.min(1, ...all) : 0, Math.max(1, ...all) * 1.1];
  const lastS = samples.at(-1)?.atS ?? 1;
  const x = (atS: number): number => LEFT + ((WIDTH - LEFT - RIGHT) * atS) / lastS;
  const share = (value: number): number =>
    isLogarithmic ? (Math.log(value) - Math.log(low)) / (Math.log(high) - Math.log(low)) : value / high;
  const y = (value: number): number => TOP + (HEIGHT - TOP - BOTTOM) * (1 - share(value));
  const grid = ticksOf(low, high, isLogarithmic).map((tick) => {
    const at = y(Math.max(tick, low)).toFixed(1);
    return `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${at}" y2="${at}" stroke="#ddd"/>${text(LEFT - 8, Number(at) + 4, formatFigure(tick), 'text-anchor="end"')}`;
  });
  const phases = [...new Set(samples.map(({ phase }) => phase))].map((phase, index) => {
    const fromS = samples.find((sample) => sample.phase === phase)?.atS ?? 0;
    const at = x(fromS).toFixed(1);
    return `<line x1="${at}" x2="${at}" y1="${TOP}" y2="${HEIGHT - BOTTOM}" stroke="#bbb" stroke-dasharray="3 3"/>${text(Number(at) + 3, TOP + 10, String(index + 1), 'fill="#888"')}`;
  });
  const drawn = lines.map(({ name }, index) => {
    const colour = COLOURS[index % COLOURS.length];
    const points = (gathered[index] ?? []).map(([atS, value]) => `${x(atS).toFixed(1)},${y(value).toFixed(1)}`);
    const legend = TOP + 10 + index * 20;
    return `<polyline points="${points.join(" ")}" fill="none" stroke="${colour}" stroke-width="1.5"/><line x1="${WIDTH - RIGHT + 10}" x2="${WIDTH - RIGHT + 30}" y1="${legend - 4}" y2="${legend - 4}" stroke="${colour}" stroke-width="2"/>${text(WIDTH - RIGHT + 36, legend, name)}`;
  });
  const times = Array.from({ length: 6 }, (_, at) => (lastS * at) / 5).map((atS) =>
    text(x(atS), HEIGHT - BOTTOM + 18, `${atS.toFixed(0)} s`, 'text-anchor="middle"'),
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">`,
    `<title>${title}</title>`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="white"/>`,
    text(LEFT, 22, title, 'font-size="14" font-weight="bold"'),
    text(LEFT, HEIGHT - 14, `${unit}; simulated time; dashed: the phases of the report`, 'fill="#555"'),
    ...grid,
    ...phases,
    ...times,
    ...drawn,
    "</svg>",
    "",
  ].join("\n");
}

function gather(samples: readonly Sample[], of: Line["of"], width: number): (readonly [number, number])[] {
  const points: (readonly [number, number])[] = [];
  for (let first = 0; first < samples.length; first += width) {
    const some = samples.slice(first, first + width);
    const values = some.map(of).filter((value) => value !== undefined && Number.isFinite(value)) as number[];
    const at = some[0];
    if (at !== undefined && values.length > 0)
      points.push([at.atS, values.reduce((sum, value) => sum + value, 0) / values.length]);
  }
  return points;
}

export function describeScale(report: ScaleReport): string {
  const { options, phases, samples, steps, cpuSeconds, mostMib, agentMib, agentRequests, failures } = report;
  const { nodes, full, pods, pools, rate, processors, seed, loadS } = options;
  const command = `npm run simulate:scale -- --nodes ${nodes} --full ${full} --pods ${pods} --pools ${pools} --rate ${rate} --load ${loadS} --processors ${processors} --seed ${seed}`;
  const table = formatTable({
    title: "## Phases",
    columns: [
      "Phase",
      "s",
      "ADDs",
      "p50 ms",
      "p99 ms",
      "requests/s",
      "events delivered/s",
      "processors",
      "worst wait ms",
      "worst event lag ms",
      "controller CPU",
    ],
    rows: phases.map((phase, index) => [
      `${index + 1} ${phase.name}`,
      ...[
        phase.seconds,
        phase.adds,
        phase.addP50Ms,
        phase.addP99Ms,
        phase.requestsPerSecond,
        phase.deliveriesPerSecond,
        phase.serverUse,
        phase.worstWaitMs,
        phase.worstLagMs,
        phase.controllerUse,
      ].map(formatFigure),
    ]),
  });
  const notes = phases.flatMap(({ name, notes: own }) => own.map((note) => `* ${name}: ${note}.`));
  const peak = new Map<string, number>();
  for (const { requests } of samples)
    for (const [kind, count] of Object.entries(requests)) peak.set(kind, Math.max(peak.get(kind) ?? 0, count));
  const kinds = formatTable({
    title: "## Requests",
    columns: ["Request", "all", "most in a second"],
    rows: [...peak]
      .sort(([, a], [, b]) => b - a)
      .slice(0, 16)
      .map(([kind, most]) => [
        kind,
        formatFigure(samples.reduce((sum, { requests }) => sum + (requests[kind] ?? 0), 0)),
        formatFigure(most),
      ]),
  });
  const perPod = Object.entries(agentRequests)
    .filter(([, count]) => count >= 0.005)
    .map(([kind, count]) => `${formatFigure(count)} ${kind}`);
  const berth = samples.reduce((sum, { requests }) => sum + sumOf(requests, (kind) => BERTH_WRITES.includes(kind)), 0);
  const rest = [
    `A full agent takes ${formatFigure(agentMib)} MiB of this process, and sends for each ADD while pods start: ${perPod.join(", ")}.`,
    `${formatFigure(berth)} writes of allocations in all. ${formatFigure(steps)} steps in ${formatFigure(cpuSeconds)} s of processor time; the process had ${formatFigure(mostMib)} MiB at most.`,
    Object.keys(failures).length === 0
      ? "No ADD was refused."
      : `ADDs that were refused and tried again:\n\n${Object.entries(failures)
          .sort(([, a], [, b]) => b - a)
          .slice(0, 8)
          .map(([reason, count]) => `* ${count}: ${reason.replaceAll("\n", " ")}`)
          .join("\n")}`,
  ].join("\n\n");
  return `# A scale run\n\n\`${command}\`\n\n${table}\n\n${notes.join("\n")}\n\n${kinds}\n\n## Cost\n\n${rest}\n`;
}
