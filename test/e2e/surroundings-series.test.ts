/**
 * A random series of other programs' actions on a node, beside pods that run there: five seconds after each action all
 * ways of a pod's traffic are open, or the agent or `berthctl check` names the closed ones.
 */
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { nameVeth } from "../../host/coordinator/plan/names.ts";
import { writeSysctl } from "../../host/kernel/sysctl.ts";
import { FAMILIES, type Family } from "../../host/net/ip.ts";
import { root } from "../../scripts/setup/paths.mjs";
import { formatAddress, OUTSIDE_NETWORK, segmentAddress, segmentSubnet } from "../lab/addressing.ts";
import { requireCommand } from "../lab/command.ts";
import type { LabPod } from "../lab/netns/world.ts";
import type { Netns } from "../lab/netns.ts";
import { ask, ping } from "../lab/traffic.ts";
import { eventually } from "../lab/waiting.ts";
import { gateOrLong } from "../world/long-cases.ts";
import { Seeded } from "../world/seeded.ts";
import { makeScene, PORT, type Scene, SERVICE, SILENCE } from "./coordinator-scene.ts";

/** The long run has four such series, which wait most of the time. */
const ACTIONS = gateOrLong(30, 300);
/** In the gate the processors work for other tests, too. */
const WITHIN_MS = gateOrLong(20_000, 5_000);
/** Of both policies for traffic from outside: with and without the node's address in the client's place. */
const NODE_PORTS = { Cluster: 30_080, Local: 30_081 } as const;
/** As many are done, at most, and not undone. */
const AT_ONCE = 4;

/** After many repairs in a minute the agent rests, and it uses no table with others' routes; its health says so. */
const CUT_OFF = /Pods are cut off from this node|cannot be restored: .*a route that Berth did not create/;

interface Action {
  readonly what: string;
  /** Scripts of the node; `$PAIR` is the pod's pair there. */
  readonly does: string;
  readonly undoes: string;
  /** Ways that are closed meanwhile cannot be helped, and are named so. */
  readonly named?: RegExp;
}

/** `ip` for each family, whose variables these are. */
const both = (words: string) =>
  FAMILIES.map((family) => `ip -${family} ${words.replaceAll(/\$[A-Z]+/g, `$&${family}`)}`).join("; ");
/** Nothing is to be undone: the agent restores it. */
const DONE = "";
const once = (what: string, does: string): Action => ({ what, does, undoes: DONE });
const rule = (what: string, selector: string): Action => ({
  what,
  does: both(`rule add ${selector} lookup 7`),
  undoes: both(`rule del ${selector} lookup 7`),
});

