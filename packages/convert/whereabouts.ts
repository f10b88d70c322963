/**
 * whereabouts v0.9: ranges in network definitions and the node's flat file; allocations in IPPools
 * (whereabouts.cni.cncf.io/v1alpha1).
 */
import * as z from "zod";
import { orAbsent } from "../../host/lib/schema.ts";
import { formatIp, type Ip, parseIp } from "../../host/net/ip.ts";
import {
  firstIp,
  formatPrefix,
  lastIp,
  maskPrefix,
  type Prefix,
  parsePrefix,
  prefixContains,
} from "../../host/net/prefix.ts";
import { type AddressDraft, convertAddresses, placedList } from "./address-draft.ts";
import { addNetworkWithPools, hasDefaultGateway, isForOther, reportKeys } from "./cni-ranges.ts";
import { type PlanBuilder, toAddressSpace } from "./conversion-plan.ts";
import { decodePlaced } from "./decode-placed.ts";
import type { Place } from "./findings.ts";
import type { Input, PlacedObject } from "./input.ts";
import { findNetworksWith, type PeerNetwork, type PlacedPlugin } from "./networks.ts";
import { type AnnotationConverter, convertWorkloads } from "./workloads.ts";

const WHEREABOUTS_API = "whereabouts.cni.cncf.io/v1alpha1";
export const WHEREABOUTS_KINDS = [
  { apiVersion: WHEREABOUTS_API, plural: "ippools" },
  { apiVersion: WHEREABOUTS_API, plural: "overlappingrangeipreservations" },
  { apiVersion: WHEREABOUTS_API, plural: "nodeslicepools" },
] as const;

const IPAM_TYPE = "whereabouts";
const ANNOTATION_PREFIX = "whereabouts.cni.cncf.io/";

const text = orAbsent(z.string());
const texts = orAbsent(z.array(z.string()));
const any = z.unknown().optional();

const rangeKeys = { range: z.string(), range_start: text, range_end: text, exclude: texts };

const UNNEEDED = {
  kubernetes: "Berth's agent has its own credentials",
  log_file: "a setting of whereabouts' own programs",
  log_level: "a setting of whereabouts' own programs",
  configuration_path: "a setting of whereabouts' own programs",
  datastore: "Berth's registry is the API server",
  etcd_host: "Berth's registry is the API server",
  etcd_username: "Berth's registry is the API server",
  etcd_password: "Berth's registry is the API server",
  etcd_key_file: "Berth's registry is the API server",
  etcd_cert_file: "Berth's registry is the API server",
  etcd_ca_cert_file: "Berth's registry is the API server",
  leader_lease_duration: "Berth needs no lease",
  leader_renew_deadline: "Berth needs no lease",
  leader_retry_period: "Berth needs no lease",
  sleep_for_race: "Berth needs no lease",
  reconciler_cron_expression: "Berth collects leaks by itself",
  enable_overlapping_ranges: "Berth never allocates an address twice in one address space",
  node_slice_size: "Berth's registry needs no slices; every node uses the whole pool",
} as const;

const LOST = {
  addresses: "static addresses: name them in the pod's networks annotation (ips)",
  dns: "Berth's result has no DNS settings; use those of the pod",
} as const;

const otherKeys = Object.fromEntries([...Object.keys(UNNEEDED), ...Object.keys(LOST)].map((key) => [key, any]));

const ipamSchema = z.object({
  ...otherKeys,
  type: text,
  range: text,
  range_start: text,
  range_end: text,
  exclude: texts,
  ipRanges: orAbsent(z.array(z.object(rangeKeys))),
  gateway: text,
  routes: orAbsent(z.array(z.object({ dst: z.string(), gw: text }))),
  network_name: text,
});

type Ipam = z.output<typeof ipamSchema>;

const poolSpec = z.object({
  range: z.string(),
  allocations: z.record(z.string(), z.object({ id: z.string(), podref: z.string(), ifname: text })),
});

const reservationSpec = z.object({ podref: z.string(), containerid: text, ifname: text });

/** A range that a network uses, and its address space. */
interface KnownRange {
  readonly prefix: Prefix;
  readonly space: string;
  readonly networkName: string;
}

