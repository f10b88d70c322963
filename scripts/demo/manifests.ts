/**
 * The files that an administrator of the demo's node writes: pools and settings for Berth, pods with their wishes,
 * CNI networks.
 */
import { segmentAddress, segmentSubnet } from "../../test/lab/addressing.ts";
import { ipPool, macvlan, vendorConf } from "../../test/lab/manifests.ts";

interface Pool {
  readonly subnet: string;
  readonly ips: string;
  readonly gateway: string;
  readonly selection?: "hash" | "ascending";
}

const lan = { subnet: segmentSubnet(0, 4), gateway: segmentAddress(0, 1, 4) };
const storage = { subnet: segmentSubnet(1, 4), gateway: segmentAddress(1, 1, 4) };

/**
 * Two pools of the data-centre's network, one of its network for storage, one for a bridge inside the node, and two
 * small ones.
 */
export const pools = {
  blue: { subnet: "10.10.0.0/24", ips: "10.10.0.10-10.10.0.250", gateway: "10.10.0.1" },
  "lan-v4": { ...lan, ips: "10.60.0.50-10.60.0.99" },
  "lan-v6": { subnet: segmentSubnet(0, 6), ips: "fd00:60::5000-fd00:60::ffff", gateway: segmentAddress(0, 1, 6) },
  storage: { ...storage, ips: "10.71.0.50-10.71.0.99" },
  tiny: { subnet: "10.10.0.0/24", ips: "10.10.0.5", gateway: "10.10.0.1" },
  desk: { ...lan, ips: "10.60.0.120-10.60.0.129", selection: "ascending" },
} as const satisfies Record<string, Pool>;

export type PoolName = keyof typeof pools;

/**
 * A released address rests before another pod gets it; two seconds, so that the story need not wait for the default 30.
 */
export const settings = vendorConf({ allowSingleFamily: true, allocationCooldown: "2s" });

export function poolManifests(): string {
  const formatPool = ([name, { subnet, ips, gateway, selection = "hash" }]: [string, Pool]): string =>
    ipPool(name, subnet, { ips: [ips], gateway, selection });
  return Object.entries(pools).map(formatPool).join("---\n");
}

export interface PodSpec {
  readonly name: string;
  readonly uid: string;
  /** The pod's wish, in Berth's annotations. */
  readonly annotations: Readonly<Record<string, string>>;
}

export function podManifest({ name, uid, annotations }: PodSpec): string {
  const lines = Object.entries(annotations).map(([key, value]) => `    ${key}: '${value}'\n`);
  return `apiVersion: v1
kind: Pod
metadata:
  name: ${name}
  namespace: shop
  uid: ${uid}
  annotations:
${lines.join("")}`;
}

/** The address ranges of services; no machine has them. */
const SERVICES = { serviceCIDR: ["10.96.0.0/16", "fd00:96::/112"] };

const coordinator = (settings: object = {}): PluginConf => ({ type: "coordinator", ...SERVICES, ...settings });

/** Plugins of each network, in the order in which the runtime calls them; `eth0` and `eth1` are the node's own NICs. */
const networks = {
  bridge: [{ type: "bridge", bridge: "pods0", isGateway: true, ipam: { type: "berth" } }],
  lan: [macvlan("eth0")],
  "lan-services": [macvlan("eth0"), coordinator()],
  storage: [macvlan("eth1"), coordinator()],
  "lan-asks": [macvlan("eth0"), coordinator({ detectIPConflict: true })],
  "lan-asks-next": [macvlan("eth0"), coordinator({ detectIPConflict: true, detectOptions: { onConflict: "next" } })],
} as const;

export type NetworkName = keyof typeof networks;

export interface PluginConf {
  readonly type: string;
}

export interface NetworkList {
  readonly cniVersion: string;
  readonly name: string;
  readonly plugins: readonly PluginConf[];
}

/** Network configuration lists; no other network of the machine has names with this prefix. */
export function networkLists(prefix: string): Map<NetworkName, NetworkList> {
  const names = Object.keys(networks) as NetworkName[];
  return new Map(
    names.map((name) => [name, { cniVersion: "1.0.0", name: `${prefix}-${name}`, plugins: networks[name] }]),
  );
}
