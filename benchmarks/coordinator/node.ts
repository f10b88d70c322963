/**
 * A node for the benchmark: a namespace with an uplink into a switch, an agent in it, and as many other pods as wanted.
 *
 *      node ── uplink ════ p0 ── switch br0 (10.6.0.1, fd00:6::1)
 *       └─ macvlan eth0 of each pod
 *
 * Pods are made by pods.ts.
 * Effects: namespaces, an agent; all removed by the stack.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Agent, startAgent } from "../../test/lab/agent.ts";
import { addBridge, addVeth, createNetns, type Netns } from "../../test/lab/netns.ts";
import { definitions, manifests } from "./configuration.ts";
import { attachOthers, Pods } from "./pods.ts";

export const UPLINK = "uplink";
export const BRIDGE = "br0";

export interface Node {
  /** As the tables name it. */
  readonly name: string;
  readonly netns: Netns;
  /** The segment that the uplink leads to. */
  readonly segment: Netns;
  readonly agent: Agent;
  readonly pods: Pods;
  /** Folder for files of this node. */
  readonly directory: string;
}

/** A node with `others` pods that are attached, with both families, and stay. */
export async function openNode(
  stack: AsyncDisposableStack,
  id: string,
  directory: string,
  others: number,
): Promise<Node> {
  const segment = await createNetns(`${id}-segment`);
  stack.defer(() => segment.delete());
  const netns = await createNetns(`${id}-node`);
  stack.defer(() => netns.delete());
  await connect(netns, segment);
  const agent = await startAgent({ node: netns, config: { "pools.yaml": manifests() } });
  stack.defer(() => agent.delete());
  for (const [name, text] of Object.entries(definitions())) writeFileSync(join(agent.cniConfDir, name), text);
  const pods = new Pods(id, netns, UPLINK);
  stack.defer(() => pods.delete());
  const name = others === 0 ? "no other pod" : `${others} other pods`;
  const node = { name, netns, segment, agent, pods, directory };
  if (others > 0) await attachOthers(node, others);
  return node;
}

/** The node's uplink into the segment's switch, addresses and routes. */
export async function connect(netns: Netns, segment: Netns): Promise<void> {
  await addVeth({ netns: segment, name: "p0" }, { netns, name: UPLINK });
  await addBridge(segment, BRIDGE, ["p0"]);
  for (const [place, link, host] of [
    [segment, BRIDGE, 1],
    [netns, UPLINK, 2],
  ] as const) {
    await place.ip(`addr add 10.6.0.${host}/16 dev ${link}`);
    await place.ip(`addr add fd00:6::${host}/64 dev ${link} nodad`);
  }
  await netns.ip("route add default via 10.6.0.1");
  await netns.ip("-6 route add default via fd00:6::1");
  const forward = "echo 1 > /proc/sys/net/ipv4/ip_forward && echo 1 > /proc/sys/net/ipv6/conf/all/forwarding";
  const { exitCode, stderr } = await netns.exec(["sh", "-c", forward]);
  if (exitCode !== 0) throw new Error(`The node does not forward: ${stderr}`);
}