export function convertWhereabouts(input: Input, builder: PlanBuilder): void {
  const renamed = new Set<string>();
  const known: KnownRange[] = [];
  const defaults = readFlatFile(input);
  for (const { network, plugin, own, context } of findNetworksWith(input, IPAM_TYPE)) {
    const { field } = context;
    const ipam = decodePlaced(ipamSchema, own, context);
    if (ipam === undefined) continue;
    reportKeys(own, context, { unneeded: UNNEEDED, lost: LOST });
    const inherited = { ...defaults, ...withoutUndefined(ipam) };
    const { isAdded, ranges } = convertNetwork(network, plugin, { ipam: inherited, field, builder });
    known.push(...ranges);
    if (isAdded) renamed.add(`${network.namespace}/${network.name}`);
  }
  const objects = input.objects.filter(({ apiVersion }) => apiVersion === WHEREABOUTS_API);
  for (const object of objects) {
    if (object.kind === "IPPool") convertPool(object, known, builder);
    else if (object.kind === "OverlappingRangeIPReservation") useReservation(object, known, builder);
    else if (object.kind === "NodeSlicePool")
      object.place.unneeded("spec.sliceSize", object.value.spec, UNNEEDED.node_slice_size);
    else object.place.lost("kind", object.kind, "the converter does not know this kind");
  }
  convertWorkloads(input.objects, builder, { converter: NO_ANNOTATIONS, renamed });
}

/** Returns the settings of `whereabouts.conf`, which networks inherit; its keys are those of the `ipam` object. */
function readFlatFile({ configs }: Input): Partial<Ipam> {
  const files = configs.filter(
    ({ value, fileName }) =>
      fileName === "whereabouts.conf" || (value.type === undefined && value.plugins === undefined),
  );
  const merged = files.map(({ place, value }) => {
    reportKeys(value, { place, field: "" }, { unneeded: UNNEEDED, lost: LOST });
    return decodePlaced(ipamSchema, value, { place, field: "" }) ?? {};
  });
  return Object.assign({}, ...merged.map(withoutUndefined));
}

function withoutUndefined(keys: Partial<Ipam>): Partial<Ipam> {
  return Object.fromEntries(Object.entries(keys).filter(([, value]) => value !== undefined));
}

interface NetworkContext {
  readonly ipam: Partial<Ipam>;
  readonly field: string;
  readonly builder: PlanBuilder;
}

/** Adds pools and network; returns the ranges, and whether the definition has a replacement. */
function convertNetwork(
  network: PeerNetwork,
  plugin: PlacedPlugin,
  { ipam, field, builder }: NetworkContext,
): { readonly isAdded: boolean; readonly ranges: KnownRange[] } {
  const { network_name: networkName = "", ipRanges = [], range, range_start, range_end, exclude } = ipam;
  const space = toAddressSpace(networkName);
  if (networkName !== "")
    network.place.changed(
      `${field}.network_name`,
      networkName,
      `address space "${space}": its addresses are apart from those of other networks`,
    );
  const own = range === undefined ? [] : [{ at: field, range, range_start, range_end, exclude }];
  const ranges = [...own, ...ipRanges.map((each, index) => ({ at: `${field}.ipRanges[${index}]`, ...each }))];
  const sets = ranges.map((each) => {
    const draft = draftOf(each, { ipam, ranges, field, space, isGatewayDefault: hasDefaultGateway(plugin) });
    return { field: `${each.at}.range`, drafts: [draft] };
  });
  const isAdded = addNetworkWithPools({ network, plugin, sets, builder });
  const prefixes = sets.flatMap(({ drafts }) => drafts.flatMap(({ subnet }) => parsePrefix(subnet.value) ?? []));
  return { isAdded, ranges: prefixes.map((prefix) => ({ prefix: maskPrefix(prefix), space, networkName })) };
}

interface RangeText {
  readonly at: string;
  readonly range: string;
  readonly range_start?: string | undefined;
  readonly range_end?: string | undefined;
  readonly exclude?: readonly string[] | undefined;
}

interface DraftContext {
  readonly ipam: Partial<Ipam>;
  /** All of the NIC. */
  readonly ranges: readonly RangeText[];
  readonly field: string;
  readonly space: string;
  readonly isGatewayDefault: boolean;
}

/** The forms of `range` are a CIDR, and `first-last/length`. */
function draftOf(range: RangeText, { ipam, ranges, field, space, isGatewayDefault }: DraftContext): AddressDraft {
  const dash = range.range.indexOf("-");
  const subnet = dash < 0 ? range.range : range.range.slice(dash + 1);
  const prefix = parsePrefix(subnet);
  const start = dash < 0 ? range.range_start : range.range.slice(0, dash);
  const end = dash < 0 ? range.range_end : subnet.split("/")[0];
  const [first, last] = [start, end].map((text) => (text === undefined ? undefined : parseIp(text)));
  const { gateway, routes = [] } = ipam;
  const texts = ranges.map((each) => each.range);
  const isOwn = (text: string) => !isForOther(text, range.range, texts);
  return {
    subnet: {
      field: `${range.at}.range`,
      value: prefix === undefined ? subnet : formatPrefix(dash < 0 ? prefix : maskPrefix(prefix)),
    },
    ips:
      start === undefined && end === undefined
        ? undefined
        : [{ field: `${range.at}.range_start`, value: rangeText(prefix, { start, end, first, last }) }],
    excluded: placedList(`${range.at}.exclude`, range.exclude ?? []),
    gateway: gateway && isOwn(gateway) ? { field: `${field}.gateway`, value: gateway } : undefined,
    routes: placedList(`${field}.routes`, routes).filter(({ value }) => isOwn(value.dst)),
    isGatewayDefault,
    addressSpace: space,
  };
}

