/**
 * Decodes network definitions, from files of a CNI directory (`*.conflist`, `*.conf`, `*.json`) or from a
 * NetworkAttachmentDefinition, and the entries of the coordinator and of Berth's IPAM plugin in them.
 */
import * as z from "zod";
import { IDENTIFIER_FORM, parseNetworkName } from "../cni/names.ts";
import { pluginKeys } from "../cni/net-conf.ts";
import { isCoordinator, isIfacer } from "../cni/request.ts";
import { parsedText } from "../lib/schema.ts";
import { type Mac, parseLinkAddress } from "../net/mac.ts";
import { decodeConfig, decodeJsonConfig } from "./config-error.ts";
import { decodeCoordinatorConf } from "./coordinator-conf.ts";
import type { CoordinatorSettings } from "./coordinator-settings.ts";
import { decodeIpamConf, type IpamConf } from "./ipam-conf.ts";

/** Main plugins whose DEL does nothing but release the NIC's addresses and delete the NIC, if there still is one. */
const PLAIN_MAIN_TYPES: readonly string[] = ["macvlan", "ipvlan"];

const pluginEntry = z.looseObject({ type: z.string() });

/** An entry and its place: `file "/etc/cni/net.d/10-lan.conflist", plugins[1]`. */
export interface PlacedEntry {
  /** With its raw keys. */
  readonly entry: z.output<typeof pluginEntry>;
  readonly place: string;
}

export interface NetworkDefinition {
  readonly name: string;
  readonly plugins: readonly PlacedEntry[];
  /** If false, the plugins in the directory of the network's name follow (CNI 1.1, `loadOnlyInlinedPlugins`). */
  readonly inlinedOnly: boolean;
}

const networkName = parsedText(parseNetworkName, IDENTIFIER_FORM);

/** A boolean of the CNI specification, which may also be text. */
const flag = z.union([z.boolean(), z.string().regex(/^(true|false)$/i)], { error: "true or false" });

const networkList = z.looseObject({
  name: networkName,
  plugins: z.array(pluginEntry).min(1).optional(),
  loadOnlyInlinedPlugins: flag.default(false),
});

/** A network: a list of plugins, or a single one. */
const attachedNetwork = z.union(
  [
    z.looseObject({ name: networkName.optional(), plugins: z.array(pluginEntry).min(1) }),
    z.looseObject({ name: networkName.optional(), type: z.string(), plugins: z.undefined().optional() }),
  ],
  { error: "a list of plugins, or a plugin with its type" },
);

const namedPlugin = z.looseObject({ name: networkName, type: z.string() });

/** Decodes a `*.conflist`. Throws ConfigError. */
export function decodeNetworkList(text: string, source: string): NetworkDefinition {
  const { name, plugins = [], loadOnlyInlinedPlugins } = decodeJsonConfig(networkList, text, source);
  return {
    name,
    plugins: plugins.map((entry, index) => ({ entry, place: `${source}, plugins[${index}]` })),
    inlinedOnly: String(loadOnlyInlinedPlugins).toLowerCase() === "true",
  };
}

/** Decodes a `*.conf` or `*.json`, a network of one plugin. Throws ConfigError. */
export function decodeNetworkOfOne(text: string, source: string): NetworkDefinition {
  const entry = decodeJsonConfig(namedPlugin, text, source);
  return { name: entry.name, plugins: [{ entry, place: source }], inlinedOnly: true };
}

/** Decodes a `*.conf` in the directory of a network's name, a further plugin of that network. Throws ConfigError. */
export function decodePluginFile(text: string, source: string): PlacedEntry {
  return { entry: decodeJsonConfig(pluginEntry, text, source), place: source };
}

/** Returns the entry of the first coordinator among the plugins. */
export function findCoordinator(plugins: readonly PlacedEntry[]): PlacedEntry | undefined {
  return plugins.find(({ entry }) => isCoordinator(entry.type));
}

/** Returns the settings of the first coordinator among the plugins; undefined if there is none. Throws ConfigError. */
export function findCoordinatorSettings(plugins: readonly PlacedEntry[]): CoordinatorSettings | undefined {
  const found = findCoordinator(plugins);
  return found && decodeCoordinatorConf(pluginKeys({ raw: found.entry }), found.place);
}

/** Decodes a NetworkAttachmentDefinition's configuration; `name`: by default the network's. Throws ConfigError. */
export function decodeAttachedNetwork(text: string, name: string, source: string): NetworkDefinition {
  return networkOf(decodeJsonConfig(attachedNetwork, text, source), name, source);
}

