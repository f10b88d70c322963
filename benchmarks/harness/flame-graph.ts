/**
 * Flame graphs of an agent: V8's CPU profiles of its threads, drawn beside each other.
 * Effects: reads the profiles, writes the picture.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Options of Node.js for an agent that leaves its profiles in `directory` when it ends. */
export function profilingOptions(directory: string): string[] {
  return ["--cpu-prof", `--cpu-prof-dir=${directory}`];
}

/** V8's CPU profile, as far as it is read. Times are microseconds of CLOCK_MONOTONIC. */
interface Profile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string };
    readonly children?: readonly number[];
  }[];
  readonly startTime: number;
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** A function with what it called: time of all of it, in microseconds. */
interface Frame {
  readonly name: string;
  us: number;
  readonly callees: Map<string, Frame>;
}

/** Now, on the clock of the profiles: microseconds. */
export function nowUs(): number {
  return Number(process.hrtime.bigint() / 1000n);
}

interface Picture {
  /** Folder of the agent's profiles. */
  readonly directory: string;
  /** Samples before this are of the warm-up. */
  readonly fromUs: number;
  readonly pairs: number;
  /** Description of a pair: `One ADD and its DEL of IPAM`. */
  readonly subject: string;
  readonly svgPath: string;
}

/** Draws the profiles, and prints how long each thread was at work per pair. */
export function drawProfiles({ directory, fromUs, pairs, subject, svgPath }: Picture): void {
  const names = readdirSync(directory).filter((name) => name.endsWith(".cpuprofile"));
  const threads = names
    .map((name) => readFrames(JSON.parse(readFileSync(join(directory, name), "utf8")) as Profile, fromUs))
    .filter(({ us }) => us > 0)
    .sort((a, b) => b.us - a.us);
  const totalUs = threads.reduce((sum, { us }) => sum + us, 0);
  const title = `${subject} in the agent: ${Math.round(totalUs / pairs)} µs, mean of ${pairs} pairs`;
  writeFileSync(svgPath, render(threads, pairs, title));
  for (const { name, us } of threads) console.log(`${name}: ${Math.round(us / pairs)} µs per pair`);
}

/** Threads by the file that only they run. */
const WORKERS: readonly (readonly [file: string, thread: string])[] = [
  ["sqlite-worker", "registry's thread"],
  ["link-remover-worker", "thread that deletes links"],
];

function threadOf({ nodes }: Profile): string {
  const found = WORKERS.find(([file]) => nodes.some(({ callFrame }) => callFrame.url.includes(file)));
  return found?.[1] ?? "main thread";
}

/** The samples from `fromUs` on as one tree; without those that were idle. */
function readFrames(profile: Profile, fromUs: number): Frame {
  const { nodes, startTime, samples, timeDeltas } = profile;
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const callers = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)));
  const nameOf = (id: number): string => {
    const { functionName, url } = byId.get(id)?.callFrame ?? { functionName: "", url: "" };
    return functionName || (url.startsWith("node:") ? url : "(anonymous)");
  };
  const top: Frame = { name: threadOf(profile), us: 0, callees: new Map() };
  let atUs = startTime;
  for (const [index, id] of samples.entries()) {
    const us = timeDeltas[index] ?? 0;
    atUs += us;
    if (atUs < fromUs || nameOf(id) === "(idle)") continue;
    const stack: string[] = [];
    for (let at = id; callers.has(at); at = callers.get(at) ?? 0) stack.unshift(nameOf(at));
    top.us += us;
    let frame = top;
    for (const name of stack) {
      const callee = frame.callees.get(name) ?? { name, us: 0, callees: new Map() };
      frame.callees.set(name, callee);
      callee.us += us;
      frame = callee;
    }
  }
  return top;
}

const WIDTH = 1_200;
const ROW = 17;
const MAX_DEPTH = 22;
const MIN_WIDTH = 2;
const COLOURS = ["#f2a65a", "#eec170", "#f58549", "#e9c46a", "#f4a261"];

function escapeXml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}

/** The threads beside each other, callers above what they call, the widest first. */
function render(threads: readonly Frame[], pairs: number, title: string): string {
  const totalUs = threads.reduce((sum, { us }) => sum + us, 0);
  const parts: string[] = [];
  const draw = (frame: Frame, x: number, depth: number): void => {
    const width = (frame.us / totalUs) * WIDTH;
    if (width < MIN_WIDTH || depth > MAX_DEPTH) return;
    const y = ROW * (depth + 2);
    const label = `${frame.name} ${Math.round(frame.us / pairs)} µs`;
    const shown = label.slice(0, Math.floor(width / 6.2));
    const colour = COLOURS[frame.name.length % COLOURS.length];
    parts.push(
      `<g><title>${escapeXml(label)}</title><rect x="${x.toFixed(1)}" y="${y}" width="${(width - 0.5).toFixed(1)}" height="${ROW - 1}" fill="${colour}"/>${shown.length > 3 ? `<text x="${(x + 2).toFixed(1)}" y="${y + 12}">${escapeXml(shown)}</text>` : ""}</g>`,
    );
    let at = x;
    for (const callee of [...frame.callees.values()].sort((a, b) => b.us - a.us)) {
      draw(callee, at, depth + 1);
      at += (callee.us / totalUs) * WIDTH;
    }
  };
  let x = 0;
  for (const thread of threads) {
    draw(thread, x, 0);
    x += (thread.us / totalUs) * WIDTH;
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${ROW * (MAX_DEPTH + 4)}" font-family="monospace" font-size="10">
<rect width="100%" height="100%" fill="#fff"/><text x="4" y="18" font-size="14">${title}</text>
${parts.join("\n")}
</svg>
`;
}