const actions: readonly Action[] = [
  rule("policy routing of the node's address", "from $NODE"),
  rule("a VPN's rule for what has no mark of its", "pref 300 not fwmark 0xca6c"),
  rule("a rule for the segment", "to $SEGMENT pref 7"),
  rule("a rule with the preference of Berth's", "pref 900 to $SEGMENT"),
  rule("a mesh's rule for marked packets", "pref 100 fwmark 0x1/0x1"),
  {
    what: "a gateway in the table of Berth's",
    does: both("route add default via $ROUTER dev eth0 onlink table 500 metric 9"),
    undoes: both("route del default via $ROUTER table 500 metric 9"),
  },
  {
    what: "a route to the pod by another link",
    does: both("route add $POD dev cni0"),
    undoes: both("route del $POD dev cni0"),
  },
  {
    what: "a VPN's link with routes for all",
    does: `ip link add wg7 type bridge; ip link set wg7 up; ${both("route add $HALF dev wg7 metric 50")}`,
    undoes: "ip link del wg7",
  },
  {
    what: "a further address of the node",
    does: both("addr add $FURTHER dev eth0"),
    undoes: both("addr del $FURTHER dev eth0"),
  },
  {
    what: "a link with the name of a pair's beginning",
    does: "ip link add veth0 type bridge",
    undoes: "ip link del veth0",
  },
  {
    what: "a mark on all that is forwarded",
    does: "nft 'table inet mesh { chain pre { type filter hook prerouting priority -200; meta mark set meta mark | 0x100; }; }'",
    undoes: "nft delete table inet mesh",
  },
  {
    what: "translation of all that leaves",
    does: "nft 'table inet nat7 { chain post { type nat hook postrouting priority 50; oifname cni0 masquerade; }; }'",
    undoes: "nft delete table inet nat7",
  },
  {
    what: "strict reverse paths for new links",
    does: "sysctl -qw net.ipv4.conf.default.rp_filter=1",
    undoes: "sysctl -qw net.ipv4.conf.default.rp_filter=0",
  },
  {
    what: "strict reverse paths of all links",
    does: "sysctl -qw net.ipv4.conf.all.rp_filter=1",
    undoes: "sysctl -qw net.ipv4.conf.all.rp_filter=0",
  },
  {
    what: "answers for all by ARP",
    does: "sysctl -qw net.ipv4.conf.eth0.proxy_arp=1",
    undoes: "sysctl -qw net.ipv4.conf.eth0.proxy_arp=0",
  },
  {
    what: "ARP of a load balancer's node",
    does: "sysctl -qw net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2",
    undoes: "sysctl -qw net.ipv4.conf.all.arp_ignore=0 net.ipv4.conf.all.arp_announce=0",
  },
  { what: "a smaller MTU of the parent", does: "ip link set eth0 mtu 1400", undoes: "ip link set eth0 mtu 1500" },
  {
    what: "no forwarding for new links",
    does: "sysctl -qw net.ipv4.conf.default.forwarding=0",
    undoes: "sysctl -qw net.ipv4.conf.default.forwarding=1",
  },
  {
    what: "no forwarding of IPv4",
    does: "sysctl -qw net.ipv4.ip_forward=0",
    undoes: "sysctl -qw net.ipv4.ip_forward=1",
    named: /ip_forward/,
  },
  {
    what: "no forwarding of IPv6",
    does: "sysctl -qw net.ipv6.conf.all.forwarding=0",
    undoes: "sysctl -qw net.ipv6.conf.all.forwarding=1",
    named: /forwarding/,
  },
  once("a flush of Berth's rule", `{ ${both("rule del lookup 500")}; } || :`),
  once(
    "a flush of all rules",
    `${both("rule flush")}; ${both("rule add pref 32766 lookup main")}; ${both("rule add pref 32767 lookup default")}`,
  ),
  once("a flush of Berth's table", both("route flush table 500")),
  once("a flush of all neighbours", both("neigh flush all nud permanent")),
  once("a flush of Berth's tables of nf_tables", "nft delete table inet berth || :"),
  once("a flush of their rules", "nft flush table inet berth || :"),
  once("the pair set down", "ip link set $PAIR down"),
  once("a strict reverse path of the pair", "sysctl -qw net.ipv4.conf.$PAIR.rp_filter=1"),
  once("no IPv6 on the pair", "sysctl -qw net.ipv6.conf.$PAIR.disable_ipv6=1"),
  once("no forwarding on the pair", "sysctl -qw net.ipv4.conf.$PAIR.forwarding=0"),
  once("an address on the pair", "ip addr replace 169.254.7.7/16 dev $PAIR"),
  once("another MTU of the pair", "ip link set $PAIR mtu 1280"),
];

let scene: Scene;
let machine: Netns;

beforeAll(async () => {
  scene = await makeScene(`ss${process.pid}`, FAMILIES);
  const { lab, client } = scene;
  machine = await lab.fabric.addHost("machine", 7);
  await lab.serve(machine, PORT);
  const { netns } = lab.node1;
  const dnat = FAMILIES.flatMap((family) => {
    const [ip, node] = [family === 4 ? "ip" : "ip6", segmentAddress(0, 11, family)];
    const at = (address: string, port: number) => `${ip === "ip" ? address : `[${address}]`}:${port}`;
    const to = (place: string) => `dnat ${ip} to ${place}`;
    const ports = Object.values(NODE_PORTS).map(
      (port) => `${ip} daddr ${node} tcp dport ${port} ${to(at(client.address(family), PORT))}`,
    );
    return [
      ...ports,
      `${ip} daddr ${SERVICE[family]} tcp dport ${PORT} ${to(at(segmentAddress(0, 12, family), PORT))}`,
    ];
  });
  const table = `table inet services {
    chain pre { type nat hook prerouting priority -100; ${dnat.join("; ")}; }
    chain post { type nat hook postrouting priority 100; meta l4proto tcp ct original proto-dst ${NODE_PORTS.Cluster} masquerade; }
  }`;
  await requireCommand(netns.enter(["nft", table]));
  for (const family of FAMILIES)
    await netns.ip(`-${family} route add default via ${segmentAddress(0, 1, family)} dev eth0 table 7`);
  // The pod forwards, and a machine of its segment tries to get to the services through it.
  for (const key of ["ipv4/ip_forward", "ipv6/conf/all/forwarding"]) writeSysctl(client.netns.path, key, "1");
  for (const family of FAMILIES)
    await machine.ip(`-${family} route add ${SERVICE[family]} via ${client.address(family)}`);
});

afterAll(() => scene?.delete());

function variables(pod: LabPod): string {
  const of = (family: Family) => ({
    NODE: segmentAddress(0, 11, family),
    ROUTER: segmentAddress(0, 1, family),
    SEGMENT: segmentSubnet(0, family),
    HALF: family === 4 ? "10.128.0.0/9" : "fd80::/9",
    FURTHER: `${segmentAddress(0, 33, family)}/${family === 4 ? 32 : 128}`,
    POD: pod.address(family),
  });
  const lines = FAMILIES.flatMap((family) =>
    Object.entries(of(family)).map(([name, value]) => `${name}${family}=${value}`),
  );
  return [`PAIR=${nameVeth(pod.containerId).host.name}`, ...lines].join("\n");
}

