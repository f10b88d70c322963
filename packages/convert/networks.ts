/**
 * Network definitions of peers: where they are, and how they become definitions of Berth's. Keys that other plugins
 * read do not change.
 */
import { pluginKeys } from "../../host/cni/net-conf.ts";
import { COORDINATOR_TYPES, IFACER_TYPES, isIfacer } from "../../host/cni/request.ts";
import { SUPPORTED_VERSIONS } from "../../host/cni/version.ts";
import { ConfigError } from "../../host/config/config-error.ts";
import { isDnsLabel, isDnsSubdomain } from "../../host/config/fields/names.ts";
import { decodeIfacerConf } from "../../host/config/ifacer-conf.ts";
import { decodeAttachedNetwork, findCoordinatorSettings, findIpamConf } from "../../host/config/network-definition.ts";
import { describeValue } from "../../host/lib/describe.ts";
import { JsonError, parseJson } from "../../host/lib/json.ts";
import type { Family } from "../../host/net/ip.ts";
import { CONVERTED_LABEL, type PlanBuilder } from "./conversion-plan.ts";
import { joinPath } from "./decode-placed.ts";
import type { Place, PlacedField } from "./findings.ts";
import { type Input, isTooDeep, refuseDepth } from "./input.ts";

type Json = Readonly<Record<string, unknown>>;

/** A plugin of a network, with its place in the object. */
export interface PlacedPlugin {
  readonly entry: Json;
  /** `spec.config.plugins[0]` */
  readonly field: string;
}

export interface PeerNetwork {
  readonly place: Place;
  /** The definition's name, or the network's if it is a file. */
  readonly name: string;
  /** Undefined for a file. */
  readonly namespace: string | undefined;
  readonly fileName: string;
  readonly node: string | undefined;
  readonly annotations: Readonly<Record<string, string>>;
  readonly config: Json;
  readonly plugins: readonly PlacedPlugin[];
}

export const NETWORK_DEFINITION_KIND = "NetworkAttachmentDefinition";
const NETWORK_API = "k8s.cni.cncf.io/v1";

/** Returns the networks of the input: definitions, and files of nodes. */
export function findNetworks({ objects, configs }: Input): PeerNetwork[] {
  const defined = objects
    .filter(({ apiVersion, kind }) => apiVersion === NETWORK_API && kind === NETWORK_DEFINITION_KIND)
    .flatMap((object): PeerNetwork[] => {
      const { spec } = object.value;
      const text = isJson(spec) ? spec.config : undefined;
      if (typeof text !== "string" || text.trim() === "") return [];
      const config = parseConfig(text, { place: object.place, field: "spec.config" });
      const { name, namespace, place, annotations } = object;
      const around = { place, name, namespace: namespace || "default", fileName: "", node: undefined, annotations };
      return config === undefined ? [] : [{ ...around, config, plugins: pluginsOf(config, "spec.config") }];
    });
  const files = configs.map(({ place, fileName, node, value }): PeerNetwork => {
    const name = typeof value.name === "string" ? value.name : fileName;
    return {
      place,
      name,
      namespace: undefined,
      fileName,
      node,
      annotations: {},
      config: value,
      plugins: pluginsOf(value, ""),
    };
  });
  return [...defined, ...files];
}

/** Returns a JSON text that must be an object; undefined with a problem if it is not. */
export function parseConfig(text: string, { place, field }: PlacedField): Json | undefined {
  try {
    const value = parseJson(text);
    if (isTooDeep(value)) {
      refuseDepth(place, field);
      return undefined;
    }
    if (isJson(value)) return value;
    place.problem(field, value, "not converted: want an object in JSON");
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    place.addPhrase("problem", field, error.found, `not converted: ${error.message}`);
  }
  return undefined;
}