/**
 * Returns the fields that Berth reads of a network's configuration, of any form: for plugins of others their type, the
 * `ipam` object of Berth, and whether they take an address or set a MAC address.
 */
export function trimNetwork(value: unknown): unknown {
  if (!isObject(value) || Array.isArray(value)) return value;
  const { name, plugins } = value;
  if (!Array.isArray(plugins)) return plugins === undefined ? { name, ...trimPlugin(value) } : { name, plugins };
  return { name, plugins: plugins.map((entry) => (isObject(entry) ? trimPlugin(entry) : entry)) };
}

function trimPlugin(entry: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { type, ipam, mac, capabilities, args, isGateway, isDefaultGateway } = entry;
  if (isCoordinator(type) || isIfacer(type)) return entry;
  const cni = isObject(args) ? args.cni : undefined;
  return {
    ...("type" in entry ? { type } : {}),
    ...(isObject(ipam) ? { ipam: isBerth(ipam) ? ipam : {} } : {}),
    ...(typeof mac === "string" ? { mac } : {}),
    ...(isGateway === true ? { isGateway } : {}),
    ...(isDefaultGateway === true ? { isDefaultGateway } : {}),
    ...(isObject(capabilities) && capabilities.mac === true ? { capabilities: { mac: true } } : {}),
    ...(isObject(cni) && "ips" in cni ? { args: { cni: { ips: cni.ips } } } : {}),
  };
}

/** The same of a value inside another configuration, as a meta plugin's `delegates` has them. Throws ConfigError. */
export function decodeInnerNetwork(value: unknown, name: string, source: string): NetworkDefinition {
  return networkOf(decodeConfig(attachedNetwork, value, source), name, source);
}

function networkOf(found: z.output<typeof attachedNetwork>, name: string, source: string): NetworkDefinition {
  const plugins = found.plugins?.map((entry, index) => ({ entry, place: `${source}, plugins[${index}]` }));
  const own = { entry: { ...found, type: String(found.type) }, place: source };
  return { name: found.name ?? name, plugins: plugins ?? [own], inlinedOnly: true };
}

/** Returns the `ipam` object of the first plugin with Berth as IPAM; undefined without one. Throws ConfigError. */
export function findIpamConf(plugins: readonly PlacedEntry[]): IpamConf | undefined {
  const found = plugins.find(({ entry }) => isBerth(entry.ipam));
  return found && decodeIpamConf(found.entry.ipam, `${found.place}, ipam`);
}

/**
 * Returns whether no plugin of the network needs the NIC in its DEL: they are a plain main plugin with addresses of
 * Berth, Berth's coordinator, and its ifacer. DHCP, for example, gives an address back over the NIC.
 */
export function isNicDispensable(plugins: readonly PlacedEntry[]): boolean {
  const [main, ...others] = plugins.map(({ entry }) => entry).filter(({ type }) => !isIfacer(type));
  if (main === undefined || !PLAIN_MAIN_TYPES.includes(main.type) || !isBerth(main.ipam)) return false;
  return others.length > 0 && others.every(({ type }) => isCoordinator(type));
}

/** Returns the MAC address that one of the plugins gives the NIC of every pod, and that plugin's type. */
export function findMac(plugins: readonly PlacedEntry[]): { readonly mac: Mac; readonly type: string } | undefined {
  for (const { entry } of plugins) {
    const mac = typeof entry.mac === "string" ? parseLinkAddress(entry.mac)?.mac : undefined;
    if (mac !== undefined) return { mac, type: entry.type };
  }
  return undefined;
}

/** Returns whether one of the plugins sets a MAC address that the runtime hands to it alone. */
export function takesMac(plugins: readonly PlacedEntry[]): boolean {
  return plugins.some(({ entry: { capabilities } }) => isObject(capabilities) && capabilities.mac === true);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

/** Returns whether a plugin behind the coordinator moves the NIC's routes out of the main table. */
export function losesMainRoutes(plugins: readonly PlacedEntry[]): boolean {
  const types = plugins.map(({ entry }) => entry.type);
  const at = types.findIndex(isCoordinator);
  return at >= 0 && types.indexOf("sbr", at) >= 0;
}

function isBerth(ipam: unknown): boolean {
  return isObject(ipam) && ipam.type === "berth";
}
