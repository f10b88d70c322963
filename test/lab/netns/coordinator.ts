/**
 * Worlds for the coordinator's tests: two nodes of the test network, one node on a silent wire, a pod whose NIC is
 * there already, and nodes beside a control plane.
 * Effects: those of {@link NetnsWorld}.
 */

import { RETIRED_GROUP } from "../../../host/coordinator/plan/constants.ts";
import { isPairName } from "../../../host/coordinator/plan/names.ts";
import { REMOVAL_GROUP } from "../../../host/kernel/link-remover.ts";
import { writeSysctl } from "../../../host/kernel/sysctl.ts";
import { FAMILIES, type Family } from "../../../host/net/ip.ts";
import { LAB_NETWORKS, lengthOf, NODE_HOSTS, segmentAddress, segmentSubnet } from "../addressing.ts";
import type { AgentOptions } from "../agent.ts";
import { requireSuccess } from "../cnitool.ts";
import { requireCommand } from "../command.ts";
import { startControlPlane } from "../control-plane.ts";
import { addNode, type KubeProxyOptions, startKubeProxy } from "../kube-proxy.ts";
import { ipPool, macvlan, vendorConf } from "../manifests.ts";
import { addVeth, type Netns } from "../netns.ts";
import { isSameState, readNetworkState, readStableState, requireSameState } from "../network-state.ts";
import { eventually } from "../waiting.ts";
import { type LabNode, LabPod, NetnsWorld, type PodOptions } from "./world.ts";

/** Addresses of pods of each node, within each segment. */
const RANGES = [
  [50, 99],
  [100, 149],
] as const;

/** On both nodes, as kube-proxy has it: drops packets of connections whose other half the node has not seen. */
export const DROP_INVALID =
  "table inet forwarding { chain forward { type filter hook forward priority 0; ct state invalid drop; }; }";

export interface LabOptions {
  /** Default: both. */
  readonly families?: readonly Family[];
  /** Further manifests for both agents, by file name. */
  readonly config?: Readonly<Record<string, string>>;
}

export type Lab = Awaited<ReturnType<typeof makeLab>>;

/** Two nodes of the test network with an agent each, and a pool for every segment and family. */
export function makeLab(prefix: string, { families = FAMILIES, config = {} }: LabOptions = {}) {
  return NetnsWorld.build(prefix, async (world) => {
    const fabric = await world.addFabric({ families });
    const start = async (netns: Netns, range: readonly [number, number]): Promise<LabNode> => {
      await requireCommand(netns.enter(["nft", DROP_INVALID]));
      return world.addNode(netns, { ...segmentPools(families, range), ...config });
    };
    const node1 = await start(fabric.node1, RANGES[0]);
    const node2 = await start(fabric.node2, RANGES[1]);
    return Object.assign(world, { families, fabric, node1, node2 });
  });
}

function segmentPools(families: readonly Family[], [first, last]: readonly [number, number]): Record<string, string> {
  const pools = families.flatMap((family) =>
    [0, 1, 2].map((segment) => {
      const name = `seg${segment}-v${family}`;
      const at = (host: number) => segmentAddress(segment, host, family);
      const spec = { gateway: at(1), ips: [`${at(first)}-${at(last)}`] };
      return [`${name}.yaml`, ipPool(name, segmentSubnet(segment, family), spec)] as const;
    }),
  );
  const enabled = { enableIPv4: families.includes(4), enableIPv6: families.includes(6) };
  const conf = vendorConf({ ...enabled, allowSingleFamily: true, allocationCooldown: "1s" });
  return { "conf.yaml": conf, ...Object.fromEntries(pools) };
}

/** The main plugin's entry for a NIC on that segment, with the segment's pools. */
export function macvlanOn(segment: number, families: readonly Family[] = FAMILIES): object {
  const pools = families.map((family) => [`default_ipv${family}_ippool`, [`seg${segment}-v${family}`]]);
  return macvlan(`eth${segment}`, { type: "berth", ...Object.fromEntries(pools) });
}

/** Cooldown on a {@link ChainNode}: milliseconds. */
export const CHAIN_COOLDOWN_MS = 1_000;
const CHAIN_SETTINGS = { enableIPv6: true, allocationCooldown: `${CHAIN_COOLDOWN_MS}ms` };
const CHAIN_CONFIG = {
  "conf.yaml": vendorConf(CHAIN_SETTINGS),
  "four.yaml": ipPool("four", "10.6.0.0/16", { gateway: "10.6.0.1", default: true, ips: ["10.6.1.0-10.6.1.255"] }),
  "six.yaml": ipPool("six", "fd00:6::/64", { gateway: "fd00:6::1", default: true, ips: ["fd00:6::100-fd00:6::1ff"] }),
  // One address each, and the same ones in another address space.
  "one4.yaml": ipPool("one4", "10.7.0.0/24", { ips: ["10.7.0.7"] }),
  "one6.yaml": ipPool("one6", "fd00:7::/64", { ips: ["fd00:7::7"] }),
  "same4.yaml": ipPool("same4", "10.7.0.0/24", { ips: ["10.7.0.7"], addressSpace: "other" }),
  "same6.yaml": ipPool("same6", "fd00:7::/64", { ips: ["fd00:7::7"], addressSpace: "other" }),
};

