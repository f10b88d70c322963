/**
 * The plugins of a network from flags: those of `berthctl network`, which are also the options of a network of Podman.
 * Values that the agent's decoders refuse are refused here, by the name of the flag.
 */
import { ConfigError } from "./config-error.ts";
import { coordinatorKeys, decodeCoordinatorConf } from "./coordinator-conf.ts";
import { decodeIfacerConf, MAX_VLAN_ID } from "./ifacer-conf.ts";
import { decodeIpamConf } from "./ipam-conf.ts";

/** Main plugins of the CNI project, and the one for SR-IOV. */
export const NETWORK_TYPES = ["macvlan", "ipvlan", "bridge", "ptp", "sriov"] as const;

/** A combination of flags that makes no usable network. The text names flag, value, and the wanted one. */
export class FlagError extends Error {
  override readonly name = "FlagError";
  readonly flag: string;
  readonly got: string;
  readonly wanted: string;

  constructor(flag: string, got: string, wanted: string) {
    super(`Option ${flag}: found ${got}, want ${wanted}`);
    [this.flag, this.got, this.wanted] = [flag, got, wanted];
  }
}

/** Values of the flags as they were written. */
export interface NetworkFlags {
  readonly type: (typeof NETWORK_TYPES)[number];
  readonly conflist?: true;
  readonly namespace?: string;
  readonly master?: readonly string[];
  readonly vlan?: string;
  readonly mtu?: string;
  readonly bondName?: string;
  readonly bondMode?: string;
  readonly bondOptions?: string;
  readonly bridge?: string;
  readonly ipv4Pool?: readonly string[];
  readonly ipv6Pool?: readonly string[];
  readonly resourceName?: string;
  readonly cniVersion: string;
  /** False: no entry of the coordinator. */
  readonly coordinator: boolean;
  /** Keys of the coordinator by their names. */
  readonly settings: Readonly<Record<string, string>>;
}

/** Returns the flag of a key of the coordinator: its name, unless other plugins have a key of that name. */
const flagOf = (key: string): string => (key === "mode" ? "coordinator-mode" : key);

/** Keys of the coordinator that are flags, with their descriptions. */
export const COORDINATOR_FLAGS = Object.entries(coordinatorKeys.shape)
  .filter(([key]) => key !== "type" && key !== "tune_mode")
  .map(([key, schema]) => ({
    key,
    flag: flagOf(key),
    description: (schema.unwrap().meta()?.description ?? "").replaceAll("`", '"'),
  }));

/** Returns a JSON value; text that is not JSON stays text, in a list split at its commas. */
function decodeValue(key: string, text: string): unknown {
  if (/^(?:true|false|-?\d+|\[.*\]|\{.*\})$/s.test(text)) {
    try {
      return JSON.parse(text);
    } catch {}
  }
  // Lists may be written with commas.
  return key.endsWith("CIDR") ? text.split(",").filter((part) => part !== "") : text;
}

/** Runs a decoder; its error names the flag of the field that it refuses. */
export function checked<T>(flags: Readonly<Record<string, string>>, decode: () => T): T {
  try {
    return decode();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const longest = Object.keys(flags)
      .filter((path) => error.path.startsWith(path))
      .sort((a, b) => b.length - a.length)[0];
    throw new FlagError(longest === undefined ? error.path : (flags[longest] ?? ""), error.got, error.wanted);
  }
}

export const shown = (value: string | readonly string[]): string => JSON.stringify(value);

/** Refuses flags that the type has no use for, and asks for those that it needs. */
function checkCombination(flags: NetworkFlags): void {
  const { type, master = [] } = flags;
  const onlyFor = (flag: string, value: string | readonly string[] | undefined, isUsable: boolean, wanted: string) => {
    if (value !== undefined && !isUsable) throw new FlagError(flag, shown(value), wanted);
  };
  const hasParent = type === "macvlan" || type === "ipvlan";
  onlyFor("--master", flags.master, hasParent, `no master with --type ${type}: only macvlan and ipvlan have one`);
  onlyFor("--bridge", flags.bridge, type === "bridge", `--type bridge, not ${type}`);
  onlyFor("--mtu", flags.mtu, type !== "sriov", "no --type sriov: its device has the MTU");
  onlyFor("--vlan", flags.vlan, hasParent || type === "sriov", `--type macvlan, ipvlan or sriov, not ${type}`);
  const several = "at least two values of --master: a bond joins them";
  onlyFor("--bond-name", flags.bondName, master.length > 1, several);
  onlyFor("--bond-mode", flags.bondMode, master.length > 1, several);
  onlyFor("--bond-options", flags.bondOptions, master.length > 1, several);
  onlyFor("--resource-name", flags.resourceName, type === "sriov", `--type sriov, not ${type}`);
  const object = "no --conflist: only a NetworkAttachmentDefinition has it";
  onlyFor("--resource-name", flags.resourceName, flags.conflist !== true, object);
  onlyFor("--namespace", flags.namespace, flags.conflist !== true, object);
  if (hasParent && master.length === 0)
    throw new FlagError("--master", "nothing", `the node's interface under the pods' NICs: --type ${type} needs it`);
  if (type === "sriov" && flags.conflist !== true && flags.resourceName === undefined)
    throw new FlagError("--resource-name", "nothing", "the resource of the SR-IOV device plugin, such as vendor.io/vf");
  if (flags.resourceName !== undefined && !/^[a-z0-9.-]+\/[A-Za-z0-9._-]+$/.test(flags.resourceName))
    throw new FlagError("--resource-name", shown(flags.resourceName), "prefix/name, such as vendor.io/vf");
  const [setting] = Object.entries(flags.settings);
  if (!flags.coordinator && setting !== undefined)
    throw new FlagError(
      `--${flagOf(setting[0])}`,
      shown(setting[1]),
      "no --no-coordinator: it is a key of the coordinator",
    );
}