interface Ends {
  readonly start: string | undefined;
  readonly end: string | undefined;
  readonly first: Ip | undefined;
  readonly last: Ip | undefined;
}

/** Returns `first-last`; a missing end is that of the network. whereabouts ignores ends outside of it. */
function rangeText(prefix: Prefix | undefined, { start, end, first, last }: Ends): string {
  if (prefix === undefined) return `${start ?? ""}-${end ?? ""}`;
  const isInside = (ip: Ip | undefined): ip is Ip => ip !== undefined && prefixContains(prefix, ip);
  if ((start !== undefined && first === undefined) || (end !== undefined && last === undefined))
    return `${start ?? ""}-${end ?? ""}`;
  return `${formatIp(isInside(first) ? first : firstIp(prefix))}-${formatIp(isInside(last) ? last : lastIp(prefix))}`;
}

function convertPool({ place, value, name }: PlacedObject, known: readonly KnownRange[], builder: PlanBuilder): void {
  const spec = decodePlaced(poolSpec, value.spec, { place, field: "spec" });
  if (spec === undefined) return;
  const prefix = parsePrefix(spec.range);
  if (prefix === undefined) {
    place.problem("spec.range", spec.range, 'want a network in CIDR form, such as "10.6.0.0/16"');
    return;
  }
  const around = known.filter(
    (range) => range.prefix.length <= prefix.length && prefixContains(range.prefix, prefix.ip),
  );
  const own = ownerOf(name, around) ?? around.find(({ networkName }) => networkName === "");
  if (own === undefined) {
    const fields = convertAddresses(
      { subnet: { field: "spec.range", value: spec.range }, isGatewayDefault: false },
      place,
      builder,
    );
    if (fields !== undefined) {
      builder.addPoolOnce(name.toLowerCase(), { ...fields }, place);
      place.changed(
        "spec.range",
        spec.range,
        "no network of the input has this range: its start, end, gateway and routes are not known",
      );
    }
  }
  const space = own?.space ?? "";
  for (const [offset, { podref, id }] of Object.entries(spec.allocations)) {
    const field = `spec.allocations["${offset}"]`;
    const ip = /^[0-9]{1,39}$/.test(offset)
      ? { family: prefix.ip.family, value: prefix.ip.value + BigInt(offset) }
      : undefined;
    if (ip === undefined || !prefixContains(prefix, ip))
      place.problem(field, offset, `want an offset inside ${spec.range}`);
    else use(ip, { space, podref, id, place }, builder);
  }
}

/** Returns the range of the network with whose name the object's begins, and a dash; the longest counts. */
function ownerOf(name: string, ranges: readonly KnownRange[]): KnownRange | undefined {
  const named = ranges.filter(({ networkName }) => networkName !== "" && name.startsWith(`${networkName}-`));
  return named.sort((a, b) => b.networkName.length - a.networkName.length)[0];
}

interface Use {
  readonly space: string;
  readonly podref: string;
  readonly id: string | undefined;
  readonly place: Place;
}

function use(ip: Ip, { space, podref, id = "", place }: Use, builder: PlanBuilder): void {
  const isPod = /^[^/]+\/[^/]+$/.test(podref);
  builder.use(ip, space, isPod ? { pod: podref, text: podref } : { text: `container ${id}` }, place);
}

/** The address is the object's name: behind the network's name and a dash if it has one; with dashes for colons. */
function useReservation(
  { place, value, name }: PlacedObject,
  known: readonly KnownRange[],
  builder: PlanBuilder,
): void {
  const spec = decodePlaced(reservationSpec, value.spec, { place, field: "spec" });
  if (spec === undefined) return;
  const own = ownerOf(name, known);
  const address = own === undefined ? name : name.slice(own.networkName.length + 1);
  const ip = parseIp(address) ?? parseIp(address.replaceAll("-", ":"));
  if (ip === undefined)
    place.problem("metadata.name", name, "want an address, behind the name of a known network if it has one");
  else use(ip, { space: own?.space ?? "", podref: spec.podref, id: spec.containerid, place }, builder);
}

/** whereabouts reads no annotations of pods. */
const NO_ANNOTATIONS: AnnotationConverter = {
  ofPod: ({ annotations, place, field }) => {
    for (const [key, text] of Object.entries(annotations))
      if (key.startsWith(ANNOTATION_PREFIX)) place.lost(`${field}["${key}"]`, text, "Berth has no such annotation");
    return {};
  },
  ofNamespace: () => ({}),
};
