/**
 * What an administrator of the demo's node writes: pools and settings for Berth, pods with their wishes, CNI networks.
 * Called by the stage and the scenes.
 * Effects: none.
 */

/** Two pools of the data-centre's network, one for a bridge inside the node, one that is nearly used up. */
export const pools = {
  blue: { subnet: "10.10.0.0/24", ips: "10.10.0.10-10.10.0.250", gateway: "10.10.0.1" },
  "lan-v4": { subnet: "10.20.0.0/24", ips: "10.20.0.50-10.20.0.99", gateway: "10.20.0.1" },
  "lan-v6": { subnet: "fd00:20::/64", ips: "fd00:20::50-fd00:20::ffff", gateway: "fd00:20::1" },
  tiny: { subnet: "10.10.0.0/24", ips: "10.10.0.5", gateway: "10.10.0.1" },
} as const;

export type PoolName = keyof typeof pools;

/** A released address rests before somebody else gets it; two seconds, so that the story need not wait for the default 30. */
export const settings = `apiVersion: v1
kind: ConfigMap
metadata: {name: vendor-conf, namespace: kube-system}
data:
  conf.yml: |
    allowSingleFamily: true
    allocationCooldown: 2s
`;

export function poolManifests(): string {
  const manifest = ([name, { subnet, ips, gateway }]: [string, (typeof pools)[PoolName]]): string =>
    `apiVersion: ipam.vendor.io/v1
kind: IPPool
metadata: {name: ${name}}
spec: {subnet: "${subnet}", ips: ["${ips}"], gateway: "${gateway}"}
`;
  return Object.entries(pools).map(manifest).join("---\n");
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

/** Network configuration lists: the reference plugins bridge and macvlan, each with Berth as its IPAM. */
export function networkLists(names: { bridge: string; lan: string }): Record<string, object> {
  const list = (name: string, plugin: object): object => ({ cniVersion: "1.0.0", name, plugins: [plugin] });
  const ipam = { type: "berth" };
  return {
    [names.bridge]: list(names.bridge, { type: "bridge", bridge: "cni0", isGateway: true, ipam }),
    [names.lan]: list(names.lan, { type: "macvlan", master: "uplink", mode: "bridge", ipam }),
  };
}
