/**
 * A small data centre in namespaces: two nodes on three segments, a router, and a client behind it.
 *
 *      node1  node2  hosts        a NIC on each segment: eth0 (with addresses), eth1, eth2 (bare, parents of macvlan)
 *        │││    │││    │
 *      ──┴┼┼────┴┼┼────┴── segment 0   10.60.0.0/24  fd00:60::/64
 *      ───┴┼─────┴┼─────── segment 1   10.71.0.0/24  fd00:71::/64
 *      ────┴──────┴─────── segment 2   10.72.0.0/24  fd00:72::/64
 *               │││
 *              router  (.1 on each; seg0, seg1, seg2, out)
 *                │
 *             outside  10.80.0.2  fd00:80::2
 *
 *   const fabric = await makeFabric("uw");
 *   const pod = await fabric.addMacvlanPod(fabric.node1, "a", [{ segment: 0, host: 50 }]);
 *   await ask(fabric.outside, segmentAddress(0, 50, 4), 80);
 *   await fabric.delete();
 *
 * The router forwards and does nothing else: it knows neither services nor the nodes' own pod networks, and
 * translates nothing. It takes packets from everywhere (no rp_filter), so a reply on the wrong segment arrives and
 * can be counted there.
 * Effects: namespaces named `<prefix>-<role>-<pid>`; nothing outside of them.
 */

import { writeSysctl } from "../../../host/kernel/sysctl.ts";
import type { Family } from "../../../host/net/ip.ts";
import {
  formatAddress,
  lengthOf,
  NODE_HOSTS,
  OUTSIDE_HOST,
  OUTSIDE_NETWORK,
  podAddress,
  ROUTER_HOST,
  SEGMENTS,
  segmentAddress,
} from "../addressing.ts";
import { requireCommand } from "../command.ts";
import { createNetns, type Netns } from "../netns.ts";

export interface FabricOptions {
  /** Which families have addresses. Default: both. */
  readonly families?: readonly Family[];
}

export interface Fabric {
  readonly families: readonly Family[];
  /** The wires: bridges `br0` to `br2`, one for each segment. */
  readonly switch: Netns;
  readonly node1: Netns;
  readonly node2: Netns;
  /** Its links: `seg0` to `seg2`, `out`. */
  readonly router: Netns;
  readonly outside: Netns;
  /** A machine on segment 0 that is no node; its NIC is `eth0`. */
  addHost(name: string, host: number): Promise<Netns>;
  /**
   * A pod with macvlan NICs `eth0`, `net1`, `net2` on the node's NICs of these segments; its default route is by the
   * first.
   */
  addMacvlanPod(node: Netns, name: string, nics: readonly SegmentPlace[]): Promise<Netns>;
  /**
   * A pod of the node's own network, which only the nodes know: see podAddress in addressing.ts. Its NIC `eth0` is on
   * the node's bridge `cni0`.
   */
  addRoutedPod(node: Netns, name: string, host: number): Promise<Netns>;
  /** Removes all of it; twice is fine. */
  delete(): Promise<void>;
}

export interface SegmentPlace {
  /** 0 to 2. */
  readonly segment: number;
  /** The address within the segment: 2 to 9 are free for hosts, from 50 on for pods. */
  readonly host: number;
}

/** No duplicate address detection: there is no other machine. */
const QUIET = { "ipv6/conf/all/accept_dad": "0", "ipv6/conf/default/accept_dad": "0" };
const FORWARDING = { "ipv4/ip_forward": "1", "ipv6/conf/all/forwarding": "1" };
const LENIENT = { ...FORWARDING, "ipv4/conf/all/rp_filter": "0", "ipv4/conf/default/rp_filter": "0" };

