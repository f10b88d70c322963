/**
 * The smallest place for an ipvlan pod of the built shim and agent: a node, a pod on its eth0, and another machine at the other end of that wire.
 *
 *   pod eth0 (ipvlan) ── node eth0 ───── eth0 other        10.60.0.50, .11, .12 and fd00:60::50, ::11, ::12
 *
 * Effects: namespaces and an agent until `delete`.
 */
import { expect } from "vitest";
import { FAMILIES, type Family } from "../../host/net/ip.ts";
import { LAB_NETWORKS, NODE_HOSTS, segmentAddress } from "../../scripts/lab/addressing.ts";
import { type Agent, startAgent } from "../../scripts/lab/agent.ts";
import { type PluginOutcome, runPlugin } from "../../scripts/lab/cnitool.ts";
import { requireCommand } from "../../scripts/lab/command.ts";
import { addVeth, createNetns, type Netns } from "../../scripts/lab/netns.ts";
import { type Refusal, vendorConf } from "../e2e/world.ts";

const [NODE_HOST, OTHER_HOST] = NODE_HOSTS;
const POD_HOST = 50;

type Verb = "ADD" | "CHECK" | "DEL";

/** What is there, but for neighbours that come and go by themselves. */
const COMMANDS = [
  "ip -d -j link",
  "ip -d -j addr",
  "ip -j route show table all",
  "ip -j -6 route show table all",
  "ip -j rule",
  "ip -j -6 rule",
  "ip neigh show nud permanent",
  "grep -rs '' /proc/sys/net/ipv4/conf /proc/sys/net/ipv6/conf | sort",
];

export class IpvlanWorld {
  readonly node: Netns;
  readonly other: Netns;
  readonly pod: Netns;
  readonly agent: Agent;

  constructor(places: { node: Netns; other: Netns; pod: Netns }, agent: Agent) {
    ({ node: this.node, other: this.other, pod: this.pod } = places);
    this.agent = agent;
  }

  get containerId(): string {
    return `c-${this.pod.name}`;
  }

  /** The coordinator alone, after a main plugin that has given the pod its addresses. */
  call(command: Verb, conf: object): Promise<PluginOutcome> {
    const prevResult = {
      cniVersion: "1.1.0",
      interfaces: [{ name: "eth0", sandbox: this.pod.path }],
      ips: FAMILIES.map((family) => ({ address: withLength(addressOf.pod(family), family), interface: 0 })),
    };
    const { containerId, agent } = this;
    const stdin = { cniVersion: "1.1.0", name: "lab", type: "coordinator", prevResult, ...conf };
    const attachment = { containerId, netns: this.pod.path, ifName: "eth0" };
    return runPlugin({ plugin: "coordinator", command, ...attachment, stdin, env: agent.env, node: this.node });
  }

  async refused(command: Verb, conf: object): Promise<Refusal> {
    const outcome = await this.call(command, conf);
    expect(outcome.exitCode, `${command}: ${outcome.text}${outcome.stderr}`).toBe(1);
    return outcome.stdout;
  }

  /** Of the node and the pod; lines, for a comparison that shows which one differs. */
  async state(): Promise<string[]> {
    const texts: string[] = [];
    for (const netns of [this.node, this.pod])
      texts.push(await requireCommand(netns.enter(["sh", "-ec", COMMANDS.join("; echo; ")])));
    return texts.flatMap((text) => text.split("\n"));
  }

  async delete(): Promise<void> {
    await this.agent.delete();
    for (const netns of [this.pod, this.other, this.node]) await netns.delete();
  }
}

export const addressOf = {
  node: (family: Family) => segmentAddress(0, NODE_HOST ?? 0, family),
  other: (family: Family) => segmentAddress(0, OTHER_HOST ?? 0, family),
  pod: (family: Family) => segmentAddress(0, POD_HOST, family),
};

const withLength = (address: string, family: Family) => `${address}/${family === 4 ? 24 : 64}`;

async function setAddresses(netns: Netns, name: "node" | "other" | "pod"): Promise<void> {
  for (const family of FAMILIES) {
    await netns.ip(`addr add ${withLength(addressOf[name](family), family)} dev eth0${family === 6 ? " nodad" : ""}`);
  }
}

/** The pod's default routes go to the other machine. */
export async function makeIpvlanWorld(prefix: string): Promise<IpvlanWorld> {
  const make = (name: string) => createNetns(`${prefix}-${name}-${process.pid}`);
  const places = { node: await make("node"), other: await make("other"), pod: await make("pod") };
  const { node, other, pod } = places;
  await requireCommand(node.enter(["sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"]));
  for (const netns of Object.values(places)) {
    // Link-local addresses come by themselves, and the kernel would wait for their duplicates.
    await requireCommand(netns.enter(["sysctl", "-qw", "net.ipv6.conf.default.addr_gen_mode=1"]));
  }
  await addVeth({ netns: node, name: "eth0" }, { netns: other, name: "eth0" });
  await node.ip("link add link eth0 name ipvl0 type ipvlan mode l2");
  await node.ip(`link set ipvl0 netns ${pod.name} name eth0`);
  await pod.ip("link set eth0 up");
  await setAddresses(node, "node");
  await setAddresses(other, "other");
  await setAddresses(pod, "pod");
  for (const family of FAMILIES) await pod.ip(`route add default via ${addressOf.other(family)}`);
  const agent = await startAgent({
    config: { "conf.yaml": vendorConf({ hostRouteCIDR: LAB_NETWORKS }) },
    node,
    readyMs: 60_000,
  });
  return new IpvlanWorld(places, agent);
}
