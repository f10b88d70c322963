/** Calico v3: IP pools, blocks, reservations and annotations (crd.projectcalico.org/v1, projectcalico.org/v3). */
import * as z from "zod";
import { ANNOTATION_PREFIX } from "../../host/config/annotations.ts";
import { joinRanges } from "../../host/core/spans.ts";
import { orAbsent } from "../../host/lib/schema.ts";
import { formatPrefix, maskPrefix, parsePrefix, prefixContains } from "../../host/net/prefix.ts";
import { formatRange, type Range } from "../../host/net/range.ts";
import { convertAddresses, parseSpan } from "./address-draft.ts";
import { parseCalicoSelector } from "./calico-selector.ts";
import type { PlanBuilder } from "./conversion-plan.ts";
import { decodePlaced, joinPath } from "./decode-placed.ts";
import type { PlacedField } from "./findings.ts";
import type { Input, PlacedObject } from "./input.ts";
import { addNetwork, berthIpam, findNetworksWith } from "./networks.ts";
import { type AnnotationConverter, type AnnotationsToConvert, convertWorkloads, parseQuietly } from "./workloads.ts";

const CALICO_API = "crd.projectcalico.org/v1";
/** The form in which calicoctl and Calico's own API server write the same objects. */
const CALICO_V3_API = "projectcalico.org/v3";

export const CALICO_KINDS = [
  { apiVersion: CALICO_API, plural: "ippools" },
  { apiVersion: CALICO_API, plural: "ipamblocks" },
  { apiVersion: CALICO_API, plural: "blockaffinities" },
  { apiVersion: CALICO_API, plural: "ipreservations" },
  { apiVersion: CALICO_API, plural: "ipamconfigs" },
] as const;

const PREFIX = "cni.projectcalico.org/";
const IPAM_TYPE = "calico-ipam";

const text = orAbsent(z.string());
const texts = orAbsent(z.array(z.string()));
const flag = orAbsent(z.boolean());

const poolSpec = z.object({
  cidr: z.string(),
  vxlanMode: text,
  ipipMode: text,
  natOutgoing: flag,
  disabled: flag,
  disableBGPExport: flag,
  blockSize: orAbsent(z.int()),
  nodeSelector: text,
  namespaceSelector: text,
  allowedUses: texts,
  assignmentMode: text,
});

/** Its other fields are Calico's own notes. */
const blockSpec = z.looseObject({
  cidr: z.string(),
  allocations: z.array(z.int().nullable()),
  attributes: z.array(z.object({ handle_id: text, secondary: orAbsent(z.record(z.string(), z.string())) }).loose()),
  deleted: flag,
});

const reservationSpec = z.object({ reservedCIDRs: texts });
const configSpec = z.object({
  strictAffinity: flag,
  autoAllocateBlocks: flag,
  maxBlocksPerHost: orAbsent(z.int()),
  kubeVirtVMAddressPersistence: text,
});

/** Names of Berth's pools by name and by network of the input's. */
type PoolNames = ReadonlyMap<string, string>;

export function convertCalico(input: Input, builder: PlanBuilder): void {
  const objects = input.objects.filter(({ apiVersion }) => [CALICO_API, CALICO_V3_API].includes(apiVersion));
  const names = new Map<string, string>();
  for (const object of objects) {
    switch (object.kind) {
      case "IPPool":
        convertPool(object, names, builder);
        break;
      case "IPAMBlock":
        useBlock(object, builder);
        break;
      case "IPReservation":
        convertReservation(object, builder);
        break;
      case "IPAMConfig":
      case "IPAMConfiguration":
        reportConfig(object);
        break;
      case "BlockAffinity":
        object.place.unneeded("spec", object.name, "Berth's pools are not divided into blocks of nodes");
        break;
      default:
        // Policies, BGP and the like are no matter of IPAM.
        if (/^(?:IP|IPAM|Block)/.test(object.kind) && object.kind !== "IPAMHandle")
          object.place.lost("kind", object.kind, "the converter does not know this kind");
    }
  }
  const renamed = convertNetworks(input, names, builder);
  convertWorkloads(input.objects, builder, { converter: annotationsOf(names), renamed });
}