const shell = (script: string) => ["sh", "-c", `${variables(scene.client)}\n${script}`];

async function doAction({ does }: Action): Promise<void> {
  await requireCommand(scene.lab.node1.netns.enter(shell(`set -e\n${does}`)));
}

/** A flush may have undone it already. */
async function undoAction({ undoes }: Action): Promise<void> {
  await scene.lab.node1.netns.exec(shell(undoes));
}

const isAnswered = (netns: Netns, address: string, port: number, seenPeer: (peer: string) => boolean) =>
  ask(netns, address, port, { timeoutMs: 700 }).then(
    ({ seenPeer: peer }) => seenPeer(peer),
    () => false,
  );

/** The ways that are closed, or open where none should be. */
async function closedOf(pod: LabPod): Promise<string[]> {
  const { node1, outside } = scene.lab.fabric;
  const ways = FAMILIES.flatMap((family) => {
    const [node, own] = [segmentAddress(0, 11, family), pod.address(family)];
    const [beside, away] = [segmentAddress(0, 7, family), formatAddress(OUTSIDE_NETWORK, 2, family)];
    const all: Record<string, Promise<boolean>> = {
      "node to pod": ping(node1, own, { count: 1 }),
      "pod to node": ping(pod.netns, node, { count: 1 }),
      "pod to service": isAnswered(pod.netns, SERVICE[family], PORT, () => true),
      "segment to pod": isAnswered(machine, own, PORT, (peer) => peer === beside),
      "pod to segment": isAnswered(pod.netns, beside, PORT, (peer) => peer === own),
    };
    if (pod === scene.client) {
      all["NodePort, Cluster"] = isAnswered(outside, node, NODE_PORTS.Cluster, (peer) => peer !== away);
      all["NodePort, Local"] = isAnswered(outside, node, NODE_PORTS.Local, (peer) => peer === away);
      all["no way through the pod"] = ask(machine, SERVICE[family], PORT, SILENCE).then(
        () => false,
        () => true,
      );
    }
    return Object.entries(all).map(async ([way, isRight]) => ((await isRight) ? [] : [`IPv${family}: ${way}`]));
  });
  return (await Promise.all(ways)).flat();
}

/** The problems of the agent's health and `berthctl check`. */
async function named(): Promise<string> {
  const { agent, netns } = scene.lab.node1;
  const health = await agent.request("/v1/health");
  const argv = [process.execPath, join(root, "dist", "berthctl.mjs"), "check", "--socket", agent.socket];
  return `${health.body}\n${(await netns.exec(argv)).stdout}`;
}

it(`${ACTIONS} actions of others close no way of a pod's traffic without a name`, async () => {
  const seed = Number(process.env.SEED ?? gateOrLong(1, Date.now() % 100_000));
  const random = new Seeded(seed);
  const active: Action[] = [];
  const history: string[] = [];
  const expectRight = async (pod: LabPod): Promise<void> => {
    const excuses = active.flatMap((each) => each.named ?? []);
    const look = async () => {
      const names = (await closedOf(pod)).length === 0 ? "" : await named();
      const isNamed = CUT_OFF.test(names) || (excuses.length > 0 && excuses.every((excuse) => excuse.test(names)));
      // Before it was asked for names, the agent may have restored the closed ways.
      const closed = names === "" || isNamed ? [] : await closedOf(pod);
      return { isRight: closed.length === 0, what: `${closed.join(", ")}\n${names}` };
    };
    const { isRight, what } = await eventually(look, (found) => found.isRight, WITHIN_MS);
    expect(isRight, `SEED=${seed}; ${history.slice(-12).join("; ")}: ${what}`).toBe(true);
  };
  await expectRight(scene.client);
  for (let step = 0; step < ACTIONS; step++) {
    const isUndo = active.length >= AT_ONCE || (active.length > 0 && random.chance(0.4));
    const action = random.pick(isUndo ? active : actions.filter((each) => !active.includes(each)));
    history.push(isUndo ? `no more ${action.what}` : action.what);
    await (isUndo ? undoAction(action) : doAction(action));
    if (isUndo) active.splice(active.indexOf(action), 1);
    else if (action.undoes !== DONE) active.push(action);
    await expectRight(scene.client);
    if (step % 20 !== 19) continue;
    for (const each of active.splice(0)) await undoAction(each);
    history.push("no more of all");
    const later = await scene.addPod(scene.lab.node1, `later${step}`, {});
    await scene.lab.serve(later.netns, PORT);
    await expectRight(later);
    await later.detach(`ss${process.pid}-later${step}`);
  }
});
