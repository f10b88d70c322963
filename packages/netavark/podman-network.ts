/**
 * Networks of Podman whose driver is Berth: their JSON, in /etc/containers/networks and in each call of netavark, as
 * the plugins of a CNI list. Their options are the flags of `berthctl network`.
 */
import * as z from "zod";
import { IDENTIFIER_FORM, parseNetworkName } from "../../host/cni/names.ts";
import { ConfigError, decodeConfig, decodeJsonConfig } from "../../host/config/config-error.ts";
import { decodeInnerNetwork, type NetworkDefinition } from "../../host/config/network-definition.ts";
import { COORDINATOR_FLAGS, FlagError, type NetworkFlags, pluginsOfFlags } from "../../host/config/network-flags.ts";
import { orAbsent, parsedText, textMap } from "../../host/lib/schema.ts";

/** The driver's name, which is the name of its executable. */
const DRIVER = "berth";

/** Lists may be null: Go encodes empty ones so. */
const list = orAbsent(z.array(z.unknown()));

const networkSchema = z.looseObject({
  name: parsedText(parseNetworkName, IDENTIFIER_FORM),
  driver: z.string(),
  internal: orAbsent(z.boolean()),
  network_interface: orAbsent(z.string()),
  options: orAbsent(textMap()),
  subnets: list,
  routes: list,
});

type PodmanNetwork = z.output<typeof networkSchema>;

/** Main plugins whose NIC the agent makes by itself. */
const TYPES = ["macvlan", "ipvlan"] as const;

/** Modes in which the agent makes NICs, as netavark's drivers call them: other modes are the coordinator's. */
const MODES = { macvlan: "bridge", ipvlan: "l2" } as const;

/** Options of the NIC, as netavark's own drivers have them: their form, in words as well. */
const NIC_OPTIONS = {
  mtu: [/^[1-9]\d{0,4}$/, "a number of bytes"],
  metric: [/^\d{1,9}$/, "a number: the metric of default routes"],
  no_default_route: [/^(?:true|false|[01])$/, "true or false"],
} as const;

/** The parent of a network that names none is found when a container starts. */
const ANY_PARENT = "any";

/** Options of one value, and of a list with commas. The keys of the coordinator are options as well. */
const SINGLE = {
  vlan: "vlan",
  "bond-name": "bondName",
  "bond-mode": "bondMode",
  "bond-options": "bondOptions",
} as const;
const LISTS = { master: "master", parent: "master", "ipv4-pool": "ipv4Pool", "ipv6-pool": "ipv6Pool" } as const;
const OWN_OPTIONS = ["type", "coordinator", ...[SINGLE, LISTS, NIC_OPTIONS].flatMap(Object.keys)];

const isIn = <T extends object>(key: string, table: T): key is Extract<keyof T, string> => Object.hasOwn(table, key);

/** Throws FlagError. */
function flagsOf({ options = {}, network_interface: named }: PodmanNetwork): NetworkFlags {
  const type = TYPES.find((each) => each === (options.type ?? "macvlan"));
  if (type === undefined) throw new FlagError("type", JSON.stringify(options.type), TYPES.join(" or "));
  const coordinator = options.coordinator ?? "true";
  if (!/^(true|false)$/.test(coordinator))
    throw new FlagError("coordinator", JSON.stringify(coordinator), "true or false");
  const flags: Record<string, string | readonly string[]> = named ? { master: [named] } : {};
  const settings: Record<string, string> = {};
  for (const [key, text] of Object.entries(options)) {
    if (isIn(key, SINGLE)) flags[SINGLE[key]] = text;
    else if (isIn(key, LISTS)) flags[LISTS[key]] = text.split(",").filter((part) => part !== "");
    else if (key === "mode" && text === MODES[type]) continue;
    else if (COORDINATOR_FLAGS.some((flag) => flag.key === key)) settings[key] = text;
    else if (isIn(key, NIC_OPTIONS)) {
      const [form, wanted] = NIC_OPTIONS[key];
      if (!form.test(text)) throw new FlagError(key, JSON.stringify(text), wanted);
    } else if (!OWN_OPTIONS.includes(key))
      throw new FlagError(key, "this option", `one of ${OWN_OPTIONS.join(", ")}, or a key of the coordinator`);
  }
  return { ...flags, type, cniVersion: "1.1.0", coordinator: coordinator === "true", settings };
}

function networkOf(network: PodmanNetwork, source: string): NetworkDefinition {
  try {
    const flags = flagsOf(network);
    const isFound = [flags.master, flags.vlan, flags.bondName].every((each) => each === undefined);
    const nic = Object.entries(network.options ?? {}).filter(([key]) => isIn(key, NIC_OPTIONS));
    const own = { ...Object.fromEntries(nic), ...(isFound ? { master: undefined } : {}) };
    const plugins = pluginsOfFlags(isFound ? { ...flags, master: [ANY_PARENT] } : flags);
    const withOwn = plugins.map((entry) => ("ipam" in entry ? { ...entry, ...own } : entry));
    return decodeInnerNetwork({ name: network.name, plugins: withOwn }, network.name, source);
  } catch (error) {
    if (!(error instanceof FlagError)) throw error;
    const { flag, got, wanted } = error;
    throw new ConfigError(source, [{ path: `options.${flag.replace(/^--(?:coordinator-)?/, "")}`, got, wanted }]);
  }
}

/** Decodes the network of a call. Throws ConfigError. */
export function decodePodmanNetwork(value: unknown, source: string): NetworkDefinition {
  return networkOf(decodeConfig(networkSchema, value, source), source);
}

/** Decodes a file of Podman's. Undefined for a network of another driver. Throws ConfigError. */
export function decodePodmanFile(text: string, source: string): NetworkDefinition | undefined {
  const network = decodeJsonConfig(networkSchema, text, source);
  return network.driver === DRIVER ? networkOf(network, source) : undefined;
}

/** Options that the pools decide, and those that a NIC on the node's own segment cannot have. */
const REFUSED = [
  { key: "subnets", flag: "--subnet", wanted: "none: the pools have the addresses (-o ipv4-pool, -o ipv6-pool)" },
  { key: "routes", flag: "--route", wanted: "none: routes are in the pools" },
] as const;

/**
 * Returns the network that Podman is to store: Podman allocates no addresses for it, and serves it no names. Throws
 * ConfigError.
 */
export function completePodmanNetwork(text: string, source: string): object {
  const network = decodeJsonConfig(networkSchema, text, source);
  for (const { key, flag, wanted } of REFUSED) {
    const found = network[key]?.length ?? 0;
    if (found > 0) throw new ConfigError(source, [{ path: key, got: `${found} by ${flag}`, wanted }]);
  }
  if (network.internal === true)
    throw new ConfigError(source, [{ path: "internal", got: "true", wanted: "false: use a pool without a gateway" }]);
  networkOf(network, source);
  return { ...network, dns_enabled: false, ipam_options: { driver: "none" } };
}
