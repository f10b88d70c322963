/** Several commands of `ip` in one process: on this kernel a process is slow to start. */
import { requireCommand } from "../lab/command.ts";
import type { Netns } from "../lab/netns.ts";

/** Runs the lines in the namespace, in order, up to the first that fails. */
export async function ipBatch(netns: Netns, lines: readonly string[]): Promise<void> {
  await requireCommand(netns.enter(["ip", "-batch", "-"]), { stdin: `${lines.join("\n")}\n` });
}