/** Returns the entry of ifacer and the device that it makes; without a VLAN and a bond only the master. */
function ifacerOf(flags: NetworkFlags): { readonly entries: object[]; readonly device: string } {
  const { master = [], vlan, bondName, bondMode = "active-backup", bondOptions } = flags;
  const bond = master.length < 2 ? undefined : { name: bondName, mode: bondMode, options: bondOptions };
  const keys = { interfaces: master, vlanID: vlan && decodeValue("vlanID", vlan), bond };
  const names = {
    interfaces: "--master",
    vlanID: "--vlan",
    "bond.name": "--bond-name",
    "bond.mode": "--bond-mode",
    "bond.options": "--bond-options",
  };
  const { vlanName, bond: made, interfaces } = checked(names, () => decodeIfacerConf(keys, "ifacer"));
  const device = vlanName ?? made?.name ?? interfaces[0] ?? "";
  const isNeeded = vlanName !== undefined || made !== undefined;
  return { entries: isNeeded ? [{ type: "ifacer", ...keys }] : [], device };
}

function ipamOf({ ipv4Pool, ipv6Pool }: NetworkFlags): object {
  const ipam = { type: "berth", default_ipv4_ippool: ipv4Pool, default_ipv6_ippool: ipv6Pool };
  const names = { default_ipv4_ippool: "--ipv4-pool", default_ipv6_ippool: "--ipv6-pool" };
  checked(names, () => decodeIpamConf(ipam, "ipam"));
  return ipam;
}

/** From IPv4's minimum (RFC 791 §3.2) to the kernel's maximum for virtual links: 68 to 65535. */
function mtuOf({ mtu }: NetworkFlags): { readonly mtu?: number } {
  if (mtu === undefined) return {};
  if (/^\d{2,5}$/.test(mtu) && Number(mtu) >= 68 && Number(mtu) <= 65_535) return { mtu: Number(mtu) };
  throw new FlagError("--mtu", shown(mtu), "a whole number from 68 to 65535");
}

function mainEntries(flags: NetworkFlags): object[] {
  const { type } = flags;
  const rest = { ...mtuOf(flags), ipam: ipamOf(flags) };
  switch (type) {
    case "macvlan":
    case "ipvlan": {
      const { entries, device } = ifacerOf(flags);
      return [...entries, { type, master: device, mode: type === "macvlan" ? "bridge" : "l2", ...rest }];
    }
    case "bridge":
      return [{ type, bridge: flags.bridge, ...rest }];
    case "ptp":
      return [{ type, ...rest }];
    case "sriov": {
      const vlan = flags.vlan === undefined ? undefined : Number(flags.vlan);
      if (vlan !== undefined && !(Number.isInteger(vlan) && vlan >= 0 && vlan <= MAX_VLAN_ID))
        throw new FlagError("--vlan", shown(flags.vlan ?? ""), `a whole number from 0 to ${MAX_VLAN_ID}`);
      return [{ type, vlan, ...rest }];
    }
  }
}

function coordinatorEntries({ coordinator, settings }: NetworkFlags): object[] {
  if (!coordinator) return [];
  const entry = Object.fromEntries(Object.entries(settings).map(([key, text]) => [key, decodeValue(key, text)]));
  const names = Object.fromEntries(Object.keys(settings).map((key) => [key, `--${flagOf(key)}`]));
  checked(names, () => decodeCoordinatorConf(entry, "coordinator"));
  return [{ type: "coordinator", ...entry }];
}

/** Returns the entries of the network's list; a key without its flag is undefined. Throws {@link FlagError}. */
export function pluginsOfFlags(flags: NetworkFlags): readonly object[] {
  checkCombination(flags);
  return [...mainEntries(flags), ...coordinatorEntries(flags)];
}
