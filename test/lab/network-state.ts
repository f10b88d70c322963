/** A namespace's network state in the kernel, as lines that are equal while nothing changes. */
import { setTimeout as sleep } from "node:timers/promises";
import { requireCommand } from "./command.ts";
import type { Netns } from "./netns.ts";

export interface StateOptions {
  /** Default: all; fixed ones are the same while others come and go by themselves. */
  readonly neighbours?: "permanent";
  /** Default: true; a kernel may lack nf_tables. */
  readonly nft?: boolean;
  /** Default: true. */
  readonly sysctls?: boolean;
}

const BRIDGE_TIMERS = /"(?:hello|tcn|topology_change|gc)_timer": *[0-9.]+/g;

function commandsOf({ neighbours, nft = true, sysctls = true }: StateOptions): string[] {
  return [
    ...["link", "addr", "-4 route show table all", "-6 route show table all", "-4 rule", "-6 rule"],
    neighbours === undefined ? "neigh" : `neigh show nud ${neighbours}`,
  ]
    .map((words) => `ip -d -j ${words}`)
    .concat(nft ? ["nft -j list ruleset"] : [])
    .concat(sysctls ? ["grep -rs '' /proc/sys/net | grep -v nf_conntrack_count | sort; true"] : []);
}

/** An object of a list, or a setting, to a line. `set -e` makes a command that fails an error, not an empty state. */
export async function readNetworkState(netns: Netns, options: StateOptions = {}): Promise<string[]> {
  const text = await requireCommand(netns.enter(["sh", "-ec", commandsOf(options).join("; echo\n")]));
  return text.replace(BRIDGE_TIMERS, "").split(/(?<=\},)|\n/);
}

/** Reads until two readings in a row agree: addresses and neighbours that have just come are still on their way. */
export async function readStableState(...namespaces: readonly Netns[]): Promise<string[]> {
  const read = async (): Promise<string[]> =>
    (await Promise.all(namespaces.map((each) => readNetworkState(each)))).flat();
  const deadline = performance.now() + 10_000;
  for (let before = await read(); ; ) {
    await sleep(50);
    const now = await read();
    if (isSameState(before, now)) return now;
    if (performance.now() > deadline) requireSameState(before, now, "The network does not come to rest");
    before = now;
  }
}

export function isSameState(before: readonly string[], now: readonly string[]): boolean {
  return before.join("\n") === now.join("\n");
}

/** Throws the first line in which two states differ. */
export function requireSameState(before: readonly string[], now: readonly string[], what: string): void {
  if (isSameState(before, now)) return;
  const at = [...now, undefined].findIndex((line, index) => line !== before[index]);
  throw new Error(`${what}: the network has changed\n- ${before[at]}\n+ ${now[at]}`);
}