/**
 * A network's plugins on the chain's node; the main plugin has the pools `<pool>4` and `<pool>6`, or the default ones.
 */
export const ENTRY = { type: "coordinator", serviceCIDR: ["10.96.0.0/16", "fd00:96::/112"] };
export const MACVLAN = macvlan("uplink");
export const macvlanWith = (pool: "one" | "same"): object =>
  macvlan("uplink", { type: "berth", default_ipv4_ippool: [`${pool}4`], default_ipv6_ippool: [`${pool}6`] });

export type ChainNode = Awaited<ReturnType<typeof makeChainNode>>;

/** One node with an agent, on a wire where no machine talks: the node's state is the test's own, to the byte. */
export function makeChainNode(prefix: string, options: Partial<AgentOptions> = {}) {
  return NetnsWorld.build(prefix, async (world) => {
    const [netns, wire] = [await world.addNetns("node"), await world.addNetns("wire")];
    for (const scope of ["all", "default"]) {
      writeSysctl(wire.path, `ipv6/conf/${scope}/disable_ipv6`, "1");
      writeSysctl(netns.path, `ipv6/conf/${scope}/accept_dad`, "0");
    }
    await addVeth({ netns, name: "uplink" }, { netns: wire, name: "end" });
    for (const key of ["ipv4/ip_forward", "ipv6/conf/all/forwarding"]) writeSysctl(netns.path, key, "1");
    for (const [address, gateway] of [
      ["10.6.0.2/16", "10.6.0.1"],
      ["fd00:6::2/64", "fd00:6::1"],
    ]) {
      await netns.ip(`addr add ${address} dev uplink`);
      await netns.ip(`route add default via ${gateway}`);
    }
    const node = await world.addNode(netns, CHAIN_CONFIG, options);
    const dump = async (): Promise<string[]> => {
      await withoutRetired(netns);
      return dumpNetns(netns);
    };
    const withPod = async <T>(
      name: string,
      test: (pod: LabPod) => Promise<T>,
      options: Partial<PodOptions> = {},
    ): Promise<T> => {
      const pod = await world.addPod(node, name, options);
      try {
        return await test(pod);
      } finally {
        await pod.netns.delete();
      }
    };
    return Object.assign(world, {
      netns,
      dump,
      /**
       * Defines a network of macvlan and the coordinator, and lets a first pod come and go. Returns the node's state
       * then: the rule and the table that all pods share are there, and stay.
       */
      begin: async (network: string): Promise<string[]> => {
        await world.define(network, [MACVLAN, ENTRY]);
        await withPod("first", async (pod) => {
          await pod.attach(network);
          await pod.detach(network);
        });
        return dump();
      },
      /** Further settings of vendor-conf, in place of those that were set so before. */
      configure: (settings: Record<string, unknown>) =>
        node.agent.write("conf.yaml", vendorConf({ ...CHAIN_SETTINGS, ...settings })),
      /** Runs `test` with a pod that is removed afterwards. */
      withPod,
      /** {@link expectNetns} of the node. */
      expectState: (wanted: readonly string[]) => expectNetns(netns, wanted),
    });
  });
}

/** Waits until the node has no pairs that a DEL has left for later: then their pods are clean, too. */
export async function withoutRetired(node: Netns): Promise<void> {
  const read = async () => {
    const links = await node.ipJson<{ group: string }>("link show type veth");
    return links.filter(({ group }) => group === String(RETIRED_GROUP) || group === String(REMOVAL_GROUP));
  };
  const left = await eventually(read, (links) => links.length === 0, GONE_MS);
  if (left.length > 0) throw new Error(`After ${GONE_MS} ms ${node.name} has ${left.length} retired pairs`);
}

/**
 * Waits until the namespace is in this state: pairs of detached pods take a moment to go, and then the pod is cleaned.
 */
export async function expectNetns(netns: Netns, wanted: readonly string[]): Promise<void> {
  const last = await eventually(
    () => dumpNetns(netns),
    (found) => isSameState(wanted, found),
    GONE_MS,
  );
  requireSameState(wanted, last, `After ${GONE_MS} ms`);
}

/** Within this the agent has deleted pairs of detached pods, and the kernel namespaces, on a busy machine. */
const GONE_MS = 10_000;

/** All network state but settings. */
export function dumpNetns(netns: Netns): Promise<string[]> {
  return readNetworkState(netns, { sysctls: false });
}

/** A verb of the coordinator that must succeed. */
export async function coordinate(pod: LabPod, ...call: Parameters<LabPod["coordinate"]>): Promise<void> {
  requireSuccess(await pod.coordinate(...call), call[0]);
}