export function isJson(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function pluginsOf(config: Json, field: string): PlacedPlugin[] {
  if (!Array.isArray(config.plugins)) return [{ entry: config, field }];
  return config.plugins.flatMap((entry: unknown, at) =>
    isJson(entry) ? [{ entry, field: joinPath(field, `plugins[${at}]`) }] : [],
  );
}

/** Returns the IPAM object of a plugin if it is of this type. */
export function ipamOf({ entry: { ipam } }: PlacedPlugin, type: string): Json | undefined {
  return isJson(ipam) && ipam.type === type ? ipam : undefined;
}

/** Returns the networks that have a plugin with IPAM of this type, with that plugin and its IPAM object. */
export function findNetworksWith(input: Input, type: string) {
  return findNetworks(input).flatMap((network) => {
    const [plugin, ...others] = network.plugins.filter((each) => ipamOf(each, type) !== undefined);
    for (const { field } of others)
      network.place.problem(joinPath(field, "ipam"), type, "not converted: want one plugin with IPAM in a network");
    const own = plugin && ipamOf(plugin, type);
    if (plugin === undefined || own === undefined) return [];
    return { network, plugin, own, context: { place: network.place, field: joinPath(plugin.field, "ipam") } };
  });
}

/** Returns the `ipam` object of Berth with the pools of each family. */
export function berthIpam(pools: Readonly<Partial<Record<Family, readonly string[]>>>): object {
  const { 4: v4 = [], 6: v6 = [] } = pools;
  return {
    type: "berth",
    ...(v4.length === 0 ? {} : { default_ipv4_ippool: v4 }),
    ...(v6.length === 0 ? {} : { default_ipv6_ippool: v6 }),
  };
}

/** Returns the name of the definition that replaces one of a peer. */
export function newNetworkName(name: string, suffix: string): string {
  return `${name}${suffix}`;
}

/**
 * Adds the network with these plugins in place of the peer's. Berth's decoders check it, as the agent would. Returns
 * whether there is a definition that replaces the peer's.
 */
export function addNetwork(network: PeerNetwork, plugins: readonly Json[], builder: PlanBuilder): boolean {
  const { place, config, namespace, node, fileName, annotations } = network;
  const name = newNetworkName(network.name, namespace === undefined ? "" : builder.suffix);
  const isList = Array.isArray(config.plugins);
  const [only] = plugins;
  const version = versionOf(network);
  const base = isList ? { ...config, plugins } : (only ?? {});
  const changed = { ...base, cniVersion: version, name: config.name ?? name };
  const text = JSON.stringify(changed, undefined, 2);
  try {
    verifyNetwork(text, network.name, place);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    for (const { path, got, wanted } of error.mismatches) {
      const where = error.source === place.object ? path : `${error.source.slice(place.object.length + 2)}, ${path}`;
      place.addPhrase("problem", where, got, `not converted: Berth wants ${wanted}`);
    }
    return false;
  }
  if (namespace === undefined) {
    builder.addNodeFile({ path: node === undefined ? fileName : `${node}/${fileName}`, text: `${text}\n` });
    return false;
  }
  if (!isDnsSubdomain(name) || !isDnsLabel(namespace)) {
    place.problem("metadata", `${namespace}/${name}`, "not converted: want names that Kubernetes accepts");
    return false;
  }
  const kept = Object.entries(annotations).filter(([key]) => key.startsWith("k8s.v1.cni.cncf.io/"));
  const metadata = {
    name,
    namespace,
    labels: { [CONVERTED_LABEL]: builder.peer },
    ...(kept.length === 0 ? {} : { annotations: Object.fromEntries(kept) }),
  };
  builder.addNetwork({
    apiVersion: NETWORK_API,
    kind: NETWORK_DEFINITION_KIND,
    metadata,
    spec: { config: `${text}\n` },
  });
  return true;
}

const OLDEST_VERSION = "0.3.1";

function versionOf({ config, place, namespace }: PeerNetwork): string {
  const { cniVersion } = config;
  if (SUPPORTED_VERSIONS.some((version) => version === cniVersion)) return String(cniVersion);
  const field = namespace === undefined ? "cniVersion" : "spec.config.cniVersion";
  place.addPhrase("changed", field, describeValue(cniVersion), `written as ${OLDEST_VERSION}`);
  return OLDEST_VERSION;
}

/** Throws ConfigError for a configuration that the agent would refuse. */
function verifyNetwork(text: string, name: string, place: Place): void {
  const { plugins } = decodeAttachedNetwork(text, name, place.object);
  findIpamConf(plugins);
  findCoordinatorSettings(plugins);
  for (const { entry, place } of plugins) if (isIfacer(entry.type)) decodeIfacerConf(pluginKeys({ raw: entry }), place);
}

/** The names of Berth's plugins that no other product has: [coordinator, ifacer]. */
export const [, OWN_COORDINATOR] = COORDINATOR_TYPES;
export const [, OWN_IFACER] = IFACER_TYPES;
