/** All that the kernel tells of a namespace's network, as text that is equal while nothing changes. */
import { requireCommand } from "../../scripts/lab/command.ts";
import type { Netns } from "../../scripts/lab/netns.ts";

const COMMANDS = [
  "ip -d -j link",
  "ip -d -j addr",
  "ip -d -j route show table all",
  "ip -d -j -6 route show table all",
  "ip -d -j rule",
  "ip -d -j -6 rule",
  "ip -d -j neigh",
  "nft -j list ruleset",
  // Some can be written only. How much is tracked just now is no setting.
  "grep -rs '' /proc/sys/net | grep -v nf_conntrack_count | sort; true",
];

const BRIDGE_TIMERS = /"(?:hello|tcn|topology_change|gc)_timer": *[0-9.]+/g;

/** How much of a long line is shown on each side of a difference. */
const SHOWN = 100;

/** By command; `set -e` makes a command that fails an error, not an empty state. */
export async function readNetworkState(netns: Netns): Promise<string> {
  const script = COMMANDS.map((command) => `echo '== ${command.replaceAll("'", "")}'; ${command}; echo`).join("\n");
  return (await requireCommand(netns.enter(["sh", "-ec", script]))).replace(BRIDGE_TIMERS, "");
}

/** Reads until two readings in a row agree: addresses and neighbours that have just come are still on their way. */
export async function readSettledState(...namespaces: readonly Netns[]): Promise<string> {
  const read = async (): Promise<string> => (await Promise.all(namespaces.map(readNetworkState))).join("\n");
  const deadline = performance.now() + 10_000;
  for (let before = await read(); ; ) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    const now = await read();
    if (now === before) return now;
    if (performance.now() > deadline) throw new Error(`The network does not settle:\n${firstDifference(before, now)}`);
    before = now;
  }
}

/** The first line in which two states differ, for messages that a person can read. "" when they are equal. */
export function firstDifference(before: string, after: string): string {
  const [a, b] = [before.split("\n"), after.split("\n")];
  const at = Array.from({ length: Math.max(a.length, b.length) }).findIndex((_, index) => a[index] !== b[index]);
  if (at < 0) return "";
  const heading = a.slice(0, at + 1).findLast((line) => line.startsWith("== "));
  const [old = "nothing", now = "nothing"] = [a[at], b[at]];
  const start = Array.from(old).findIndex((unit, index) => now[index] !== unit);
  const around = (line: string): string => line.slice(Math.max(0, start - SHOWN), start + SHOWN);
  return `${heading}\n- ${around(old)}\n+ ${around(now)}`;
}
