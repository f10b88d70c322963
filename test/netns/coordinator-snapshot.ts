/** All that the coordinator could change in a node and its pod, as values to compare two moments by. */
import { spawn } from "node:child_process";
import type { Names } from "./coordinator-world.ts";
import { withoutVolatile } from "./kernel-scene.ts";

function run(argv: readonly string[], input?: string): Promise<string> {
  const [command = "", ...rest] = argv;
  const child = spawn(command, rest, { stdio: [input === undefined ? "ignore" : "pipe", "pipe", "inherit"] });
  child.stdin?.end(input);
  let text = "";
  child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", () => resolve(text));
  });
}

/** Returns the answers of `ip` to the lines, as JSON; one line of answer for each. */
async function askIp(netns: string, options: readonly string[], lines: readonly string[]): Promise<unknown[]> {
  return (await run(["ip", "-n", netns, "-j", ...options, "-batch", "-"], lines.join("\n")))
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line): unknown => JSON.parse(line));
}

const SETTINGS = ["ipv4/conf/*/rp_filter", "ipv6/conf/*/disable_ipv6", "ipv6/conf/*/accept_dad"];

async function snapshotOf(netns: string): Promise<Record<string, unknown>> {
  const paths = SETTINGS.map((path) => `/proc/sys/net/${path}`).join(" ");
  // Not `ip netns exec`, which mounts /sys each time.
  const inside = ["nsenter", `--net=/run/netns/${netns}`, "sh", "-c", `nft -j list ruleset; grep -s '' ${paths}`];
  const [both, six, neighbours, rest] = await Promise.all([
    askIp(netns, ["-d"], ["link", "addr", "route show table all", "rule"]),
    askIp(netns, ["-d", "-6"], ["route show table all", "rule"]),
    askIp(netns, ["-d"], ["neigh show nud permanent"]),
    run(inside),
  ]);
  const [nft = "", ...sysctls] = rest.trim().split("\n");
  return {
    both: withoutVolatile(both),
    six: withoutVolatile(six),
    neighbours: withoutVolatile(neighbours)
      .flat()
      .map((one: unknown) => JSON.stringify(one))
      .sort(),
    nft: withoutVolatile(JSON.parse(nft)),
    sysctls: sysctls.sort(),
  };
}

interface RuleWords {
  readonly priority: number;
}

function isRule(value: unknown): value is RuleWords {
  return typeof value === "object" && value !== null && "priority" in value;
}

/**
 * Rules of one preference in one order: each is for another source, and one that is added again stands behind the
 * others.
 */
function orderRules(value: unknown): unknown {
  if (Array.isArray(value) && value.length > 0 && value.every(isRule)) {
    return value.toSorted((a, b) => a.priority - b.priority || (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
  }
  if (Array.isArray(value)) return value.map(orderRules);
  return value;
}

export type Snapshot = Readonly<Record<keyof Names, Record<string, unknown>>>;

/** Links, addresses, routes of all tables, rules, fixed neighbours, nf_tables and settings of both namespaces. */
export async function snapshot(names: Names): Promise<Snapshot> {
  const [pod, node] = await Promise.all([snapshotOf(names.pod), snapshotOf(names.node)]);
  const order = (part: Record<string, unknown>): Record<string, unknown> =>
    Object.fromEntries(Object.entries(part).map(([key, value]) => [key, orderRules(value)]));
  return { pod: order(pod), node: order(node) };
}
