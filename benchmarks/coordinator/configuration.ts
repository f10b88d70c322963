/** Configuration of the benchmark: pools, networks, the plugins' stdin. */

export type Families = "IPv4" | "dual stack";

/** The window of detection in the benchmark: the default of the specification. */
export const WINDOW_MS = 200;

/** Addresses of Berth's default pool; those of {@link podAddress} and of {@link rivalAddress} are not in it. */
const POOL_RANGE = "10.6.200.1-10.6.219.250";
const RIVAL_OCTET = 230;
/** Number of addresses of the pool `taken` that the benchmark can use up: each is in quarantine after its conflict. */
export const MOST_RIVALS = 40;

/** Networks, by their definitions' settings of detection. */
export const PLAIN = "plain";
export const ASKING = "asking";
export const TAKEN = "taken";

export const rivalAddress = (index: number): string => `10.6.${RIVAL_OCTET}.${index + 1}`;

/** The addresses of a pod that the benchmark sets up without an IPAM. */
export function podAddress(number: number): { readonly v4: string; readonly v6: string } {
  return { v4: `10.6.${16 + (number >> 8)}.${number & 255}`, v6: `fd00:6::1:${number.toString(16)}` };
}

/** Pools, and the leave to route the addresses of {@link podAddress}. */
export function manifests(): string {
  const pool = (name: string, ips: string, isDefault: boolean): string => `apiVersion: ipam.vendor.io/v1
kind: IPPool
metadata: {name: ${name}}
spec: {subnet: 10.6.0.0/16, gateway: 10.6.0.1, ips: [${ips}], default: ${isDefault}}
`;
  const taken = `${rivalAddress(0)}-${rivalAddress(MOST_RIVALS - 1)}`;
  const settings = `apiVersion: v1
kind: ConfigMap
metadata: {name: vendor-conf}
data: {conf.yml: 'hostRouteCIDR: ["10.6.0.0/16", "fd00:6::/64"]'}
`;
  return [settings, pool("bench", POOL_RANGE, true), pool(TAKEN, taken, false)].join("---\n");
}

/** The network definitions of the node, by file name: `berth` reads in them whether it has to ask. */
export function definitions(): Record<string, string> {
  const names = [PLAIN, ASKING, TAKEN];
  const plugins = (name: string): object[] => [mainEntry(berthIpam(name)), coordinatorEntry(name !== PLAIN)];
  return Object.fromEntries(names.map((name) => [`${name}.conflist`, networkList(name, plugins(name))]));
}

export function networkList(name: string, plugins: readonly object[]): string {
  return JSON.stringify({ cniVersion: CNI_VERSION, name, plugins });
}

export const CNI_VERSION = "1.0.0";

export function berthIpam(network: string): object {
  return { type: "berth", ...(network === TAKEN ? { default_ipv4_ippool: [TAKEN] } : {}) };
}

/** The reference IPAM on a range of its own. */
export function hostLocalIpam(dataDir: string): object {
  const range = { subnet: "10.6.0.0/16", rangeStart: "10.6.240.1", rangeEnd: "10.6.243.250", gateway: "10.6.0.1" };
  return { type: "host-local", dataDir, ranges: [[range]], routes: [{ dst: "0.0.0.0/0" }] };
}

export function mainEntry(ipam: object): object {
  return { type: "macvlan", master: "uplink", mode: "bridge", ipam };
}

function coordinatorEntry(asks: boolean): object {
  const detection = asks ? { detectIPConflict: true, detectOptions: { window: `${WINDOW_MS}ms` } } : {};
  return {
    type: "coordinator",
    mode: "auto",
    serviceCIDR: ["10.96.0.0/16", "fd00:96::/112"],
    hijackCIDR: ["169.254.20.10"],
    ...detection,
  };
}

/** Stdin of `macvlan`, or of its IPAM alone. */
export function mainConf(network: string, ipam: object): string {
  return JSON.stringify({ cniVersion: CNI_VERSION, name: network, ...mainEntry(ipam) });
}

/**
 * Stdin of `coordinator`, with the result of the plugin before it: a value, or the runner's mark for it. A DEL needs
 * none.
 */
export function coordinatorConf(network: string, asks: boolean, prevResult?: object | "{prevResult}"): string {
  const conf = { cniVersion: CNI_VERSION, name: network, ...coordinatorEntry(asks), prevResult };
  return JSON.stringify(conf).replace('"{prevResult}"', "{prevResult}");
}

/** Returns the result of a main plugin for the pod that {@link podAddress} describes, or for one with `v4`. */
export function preparedResult(netnsPath: string, number: number, families: Families, v4?: string): object {
  const addresses = podAddress(number);
  const ips = [
    { address: `${v4 ?? addresses.v4}/16`, gateway: "10.6.0.1", interface: 0 },
    { address: `${addresses.v6}/64`, gateway: "fd00:6::1", interface: 0 },
  ];
  const routes = [
    { dst: "0.0.0.0/0", gw: "10.6.0.1" },
    { dst: "::/0", gw: "fd00:6::1" },
  ];
  const count = families === "IPv4" ? 1 : 2;
  return {
    cniVersion: CNI_VERSION,
    interfaces: [{ name: "eth0", sandbox: netnsPath }],
    ips: ips.slice(0, count),
    routes: routes.slice(0, count),
    dns: {},
  };
}
