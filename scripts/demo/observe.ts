/**
 * Observations of the real state: addresses on a pod's interface, answers to a ping, the agent's records.
 * Effects: runs ip, ping and berthctl; calls the agent; a netlink socket in a namespace.
 */
import { join } from "node:path";
import { addressOf } from "../../host/kernel/netlink/address/address.ts";
import { RTM_NEWADDR } from "../../host/kernel/netlink/address/constants.ts";
import { decodeAddress } from "../../host/kernel/netlink/address/message.ts";
import { openMonitor, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR } from "../../host/kernel/netlink/monitor.ts";
import { RT_SCOPE_UNIVERSE } from "../../host/kernel/netlink/route/constants.ts";
import { formatIp } from "../../host/net/ip.ts";
import { requireCommand } from "../../test/lab/command.ts";
import type { Netns } from "../../test/lab/netns.ts";
import { eventually } from "../../test/lab/waiting.ts";
import { root } from "../setup/paths.mjs";
import { formatColumns } from "./narrator.ts";
import type { Pod, Stage } from "./stage.ts";

interface IpAddressLine {
  readonly addr_info: readonly {
    readonly local: string;
    readonly prefixlen: number;
    readonly scope: string;
    readonly tentative?: boolean;
  }[];
}

/** One address in the agent's records. */
export interface AddressRecord {
  readonly address: string;
  readonly pool: string;
  readonly state: string;
  readonly namespace: string;
  readonly pod: string;
  readonly interface: string;
}

interface PoolCount {
  readonly name: string;
  readonly subnet: string;
  readonly total: string | number;
  readonly used: string | number;
  readonly free: string | number;
}

/** The interface's global addresses that the kernel lets it use, with prefix length, sorted. */
async function usableAddresses(netns: Netns, ifName: string): Promise<string[]> {
  const links = await netns.ipJson<IpAddressLine>(`addr show dev ${ifName}`);
  const all = links
    .flatMap((link) => link.addr_info)
    .filter(({ scope, tentative }) => scope === "global" && !tentative);
  return all.map(({ local, prefixlen }) => `${local}/${prefixlen}`).sort();
}

/**
 * The same, once there are as many as `wanted`: the kernel holds an IPv6 address back for a second or two (RFC 4862
 * §5.4).
 */
export function addressesOf(netns: Netns, ifName: string, wanted: number): Promise<string[]> {
  return eventually(
    () => usableAddresses(netns, ifName),
    (addresses) => addresses.length === wanted,
    5_000,
  );
}

/** Pings, two unless told otherwise; `answered` when one came back. */
export async function ping(
  from: Netns,
  address: string,
  { count = 2, waitS = 2 } = {},
): Promise<{ answered: boolean; seen: string }> {
  const argv = ["ping", "-n", "-c", `${count}`, "-i", "0.2", "-W", `${waitS}`, address];
  const { exitCode, stdout, stderr } = await from.exec(argv);
  const summary = stdout.split("\n").find((line) => line.includes("packets transmitted")) ?? stderr.trim();
  return { answered: exitCode === 0, seen: `${address}: ${summary}` };
}

export async function recordsOf(stage: Stage): Promise<AddressRecord[]> {
  return (await stage.agent.get("/v1/allocations")) as AddressRecord[];
}

/** Returns the output of `berthctl allocations`: a heading, and a line for each address. */
export async function berthctlAllocations(stage: Stage): Promise<string[]> {
  const argv = [process.execPath, join(root, "dist", "berthctl.mjs"), "allocations"];
  return (await requireCommand(argv, { env: stage.agent.env })).trimEnd().split("\n");
}

/** Every address but link-local ones that any link of the namespace is given from now on, for however short a time. */
export function watchAddresses(netns: Netns): Disposable & { readonly addresses: readonly string[] } {
  const addresses = new Set<string>();
  let failure: Error | undefined;
  const monitor = openMonitor(
    netns.path,
    { groups: [RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR] },
    {
      message: (message) => {
        const address = message.type === RTM_NEWADDR ? addressOf(decodeAddress(message)) : undefined;
        if (address?.scope === RT_SCOPE_UNIVERSE) addresses.add(formatIp(address.prefix.ip));
      },
      lost: (error) => {
        failure = error;
      },
    },
  );
  return {
    get addresses() {
      if (failure !== undefined) throw failure;
      return [...addresses];
    },
    [Symbol.dispose]: () => monitor[Symbol.dispose](),
  };
}

/** Berth's routes on a node, which lead to pods: they carry its protocol. */
export async function routesOfPods(node: Netns): Promise<string[]> {
  const texts = await Promise.all(["-4", "-6"].map((family) => node.ip(`${family} route show table all proto 98`)));
  return texts.flatMap((text) => text.split("\n")).filter((line) => line !== "");
}

/** Returns the number of addresses of all pools that are in use, or resting after a release. */
export async function usedAddresses(stage: Stage): Promise<number> {
  const pools = (await stage.agent.get("/v1/pools")) as PoolCount[];
  return pools.reduce((sum, { used }) => sum + Number(used), 0);
}

/** Pools, then pods with their addresses, as the agent reports them. */
export async function overview(stage: Stage): Promise<string[]> {
  const pools = (await stage.agent.get("/v1/pools")) as PoolCount[];
  const poolRows = pools.map(({ name, subnet, total, used, free }) => [name, subnet, `${total}`, `${used}`, `${free}`]);
  const records = await recordsOf(stage);
  const podRows = records.map((record) => [
    `${record.namespace}/${record.pod}`,
    record.interface,
    record.address,
    record.pool,
    record.state,
  ]);
  const poolLines = formatColumns([["POOL", "SUBNET", "TOTAL", "USED", "FREE"], ...poolRows]);
  if (podRows.length === 0) return [...poolLines, "", "No pod has an address."];
  return [...poolLines, "", ...formatColumns([["POD", "NIC", "ADDRESS", "POOL", "STATE"], ...podRows.sort()])];
}

/** The pod's address of that family, as its plugins' results said; on its first NIC unless told otherwise. */
export function requireAddress({ spec, nics }: Pod, family: 4 | 6, ifName = "eth0"): string {
  const addresses = nics.find((nic) => nic.ifName === ifName)?.addresses ?? [];
  const found = addresses.find((address) => address.includes(":") === (family === 6));
  if (found === undefined) throw new Error(`${spec.name} has no IPv${family} address on ${ifName}`);
  return found.replace(/\/.*/, "");
}

/** All addresses of a pod without prefix length, as its plugins' results said. */
export function resultAddresses(pod: Pod): string[] {
  return pod.nics.flatMap(({ addresses }) => addresses.map((address) => address.replace(/\/.*/, ""))).sort();
}
