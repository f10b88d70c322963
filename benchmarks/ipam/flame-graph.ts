/**
 * Where the time of an ADD and its DEL goes: `node benchmarks/ipam/flame-graph.ts [PAIRS]` profiles an agent while the shim makes calls, and draws
 * docs/ipam-add.svg from the samples of both threads.
 * Effects: an agent, one network namespace, docs/ipam-add.svg.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AGENT_SETTINGS } from "../../host/bin/run-main.ts";
import { startAgent } from "../../scripts/lab/agent.ts";
import { berthBin } from "../../scripts/lab/cnitool.ts";
import { createNetns } from "../../scripts/lab/netns.ts";
import { root } from "../../scripts/setup/paths.mjs";
import { runBatch } from "../harness/runner.ts";
import { writeNetConf } from "./berth.ts";
import { callEnvironment } from "./contestant.ts";

const PAIRS_AT_ONCE = 100;
const WARM_UP_PAIRS = 500;

const POOL = `apiVersion: ipam.vendor.io/v1
kind: IPPool
metadata: {name: bench}
spec: {subnet: 10.9.0.0/24, ips: [10.9.0.2-10.9.0.254], gateway: 10.9.0.1, default: true, cooldown: 0s}
`;

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

async function main(pairs: number): Promise<void> {
  const directory = join(root, ".scratch", `flame-${process.pid}`);
  mkdirSync(directory, { recursive: true });
  const netns = await createNetns(`berth-flame-${process.pid}`);
  try {
    const fromUs = await runProfiled(directory, netns.path, pairs);
    const profiles = readdirSync(directory).filter((name) => name.endsWith(".cpuprofile"));
    const threads = profiles.sort().map((name, index): Frame => {
      const profile = JSON.parse(readFileSync(join(directory, name), "utf8")) as Profile;
      return readFrames(profile, fromUs, index === 0 ? "main thread" : "registry's thread");
    });
    writeFileSync(join(root, "docs", "ipam-add.svg"), render(threads, pairs));
    for (const thread of threads) console.log(`${thread.name}: ${Math.round(thread.us / pairs)} µs per pair`);
  } finally {
    await netns.delete();
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Returns when the measured calls began. */
async function runProfiled(directory: string, netnsPath: string, pairs: number): Promise<number> {
  const nodeOptions = [...AGENT_SETTINGS.options, "--cpu-prof", `--cpu-prof-dir=${directory}`];
  const agent = await startAgent({ config: { "pool.yaml": POOL }, nodeOptions });
  try {
    const place = { directory, netnsPath };
    const stdinFile = writeNetConf(place);
    const run = async (command: "ADD" | "DEL", first: number): Promise<void> => {
      const env = callEnvironment(command, place, agent.env);
      await runBatch({
        subject: { path: join(berthBin, "berth"), stdinFile, env },
        atOnce: 1,
        first,
        count: PAIRS_AT_ONCE,
      });
    };
    let fromUs = 0;
    for (let done = 0; done < WARM_UP_PAIRS + pairs; done += PAIRS_AT_ONCE) {
      if (done === WARM_UP_PAIRS) fromUs = Number(process.hrtime.bigint() / 1000n);
      await run("ADD", done);
      await run("DEL", done);
    }
    return fromUs;
  } finally {
    await agent.delete();
  }
}

/** The samples from `fromUs` on as one tree; without those that were idle. */
function readFrames({ nodes, startTime, samples, timeDeltas }: Profile, fromUs: number, thread: string): Frame {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const callers = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)));
  const nameOf = (id: number): string => {
    const { functionName, url } = byId.get(id)?.callFrame ?? { functionName: "", url: "" };
    return functionName || (url.startsWith("node:") ? url : "(anonymous)");
  };
  const top: Frame = { name: thread, us: 0, callees: new Map() };
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

/** Both threads beside each other, callers above what they call, the widest first. */
function render(threads: readonly Frame[], pairs: number): string {
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
  const title = `One ADD and its DEL of IPAM in the agent: ${Math.round(totalUs / pairs)} µs, mean of ${pairs} pairs`;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${ROW * (MAX_DEPTH + 4)}" font-family="monospace" font-size="10">
<rect width="100%" height="100%" fill="#fff"/><text x="4" y="18" font-size="14">${title}</text>
${parts.join("\n")}
</svg>
`;
}

await main(Number(process.argv[2] ?? 5_000));
