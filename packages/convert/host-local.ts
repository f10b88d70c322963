/** host-local v1.9: ranges in network configurations, and one file for each address in use. */
import * as z from "zod";
import { isDnsSubdomain } from "../../host/config/fields/names.ts";
import { orAbsent } from "../../host/lib/schema.ts";
import { formatIp, parseIp } from "../../host/net/ip.ts";
import { firstIp, formatPrefix, lastIp, parsePrefix } from "../../host/net/prefix.ts";
import { type AddressDraft, placedList } from "./address-draft.ts";
import { addNetworkWithPools, hasDefaultGateway, isForOther, reportKeys } from "./cni-ranges.ts";
import type { PlanBuilder } from "./conversion-plan.ts";
import { decodePlaced, joinPath } from "./decode-placed.ts";
import type { Input } from "./input.ts";
import { findNetworksWith, isJson, type PeerNetwork, type PlacedPlugin } from "./networks.ts";
import { type AnnotationConverter, convertWorkloads } from "./workloads.ts";

const IPAM_TYPE = "host-local";

const text = orAbsent(z.string());

const range = z.object({ subnet: z.string(), rangeStart: text, rangeEnd: text, gateway: text });

const UNNEEDED = { dataDir: "the directory of host-local's own files" } as const;
const LOST = { resolvConf: "Berth's result has no DNS settings; use those of the pod" } as const;

/** CNI 1.1 has further keys of a route. */
const route = z.object({ dst: z.string(), gw: text });

const ipamSchema = z.object({
  type: z.string(),
  subnet: text,
  rangeStart: text,
  rangeEnd: text,
  gateway: text,
  ranges: orAbsent(z.array(z.array(range))),
  routes: orAbsent(z.array(route)),
  dataDir: text,
  resolvConf: text,
});

type Ipam = z.output<typeof ipamSchema>;

export function convertHostLocal(input: Input, builder: PlanBuilder): void {
  const renamed = new Set<string>();
  const ours: {
    readonly network: PeerNetwork;
    readonly plugin: PlacedPlugin;
    readonly ipam: Ipam;
    readonly field: string;
  }[] = [];
  for (const { network, plugin, own, context } of findNetworksWith(input, IPAM_TYPE)) {
    const ipam = decodePlaced(ipamSchema, own, context);
    if (ipam === undefined) continue;
    reportKeys(own, context, { unneeded: UNNEEDED, lost: LOST });
    reportCapabilities(network, plugin);
    ours.push({ network, plugin, ipam, field: context.field });
  }
  for (const { network, plugin, ipam, field } of ours) {
    const sets = setsOf(ipam, { field, isDefault: hasDefaultGateway(plugin) });
    const isDivided = ours.some(
      (other) => isOtherNode(network, other.network) && subnetsOf(other.ipam) !== subnetsOf(ipam),
    );
    const isAdded = addNetworkWithPools({ network, plugin, sets, builder, node: isDivided ? network.node : undefined });
    if (isAdded) renamed.add(`${network.namespace}/${network.name}`);
  }
  useAddressFiles(input, builder);
  convertWorkloads(input.objects, builder, { converter: NO_ANNOTATIONS, renamed });
}

/**
 * The same network on another node. If its subnets differ, they are routed to the nodes, and each pool is for its
 * node alone.
 */
function isOtherNode(one: PeerNetwork, other: PeerNetwork): boolean {
  return one !== other && one.name === other.name && one.node !== other.node;
}

function subnetsOf({ subnet, ranges = [] }: Ipam): string {
  return [subnet ?? "", ...ranges.flat().map((each) => each.subnet)].sort().join(" ");
}

function reportCapabilities({ place }: PeerNetwork, { entry, field }: PlacedPlugin): void {
  const { capabilities } = entry;
  if (!isJson(capabilities) || capabilities.ipRanges !== true) return;
  place.lost(joinPath(field, "capabilities.ipRanges"), true, "ranges that the runtime passes: Berth's are in pools");
}

function setsOf(
  { subnet, rangeStart, rangeEnd, gateway, ranges = [], routes = [] }: Ipam,
  { field, isDefault }: { readonly field: string; readonly isDefault: boolean },
) {
  const single =
    subnet === undefined ? [] : [{ at: field, set: [{ at: field, subnet, rangeStart, rangeEnd, gateway }] }];
  const listed = ranges.map((set, index) => {
    const at = `${field}.ranges[${index}]`;
    return { at, set: set.map((each, inner) => ({ at: `${at}[${inner}]`, ...each })) };
  });
  const sets = [...single, ...listed];
  const subnets = sets.flatMap(({ set }) => set.map((each) => each.subnet));
  return sets.map(({ at, set }) => ({
    field: at,
    drafts: set.map(({ at, subnet, rangeStart, rangeEnd, gateway }): AddressDraft => {
      const prefix = parsePrefix(subnet);
      const network = prefix && firstIp(prefix);
      // host-local's own default is the first address.
      const first = network && formatIp({ ...network, value: network.value + 1n });
      const isCut = rangeStart !== undefined || rangeEnd !== undefined;
      const last = prefix && formatIp(lastIp(prefix));
      return {
        subnet: { field: `${at}.subnet`, value: prefix === undefined ? subnet : formatPrefix(prefix) },
        ips: isCut ? [{ field: `${at}.rangeStart`, value: `${rangeStart ?? first}-${rangeEnd ?? last}` }] : undefined,
        gateway: gatewayOf(gateway ?? first, `${at}.gateway`),
        routes: placedList(`${field}.routes`, routes).filter(({ value }) => !isForOther(value.dst, subnet, subnets)),
        isGatewayDefault: isDefault,
      };
    }),
  }));
}

function gatewayOf(value: string | undefined, field: string) {
  return value === undefined ? undefined : { field, value };
}

/** A file has the container's ID, and behind CR and LF the name of the NIC. */
function useAddressFiles({ addresses }: Input, builder: PlanBuilder): void {
  for (const { place, address, text } of addresses) {
    const [id = "", nic = ""] = text.split(/\r?\n/);
    const ip = parseIp(address);
    if (ip === undefined || id.trim() === "") place.problem(address, text, "want the ID of a container");
    if (ip !== undefined) builder.use(ip, "", { text: `container ${id.trim()} ${nic}`.trim() }, place);
  }
}

/** host-local reads no annotations. */
const NO_ANNOTATIONS: AnnotationConverter = { ofPod: () => ({}), ofNamespace: () => ({}) };

/** Takes `path` or `node=path`. */
export function splitNode(argument: string): { readonly path: string; readonly node?: string } {
  const at = argument.indexOf("=");
  const node = argument.slice(0, Math.max(0, at));
  return at > 0 && isDnsSubdomain(node) ? { path: argument.slice(at + 1), node } : { path: argument };
}