function convertPool(
  { place, value, name, labels }: PlacedObject,
  names: Map<string, string>,
  builder: PlanBuilder,
): void {
  const spec = decodePlaced(poolSpec, value.spec, { place, field: "spec" });
  if (spec === undefined) return;
  const lose = (key: keyof typeof spec, why: string) => place.lost(`spec.${key}`, spec[key], why);
  const { allowedUses = [], blockSize, ipipMode = "Never", vxlanMode = "Never" } = spec;
  if (allowedUses.length > 0 && !allowedUses.includes("Workload")) {
    place.unneeded("spec.allowedUses", allowedUses, "not converted: the pool is not for pods");
    return;
  }
  const ownNetwork = "Berth has no overlay; the pool is disabled until you have made a network for it";
  if (ipipMode !== "Never") lose("ipipMode", ownNetwork);
  if (vxlanMode !== "Never") lose("vxlanMode", ownNetwork);
  if (spec.natOutgoing === true)
    lose("natOutgoing", "pods are not masqueraded, except by serviceSnat of the coordinator");
  if (spec.disableBGPExport === true) lose("disableBGPExport", "Berth announces no routes");
  if (blockSize !== undefined)
    place.unneeded("spec.blockSize", blockSize, "Berth's pools are not divided into blocks of nodes");
  const node = selectorOf(spec.nodeSelector);
  const namespace = selectorOf(spec.namespaceSelector);
  const isOverlay = ipipMode !== "Never" || vxlanMode !== "Never";
  const isOpen = node !== undefined && namespace !== undefined && !isOverlay;
  const why = "a label selector cannot express it; the pool is disabled until you restrict it";
  if (node === undefined) lose("nodeSelector", why);
  if (namespace === undefined) lose("namespaceSelector", why);
  const fields = convertAddresses(
    { subnet: { field: "spec.cidr", value: spec.cidr }, isGatewayDefault: false },
    place,
    builder,
  );
  if (fields === undefined) return;
  const added = builder.add(
    {
      kind: "IPPool",
      name,
      labels,
      spec: {
        ...fields,
        ...(node === undefined || node.length === 0 ? {} : { nodeAffinity: { matchExpressions: node } }),
        ...(namespace === undefined || namespace.length === 0
          ? {}
          : { namespaceAffinity: { matchExpressions: namespace } }),
        ...(spec.assignmentMode === "Manual" ? {} : { default: true }),
        ...(spec.disabled === true || !isOpen ? { disable: true } : {}),
      },
    },
    place,
  );
  if (added === undefined) return;
  place.changed(
    "spec.cidr",
    fields.subnet,
    "the pool has no gateway: add spec.gateway of the network that the pods will be on",
  );
  for (const key of [name, fields.subnet]) names.set(key, added);
}

/** Returns the conditions; none without a selector, undefined if it cannot be converted. */
function selectorOf(selector: string | undefined) {
  return selector === undefined || selector.trim() === "" ? [] : parseCalicoSelector(selector);
}

/** Each allocation of a block is the index of its attributes; null is free. */
function useBlock({ place, value }: PlacedObject, builder: PlanBuilder): void {
  const spec = decodePlaced(blockSpec, value.spec, { place, field: "spec" });
  if (spec === undefined || spec.deleted === true) return;
  const prefix = parsePrefix(spec.cidr);
  if (prefix === undefined) {
    place.problem("spec.cidr", spec.cidr, "the addresses in use cannot be read: want a network in CIDR form");
    return;
  }
  const { ip: first } = maskPrefix(prefix);
  for (const [at, index] of spec.allocations.entries()) {
    if (index === null) continue;
    const ip = { family: first.family, value: first.value + BigInt(at) };
    const field = `spec.allocations[${at}]`;
    if (!prefixContains(prefix, ip)) {
      place.problem(field, index, `outside of ${formatPrefix(prefix)}`);
      continue;
    }
    const attribute = spec.attributes[index];
    if (attribute === undefined)
      place.problem(field, index, `want an index below ${spec.attributes.length}, the number of attributes`);
    const { pod, namespace } = attribute?.secondary ?? {};
    const holder = pod === undefined || namespace === undefined ? undefined : `${namespace}/${pod}`;
    builder.use(ip, "", { pod: holder, text: holder ?? attribute?.handle_id ?? "unknown" }, place);
  }
}

function convertReservation({ place, value, name, labels }: PlacedObject, builder: PlanBuilder): void {
  const spec = decodePlaced(reservationSpec, value.spec, { place, field: "spec" });
  const ranges = (spec?.reservedCIDRs ?? []).flatMap((entry, at): Range[] => {
    const range = parseSpan(entry);
    if (range === undefined)
      place.problem(`spec.reservedCIDRs[${at}]`, entry, "left out: want an address or a network");
    return range === undefined ? [] : [range];
  });
  const families = Map.groupBy(ranges, ({ first }) => first.family);
  for (const [family, own] of families) {
    const ips = joinRanges(own, family).map(formatRange);
    const suffix = families.size > 1 ? `-v${family}` : "";
    builder.add({ kind: "ReservedIP", name: `${name}${suffix}`, labels, spec: { ips } }, place);
  }
}

function reportConfig({ place, value }: PlacedObject): void {
  const spec = decodePlaced(configSpec, value.spec ?? {}, { place, field: "spec" });
  if (spec === undefined) return;
  const { maxBlocksPerHost = 0, strictAffinity, autoAllocateBlocks, kubeVirtVMAddressPersistence: machines } = spec;
  if (machines === "Disabled")
    place.lost("spec.kubeVirtVMAddressPersistence", machines, "set enableKubevirt: false in vendor-conf by hand");
  if (maxBlocksPerHost !== 0)
    place.lost("spec.maxBlocksPerHost", maxBlocksPerHost, "Berth limits addresses by pod and namespace, not by node");
  for (const [key, found] of Object.entries({ strictAffinity, autoAllocateBlocks }))
    if (found !== undefined) place.unneeded(`spec.${key}`, found, "Berth's pools are not divided into blocks of nodes");
}