/** Builds it; when something fails, nothing is left. */
export async function makeFabric(prefix: string, { families = [4, 6] }: FabricOptions = {}): Promise<Fabric> {
  const made: Netns[] = [];
  const remove = async (): Promise<void> => {
    for (const netns of made.splice(0).reverse()) await netns.delete();
  };
  const addMachine = async (name: string): Promise<Netns> => {
    const netns = await createNetns(`${prefix}-${name}-${process.pid}`);
    made.push(netns);
    applySettings(netns, QUIET); // Before it has links: they take over what is the default when they come.
    return netns;
  };
  try {
    return { ...(await buildFabric(families, addMachine)), delete: remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** Adds a machine, whose addresses are usable at once. */
type AddMachine = (name: string) => Promise<Netns>;

async function buildFabric(families: readonly Family[], addMachine: AddMachine): Promise<Omit<Fabric, "delete">> {
  const wires = await addMachine("switch");
  const router = await addMachine("router");
  const outside = await addMachine("outside");
  const node1 = await addMachine("node1");
  const node2 = await addMachine("node2");
  await configure(
    wires,
    SEGMENTS.flatMap((_, segment) => bridge(`br${segment}`)),
  );
  await buildRouter({ families, wires, router, outside });
  for (const [index, node] of [node1, node2].entries()) await buildNode({ families, wires, node, index });
  const plug = { families, wires, addMachine };
  return {
    families,
    switch: wires,
    router,
    outside,
    node1,
    node2,
    addHost: (name, host) => addHost(plug, name, host),
    addMacvlanPod: (node, name, nics) => addMacvlanPod(plug, { node, name, nics }),
    addRoutedPod: (node, name, host) => addRoutedPod(plug, { node, number: node === node1 ? 1 : 2, name, host }),
  };
}

interface Plug {
  readonly families: readonly Family[];
  readonly wires: Netns;
  readonly addMachine: AddMachine;
}

async function buildRouter(parts: { families: readonly Family[]; wires: Netns; router: Netns; outside: Netns }) {
  const { families, wires, router, outside } = parts;
  applySettings(router, LENIENT);
  await configure(router, [
    ...SEGMENTS.flatMap((_, segment) => cable(`seg${segment}`, wires, `router${segment}`)),
    ...cable("out", outside, "eth0"),
    ...SEGMENTS.flatMap((network, segment) => addresses(families, `seg${segment}`, network, ROUTER_HOST)),
    ...addresses(families, "out", OUTSIDE_NETWORK, ROUTER_HOST),
  ]);
  await configure(
    wires,
    SEGMENTS.flatMap((_, segment) => join(`router${segment}`, segment)),
  );
  await configure(outside, [
    "link set eth0 up",
    ...addresses(families, "eth0", OUTSIDE_NETWORK, OUTSIDE_HOST),
    ...families.map((family) => `route add default via ${formatAddress(OUTSIDE_NETWORK, ROUTER_HOST, family)}`),
  ]);
}

async function buildNode(parts: { families: readonly Family[]; wires: Netns; node: Netns; index: number }) {
  const { families, wires, node, index } = parts;
  const own = index === 0 ? 1 : 2;
  const other = own === 1 ? 2 : 1;
  const port = (segment: number) => `node${own}${segment}`;
  applySettings(node, FORWARDING);
  await configure(node, [
    ...SEGMENTS.flatMap((_, segment) => cable(`eth${segment}`, wires, port(segment))),
    ...addresses(families, "eth0", SEGMENTS[0] ?? 0, NODE_HOSTS[index] ?? 0),
    ...defaults(families, 0),
    ...bridge("cni0"),
    ...families.map((family) => `addr add ${podAddress(own, 1, family)}/${lengthOf(family)} dev cni0`),
    ...families.map((family) => {
      const network = `${podAddress(other, 0, family)}/${lengthOf(family)}`;
      return `route add ${network} via ${segmentAddress(0, NODE_HOSTS[other - 1] ?? 0, family)}`;
    }),
  ]);
  await configure(
    wires,
    SEGMENTS.flatMap((_, segment) => join(port(segment), segment)),
  );
}

async function addHost({ families, wires, addMachine }: Plug, name: string, host: number): Promise<Netns> {
  const netns = await addMachine(name);
  await configure(netns, [
    ...cable("eth0", wires, `host${host}`),
    ...addresses(families, "eth0", SEGMENTS[0] ?? 0, host),
    ...defaults(families, 0),
  ]);
  await configure(wires, join(`host${host}`, 0));
  return netns;
}

interface MacvlanPod {
  readonly node: Netns;
  readonly name: string;
  readonly nics: readonly SegmentPlace[];
}

async function addMacvlanPod({ families, addMachine }: Plug, { node, name, nics }: MacvlanPod): Promise<Netns> {
  const pod = await addMachine(name);
  const nicName = (index: number) => (index === 0 ? "eth0" : `net${index}`);
  const make = nics.map(({ segment }, index) => {
    return `link add link eth${segment} name ${nicName(index)} netns ${pod.name} type macvlan mode bridge`;
  });
  await configure(node, make);
  await configure(pod, [
    ...nics.flatMap(({ segment, host }, index) => [
      `link set ${nicName(index)} up`,
      ...addresses(families, nicName(index), SEGMENTS[segment] ?? 0, host),
    ]),
    ...nics.slice(0, 1).flatMap(({ segment }) => defaults(families, segment)),
  ]);
  return pod;
}

interface RoutedPod {
  readonly node: Netns;
  readonly number: 1 | 2;
  readonly name: string;
  readonly host: number;
}

async function addRoutedPod({ families, addMachine }: Plug, { node, number, name, host }: RoutedPod): Promise<Netns> {
  const pod = await addMachine(name);
  await configure(node, [...cable(`pod${host}`, pod, "eth0"), `link set pod${host} master cni0`]);
  await configure(pod, [
    "link set eth0 up",
    ...families.map((family) => `addr add ${podAddress(number, host, family)}/${lengthOf(family)} dev eth0`),
    ...families.map((family) => `route add default via ${podAddress(number, 1, family)}`),
  ]);
  return pod;
}

/** `ip` lines: a veth pair between here and there, the near end up. */
function cable(name: string, there: Netns, peer: string): string[] {
  return [`link add ${name} type veth peer name ${peer} netns ${there.name}`, `link set ${name} up`];
}

function join(port: string, segment: number): string[] {
  return [`link set ${port} master br${segment} up`];
}

/** A bridge that floods multicast: there is no querier for group membership. */
function bridge(name: string): string[] {
  return [`link add ${name} type bridge mcast_snooping 0`, `link set ${name} up`];
}

function addresses(families: readonly Family[], link: string, network: number, host: number): string[] {
  return families.map((family) => `addr add ${formatAddress(network, host, family)}/${lengthOf(family)} dev ${link}`);
}

function defaults(families: readonly Family[], segment: number): string[] {
  return families.map((family) => `route add default via ${segmentAddress(segment, ROUTER_HOST, family)}`);
}

/** Settings below `net`. */
function applySettings(netns: Netns, settings: Readonly<Record<string, string>>): void {
  for (const [key, value] of Object.entries(settings)) writeSysctl(netns.path, key, value);
}

/** Lines of `ip`; fails with the first that does. */
async function configure(netns: Netns, lines: readonly string[]): Promise<void> {
  await requireCommand(netns.enter(["ip", "-batch", "-"]), { stdin: `${lines.join("\n")}\n` });
}
