/**
 * The common part of whereabouts and host-local: networks whose `ipam` object has the addresses, each of which becomes
 * one pool.
 */
import { type Family, parseIp } from "../../host/net/ip.ts";
import { type AddressDraft, convertAddresses } from "./address-draft.ts";
import type { PlanBuilder } from "./conversion-plan.ts";
import { joinPath } from "./decode-placed.ts";
import type { PlacedField } from "./findings.ts";
import { addNetwork, berthIpam, type PeerNetwork, type PlacedPlugin } from "./networks.ts";

/** Main plugins that use the gateway of the result themselves. */
const GATEWAY_PLUGINS = ["ptp"];

/** Returns whether pods get a default route through the pool's gateway because of the main plugin. */
export function hasDefaultGateway({ entry }: PlacedPlugin): boolean {
  return entry.isDefaultGateway === true || GATEWAY_PLUGINS.includes(String(entry.type));
}

/** Returns whether a gateway or a route is for other ranges of the NIC than this one, by its family. */
export function isForOther(text: string, range: string, ranges: readonly string[]): boolean {
  const family = familyOf(text);
  return family !== familyOf(range) && ranges.some((each) => familyOf(each) === family);
}

/** Takes an address, `address/length` and `first-last/length`. */
function familyOf(text: string): Family | undefined {
  return parseIp(text.split(/[-/]/)[0] ?? "")?.family;
}

/** The address ranges of one address of a NIC: tried in order. */
interface RangeSet {
  readonly field: string;
  readonly drafts: readonly AddressDraft[];
}

interface NetworkPools {
  readonly network: PeerNetwork;
  readonly plugin: PlacedPlugin;
  /** One for each address of the NIC. */
  readonly sets: readonly RangeSet[];
  readonly builder: PlanBuilder;
  /** The only node that may use the pools. */
  readonly node?: string | undefined;
}

/**
 * Makes a pool of each range, and the network with the pools' names. Berth gives a NIC one address of each family.
 * Returns whether there is a definition that replaces the peer's.
 */
export function addNetworkWithPools({ network, plugin, sets, builder, node }: NetworkPools): boolean {
  const { place, name, namespace, plugins } = network;
  const pools: Record<Family, string[]> = { 4: [], 6: [] };
  for (const { field, drafts } of sets) {
    const family = familyOf(drafts[0]?.subnet.value ?? "") ?? 4;
    if (pools[family].length > 0) {
      const text = `a second IPv${family} address of the NIC: Berth gives one of each family. Its range is not converted`;
      place.lost(field, drafts.map(({ subnet }) => subnet.value).join(", "), text);
      continue;
    }
    for (const [at, draft] of drafts.entries()) {
      const fields = convertAddresses(draft, place, builder);
      const base = namespace === undefined || namespace === "default" ? name : `${namespace}-${name}`;
      const poolName = [base, ...(node === undefined ? [] : [node]), `v${family}`, ...(at === 0 ? [] : [at + 1])]
        .join("-")
        .toLowerCase();
      const added =
        fields &&
        builder.addPoolOnce(poolName, { ...fields, ...(node === undefined ? {} : { nodeName: [node] }) }, place);
      if (added !== undefined) pools[family].push(added);
    }
  }
  if (pools[4].length + pools[6].length === 0) {
    place.problem(plugin.field, name, "not converted: no pool could be made for this network");
    return false;
  }
  const converted = plugins.map((each) => (each === plugin ? { ...each.entry, ipam: berthIpam(pools) } : each.entry));
  return addNetwork(network, converted, builder);
}

/**
 * Reports keys of an `ipam` object: those that configure the peer's own program, and those that have a meaning for
 * pods.
 */
export function reportKeys(
  ipam: Readonly<Record<string, unknown>>,
  { place, field }: PlacedField,
  texts: { readonly unneeded: Readonly<Record<string, string>>; readonly lost: Readonly<Record<string, string>> },
): void {
  for (const level of ["unneeded", "lost"] as const) {
    for (const [key, text] of Object.entries(texts[level]))
      if (isSet(ipam[key])) place.add(level, joinPath(field, key), ipam[key], text);
  }
}

function isSet(value: unknown): boolean {
  if (value === undefined || value === "" || value === 0 || value === false) return false;
  return !(typeof value === "object" && value !== null && Object.keys(value).length === 0);
}