/** Names of the host's ends of pairs that are in use: without those that a DEL has left for later. */
export async function pairsOf(node: Netns): Promise<string[]> {
  const links = await node.ipJson<{ ifname: string; group: string }>("link show type veth");
  const used = links.filter(({ group }) => group !== String(RETIRED_GROUP) && group !== String(REMOVAL_GROUP));
  return used.map(({ ifname }) => ifname).filter(isPairName);
}

/** For pods whose addresses no agent has given. */
export const ALLOW_LAB = { "conf.yaml": vendorConf({ hostRouteCIDR: LAB_NETWORKS }) };

/**
 * A pod whose NICs another plugin has made, with addresses of segment 0: its network state is that of its node, too.
 */
export class PreparedPod extends LabPod {
  constructor(node: LabNode, netns: Netns, host: number) {
    super(node, netns, { name: undefined, connectWait: "5" });
    const ips = FAMILIES.map((family) => ({
      address: `${segmentAddress(0, host, family)}/${lengthOf(family)}`,
      gateway: segmentAddress(0, 1, family),
      interface: 0,
    }));
    const routes = [{ dst: "0.0.0.0/0" }, { dst: "::/0" }];
    for (const name of ["eth0", "net1", "net7"]) {
      const result = { cniVersion: "1.1.0", interfaces: [{ name, sandbox: netns.path }], ips, routes };
      this.adopt(name, result);
    }
  }

  /** The state at rest, without deletions that a DEL has left for later. */
  async state(): Promise<string[]> {
    await withoutRetired(this.node.netns);
    return readStableState(this.node.netns, this.netns);
  }

  /** Fails with the first difference, if it stays. */
  async expectState(before: readonly string[], when: string): Promise<void> {
    const read = async () =>
      (await Promise.all([this.node.netns, this.netns].map((each) => readNetworkState(each)))).flat();
    const last = await eventually(read, (found) => isSameState(before, found), GONE_MS);
    requireSameState(before, last, when);
  }
}

export type PreparedWorld = Awaited<ReturnType<typeof makePreparedWorld>>;

/** A node of the test network and a pod with a macvlan NIC: only the coordinator is called. */
export function makePreparedWorld(prefix: string) {
  return NetnsWorld.build(prefix, async (world) => {
    const fabric = await world.addFabric();
    const netns = await fabric.addMacvlanPod(fabric.node1, "pod", [{ segment: 0, host: 50 }]);
    const { node1, node2, router, outside, switch: wires } = fabric;
    // Neither a machine that asks for routers nor a neighbour that the kernel forgets is a change of ours.
    const silence =
      "for file in /proc/sys/net/ipv6/conf/*/router_solicitations; do echo 0 > $file; done; " +
      "for file in /proc/sys/net/ipv[46]/neigh/*/gc_stale_time; do echo 86400 > $file; done";
    for (const each of [node1, node2, router, outside, wires, netns])
      await requireCommand(each.enter(["sh", "-ec", silence]));
    const node = await world.addNode(node1, ALLOW_LAB);
    return Object.assign(world, { fabric, node, pod: new PreparedPod(node, netns, 50) });
  });
}

const CONTROL_HOST = 5;

export const nodeAddress = (node: 1 | 2, family: Family): string =>
  segmentAddress(0, NODE_HOSTS[node - 1] ?? 0, family);

export type ServiceWorld = Awaited<ReturnType<typeof makeServiceWorld>>;

/** Two nodes of the test network with a control plane beside them, and no agent. */
export function makeServiceWorld(prefix: string) {
  return NetnsWorld.build(prefix, async (world) => {
    const fabric = await world.addFabric();
    const machine = await fabric.addHost("control", CONTROL_HOST);
    const plane = await startControlPlane({ machine, address: segmentAddress(0, CONTROL_HOST, 4) });
    world.defer(() => plane.stop());
    for (const number of [1, 2] as const) {
      const addresses = FAMILIES.map((family) => nodeAddress(number, family));
      await addNode(plane.client, number === 1 ? fabric.node1 : fabric.node2, addresses);
    }
    /** A kube-proxy on node 1 that knows these services; when it is stopped, the node has no rules of it. */
    const startProxy = async (options: Omit<KubeProxyOptions, "plane">, services: readonly string[]) => {
      const proxy = await startKubeProxy(fabric.node1, { plane, ...options });
      const stop = async (): Promise<void> => {
        await proxy.stop();
        await removeProxyRules(fabric.node1);
      };
      try {
        await proxy.knows(...services);
        return { ...proxy, stop };
      } catch (error) {
        await stop();
        throw error;
      }
    };
    return Object.assign(world, { fabric, plane, startProxy });
  });
}

/** Removes the rules of both modes; those of others stay. */
async function removeProxyRules(node: Netns): Promise<void> {
  const { stdout } = await node.exec(["nft", "list", "tables"]);
  for (const [, family = "", name = ""] of stdout.matchAll(/^table (ip6?) (kube-proxy|nat|filter|mangle)$/gm))
    await node.exec(["nft", "delete", "table", family, name]);
}
