/**
 * Machines on the segment that have the addresses of the pool `taken`: a link with a MAC address of its own for each,
 * so that none looks like a switch that answers for all. Effects: a namespace, gone with the stack.
 */
import { runPlugin } from "../../test/lab/cnitool.ts";
import { requireCommand } from "../../test/lab/command.ts";
import { createNetns, type Netns } from "../../test/lab/netns.ts";
import { berthIpam, MOST_RIVALS, mainConf, rivalAddress, TAKEN } from "./configuration.ts";
import { BRIDGE, type Node } from "./node.ts";

/** CNI error code of an address conflict (docs/errors.md). */
const ADDRESS_CONFLICT = 104;

export async function openRivals(node: Node): Promise<AsyncDisposableStack> {
  await using stack = new AsyncDisposableStack();
  const netns = await createNetns(`${node.segment.name}-rivals`);
  stack.defer(() => netns.delete());
  const numbers = Array.from({ length: MOST_RIVALS }, (_, index) => index);
  // Each answers on its own link only.
  await run(netns, ["echo 1 > /proc/sys/net/ipv4/conf/all/arp_ignore"]);
  await run(
    node.segment,
    numbers.flatMap((number) => [
      `ip link add r${number} type veth peer name eth${number} netns ${netns.name}`,
      `ip link set r${number} master ${BRIDGE} up`,
    ]),
  );
  await run(
    netns,
    numbers.flatMap((number) => [
      `ip addr add ${rivalAddress(number)}/32 dev eth${number}`,
      `ip link set eth${number} up`,
    ]),
  );
  await requireConflict(node);
  return stack.move();
}

async function run(netns: Netns, script: readonly string[]): Promise<void> {
  await requireCommand(netns.enter(["sh", "-e"]), { stdin: `${script.join("\n")}\n` });
}

/** Throws when a conflict is not found: then there is nothing to measure. */
async function requireConflict({ netns, agent, pods }: Node): Promise<void> {
  const number = await pods.make(1, () => ({ kind: "bare" }));
  const { stdout, text } = await runPlugin({
    plugin: "berth",
    command: "ADD",
    containerId: `rivals-${number}`,
    netns: pods.path(number),
    ifName: "eth0",
    args: `IgnoreUnknown=1;K8S_POD_NAMESPACE=bench;K8S_POD_NAME=rivals-${number}`,
    stdin: mainConf(TAKEN, berthIpam(TAKEN)),
    env: agent.env,
    node: netns,
  });
  await pods.remove(number, 1);
  if (stdout?.code !== ADDRESS_CONFLICT) throw new Error(`A rival's address was not refused: ${text}`);
}