const ipamSchema = z.object({
  type: z.string(),
  assign_ipv4: z.unknown().optional(),
  assign_ipv6: z.unknown().optional(),
  ipv4_pools: texts,
  ipv6_pools: texts,
});

/** Converts networks of other main plugins; Calico's own plugin makes a network that has no counterpart. */
function convertNetworks(input: Input, names: PoolNames, builder: PlanBuilder): Set<string> {
  const renamed = new Set<string>();
  const known = new Set([...names.keys()].map((cidr) => parsePrefix(cidr)?.ip.family));
  for (const { network, plugin, own, context } of findNetworksWith(input, IPAM_TYPE)) {
    const { place, field } = context;
    if (plugin.entry.type === "calico") {
      const text = "not converted: the network of Calico's own plugin. Make one of Berth's with \"berthctl network\"";
      place.lost(joinPath(plugin.field, "type"), plugin.entry.type, text);
      continue;
    }
    const ipam = decodePlaced(ipamSchema, own, context);
    if (ipam === undefined) continue;
    const pools = {
      4: poolsNamed(ipam.ipv4_pools ?? [], names, { place, field: `${field}.ipv4_pools` }),
      6: poolsNamed(ipam.ipv6_pools ?? [], names, { place, field: `${field}.ipv6_pools` }),
    };
    const isOpen = pools[4].length + pools[6].length === 0;
    for (const family of [4, 6] as const) {
      const key = `assign_ipv${family}` as const;
      if ((isOpen ? known.has(family) : pools[family].length > 0) && String(ipam[key]) === "false")
        place.lost(`${field}.${key}`, ipam[key], "a NIC gets each family of its pools that vendor-conf enables");
    }
    const isAdded = addNetwork(
      network,
      network.plugins.map((each) => (each === plugin ? { ...each.entry, ipam: berthIpam(pools) } : each.entry)),
      builder,
    );
    if (isAdded) renamed.add(`${network.namespace}/${network.name}`);
  }
  return renamed;
}

/** Returns the names of Berth's pools for names and networks of Calico's. */
function poolsNamed(list: readonly string[], names: PoolNames, { place, field }: PlacedField): string[] {
  return list.flatMap((entry, at) => {
    const prefix = parsePrefix(entry);
    const found = names.get(entry) ?? (prefix && names.get(formatPrefix(maskPrefix(prefix))));
    if (found === undefined) place.lost(`${field}[${at}]`, entry, "no pool of the input has this name or network");
    return found ?? [];
  });
}

const WRITTEN_BY_CALICO = ["podIP", "podIPs", "containerID", "hwAddr"];

const LOST_ANNOTATIONS: Readonly<Record<string, string>> = {
  ipAddrs: "name the addresses in ips of the pod's networks annotation, or make an IPAMClaim",
  ipAddrsNoIpam: "Berth allocates all addresses",
  floatingIPs: "Berth has no floating addresses",
};

function annotationsOf(names: PoolNames): AnnotationConverter {
  /** Returns the converted list of pools of a family; undefined if the annotation is absent or has none. */
  const listOf = (key: string, { annotations, ...context }: AnnotationsToConvert): string[] | undefined => {
    const value = annotations[PREFIX + key];
    if (value === undefined) return undefined;
    const field = `${context.field}["${PREFIX}${key}"]`;
    const decoded = decodePlaced(z.array(z.string()), parseQuietly(value), { ...context, field });
    const pools = decoded && poolsNamed(decoded, names, { ...context, field });
    return pools === undefined || pools.length === 0 ? undefined : pools;
  };
  const reportOthers = ({ annotations, place, field }: AnnotationsToConvert) => {
    for (const [key, value] of Object.entries(annotations)) {
      if (!key.startsWith(PREFIX)) continue;
      const name = key.slice(PREFIX.length);
      const at = `${field}["${key}"]`;
      if (WRITTEN_BY_CALICO.includes(name)) place.unneeded(at, value, "written by Calico");
      else if (!["ipv4pools", "ipv6pools"].includes(name))
        place.lost(at, value, LOST_ANNOTATIONS[name] ?? "Berth has no such annotation");
    }
  };
  return {
    ofPod: (found) => {
      reportOthers(found);
      const [ipv4, ipv6] = [listOf("ipv4pools", found), listOf("ipv6pools", found)];
      if (ipv4 === undefined && ipv6 === undefined) return {};
      return { [`${ANNOTATION_PREFIX}ippool`]: JSON.stringify({ ipv4, ipv6 }) };
    },
    ofNamespace: (found) => {
      reportOthers(found);
      const lists = { ipv4: listOf("ipv4pools", found), ipv6: listOf("ipv6pools", found) };
      return Object.fromEntries(
        Object.entries(lists).flatMap(([family, pools]) =>
          pools === undefined ? [] : [[`${ANNOTATION_PREFIX}default-${family}-ippool`, JSON.stringify(pools)] as const],
        ),
      );
    },
  };
}
