/**
 * Spiderpool v1.2: pools, Subnets, reserved addresses, endpoints, settings and annotations
 * (spiderpool.spidernet.io/v2beta1).
 */
import * as z from "zod";
import { ANNOTATION_PREFIX } from "../../host/config/annotations.ts";
import { ConfigError } from "../../host/config/config-error.ts";
import { labelSelector } from "../../host/config/label-selector.ts";
import { parseYaml } from "../../host/config/yaml.ts";
import { joinRanges } from "../../host/core/spans.ts";
import { JsonError, parseJson } from "../../host/lib/json.ts";
import { orAbsent } from "../../host/lib/schema.ts";
import { parseIp } from "../../host/net/ip.ts";
import { formatRange } from "../../host/net/range.ts";
import { type AddressDraft, convertAddresses, parseSpan, placedList } from "./address-draft.ts";
import type { PlanBuilder } from "./conversion-plan.ts";
import { decodePlaced } from "./decode-placed.ts";
import type { Input, PlacedObject } from "./input.ts";
import { isJson, newNetworkName } from "./networks.ts";
import { convertCoordinator, type SpiderpoolSettings } from "./spiderpool-coordinator.ts";
import { convertSpiderpoolNetworks } from "./spiderpool-networks.ts";
import { type AnnotationConverter, type AnnotationsToConvert, convertWorkloads } from "./workloads.ts";

const SPIDERPOOL_API = "spiderpool.spidernet.io/v2beta1";
export const SPIDERPOOL_KINDS = [
  { apiVersion: SPIDERPOOL_API, plural: "spiderippools" },
  { apiVersion: SPIDERPOOL_API, plural: "spidersubnets" },
  { apiVersion: SPIDERPOOL_API, plural: "spiderreservedips" },
  { apiVersion: SPIDERPOOL_API, plural: "spidercoordinators" },
  { apiVersion: SPIDERPOOL_API, plural: "spidermultusconfigs" },
  { apiVersion: SPIDERPOOL_API, plural: "spiderendpoints" },
] as const;

const PREFIX = "ipam.spidernet.io/";

const texts = orAbsent(z.array(z.string()));
const flag = orAbsent(z.boolean());

const addresses = {
  ipVersion: orAbsent(z.literal([4, 6])),
  subnet: z.string(),
  ips: texts,
  excludeIPs: texts,
  gateway: orAbsent(z.string()),
  routes: orAbsent(z.array(z.object({ dst: z.string(), gw: z.string() }))),
};

const poolSpec = z.object({
  ...addresses,
  podAffinity: orAbsent(labelSelector),
  namespaceAffinity: orAbsent(labelSelector),
  namespaceName: texts,
  nodeAffinity: orAbsent(labelSelector),
  nodeName: texts,
  multusName: texts,
  default: flag,
  disable: flag,
});

const subnetSpec = z.object(addresses);
const reservedSpec = z.object({ ipVersion: orAbsent(z.literal([4, 6])), ips: texts });

/** Pools of the former generation have these keys in the text of `status.allocatedIPs`. */
const allocations = z.record(z.string(), z.object({ pod: z.string(), podUid: z.string().default("") }));
const poolStatus = z.object({ allocatedIPs: orAbsent(z.string()) }).prefault({});

const endpointStatus = z.object({
  current: z.object({
    uid: z.string(),
    node: z.string(),
    ips: z.array(
      z.object({
        interface: z.string(),
        ipv4: orAbsent(z.string()),
        ipv6: orAbsent(z.string()),
      }),
    ),
  }),
  ownerControllerType: z.string().default(""),
  ownerControllerName: z.string().default(""),
});

export function convertSpiderpool(input: Input, builder: PlanBuilder): void {
  const objects = input.objects.filter(({ apiVersion }) => apiVersion === SPIDERPOOL_API);
  const ofKind = (kind: string) => objects.filter((object) => object.kind === kind);
  const known = SPIDERPOOL_KINDS.map(({ plural }): string => plural);
  for (const { kind, place } of objects)
    if (!known.includes(`${kind.toLowerCase()}s`)) place.lost("kind", kind, "the converter does not know this kind");
  const settings = convertSettings(input.objects);
  const renamed = convertSpiderpoolNetworks(input, ofKind("SpiderMultusConfig"), builder);
  const pools = ofKind("SpiderIPPool");
  for (const pool of pools) convertPool(pool, { builder, renamed });
  for (const subnet of ofKind("SpiderSubnet")) convertSubnet(subnet, { builder, pools });
  for (const reserved of ofKind("SpiderReservedIP")) convertReserved(reserved, builder);
  for (const endpoint of ofKind("SpiderEndpoint")) useEndpoint(endpoint, builder);
  const coordinators = ofKind("SpiderCoordinator");
  convertCoordinator(coordinators, settings, builder);
  const absent = builder.findings.placeOf("not in the input", 'SpiderCoordinator "default"');
  const isMissing = !coordinators.some(({ name }) => name === "default");
  if (isMissing && (renamed.size > 0 || settings.detectIPConflict || settings.detectGateway))
    convertCoordinator([{ place: absent, name: "default", value: {} }], settings, builder);
  convertWorkloads(input.objects, builder, { converter: SPIDERPOOL_ANNOTATIONS, renamed });
}

type Spec = Omit<z.output<typeof subnetSpec>, "ipVersion">;

function draftOf({ subnet, ips, excludeIPs, gateway, routes }: Spec): AddressDraft {
  return {
    subnet: { field: "spec.subnet", value: subnet },
    // Spiderpool allocates only listed addresses.
    ips: placedList("spec.ips", ips ?? []),
    excluded: placedList("spec.excludeIPs", excludeIPs ?? []),
    gateway: gateway === undefined ? undefined : { field: "spec.gateway", value: gateway },
    routes: placedList("spec.routes", routes ?? []),
    isGatewayDefault: true,
  };
}

/** Labels without those that Spiderpool writes. */
function ownLabels(labels: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).filter(([key]) => !key.includes("spidernet.io/")));
}

interface PoolContext {
  readonly builder: PlanBuilder;
  readonly renamed: ReadonlySet<string>;
}

function isGenerated({ labels }: PlacedObject): boolean {
  return Object.hasOwn(labels, `${PREFIX}owner-application-name`);
}

function convertPool(object: PlacedObject, { builder, renamed }: PoolContext): void {
  const { place, value, name, labels } = object;
  useAllocations(object, builder);
  if (isGenerated(object)) {
    const text = "generated from a SpiderSubnet; Berth's controller generates a pool when the workload's pods need it";
    place.unneeded("", name, text);
    return;
  }
  const spec = decodePlaced(poolSpec, value.spec, { place, field: "spec" });
  const fields = spec && convertAddresses(draftOf(spec), place, builder);
  if (spec === undefined || fields === undefined) return;
  const { podAffinity, namespaceAffinity, nodeAffinity, namespaceName = [], nodeName = [], multusName = [] } = spec;
  const raw = isJson(value.spec) ? value.spec : {};
  builder.add(
    {
      kind: "IPPool",
      name,
      labels: ownLabels(labels),
      spec: {
        ...fields,
        ...(podAffinity === undefined ? {} : { podAffinity: raw.podAffinity }),
        ...(namespaceAffinity === undefined ? {} : { namespaceAffinity: raw.namespaceAffinity }),
        ...(nodeAffinity === undefined ? {} : { nodeAffinity: raw.nodeAffinity }),
        ...(namespaceName.length === 0 ? {} : { namespaceName }),
        ...(nodeName.length === 0 ? {} : { nodeName }),
        ...(multusName.length === 0 ? {} : { multusName: withNewNames(multusName, renamed, builder.suffix) }),
        ...(spec.default === true ? { default: true } : {}),
        ...(spec.disable === true ? { disable: true } : {}),
      },
    },
    place,
  );
}

/** Returns the definitions, and beside each that has been converted its new name. */
function withNewNames(names: readonly string[], renamed: ReadonlySet<string>, suffix: string): string[] {
  const all = names.flatMap((name) => {
    const isConverted = [...renamed].some((full) => full === name || full.endsWith(`/${name}`));
    return isConverted ? [name, newNetworkName(name, suffix)] : [name];
  });
  return [...new Set(all)];
}

function useAllocations({ place, value }: PlacedObject, builder: PlanBuilder): void {
  const field = "status.allocatedIPs";
  const status = poolStatus.safeParse(value.status);
  const text = status.success ? status.data.allocatedIPs : undefined;
  if (!status.success) place.problem("status", value.status, "the addresses in use cannot be read");
  if (text === undefined || text === "") return;
  let parsed: unknown;
  try {
    parsed = parseJson(text);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    place.addPhrase("problem", field, error.found, `the addresses in use cannot be read: ${error.message}`);
    return;
  }
  const found = decodePlaced(allocations, parsed, { place, field }) ?? {};
  for (const [address, { pod }] of Object.entries(found)) {
    const ip = parseIp(address);
    if (ip === undefined) place.problem(field, address, "want an address");
    else builder.use(ip, "", { pod, text: pod }, place);
  }
}

interface SubnetContext {
  readonly builder: PlanBuilder;
  readonly pools: readonly PlacedObject[];
}

function convertSubnet({ place, value, name, labels }: PlacedObject, { builder, pools }: SubnetContext): void {
  const spec = decodePlaced(subnetSpec, value.spec, { place, field: "spec" });
  if (spec === undefined) return;
  if (builder.ips !== undefined) {
    place.problem("", name, "not converted: --ips is for pools; move the workloads of a Subnet at once");
    return;
  }
  // Addresses of pools that people made are no longer the Subnet's.
  const taken = pools
    .filter((pool) => !isGenerated(pool))
    .flatMap((pool) => {
      const of = poolSpec.safeParse(pool.value.spec).data;
      return of?.subnet === spec.subnet ? (of.ips ?? []) : [];
    })
    .flatMap((text) => parseSpan(text) ?? []);
  const family = taken[0]?.first.family ?? 4;
  const joined = joinRanges(
    taken.filter(({ first }) => first.family === family),
    family,
  ).map(formatRange);
  const draft = draftOf(spec);
  const excluded = [...(draft.excluded ?? []), ...joined.map((value) => ({ field: "spec.excludeIPs", value }))];
  if (joined.length > 0)
    place.changed("spec.excludeIPs", spec.excludeIPs ?? [], `and ${joined.join(", ")}, which pools have`);
  const fields = convertAddresses({ ...draft, excluded }, place, builder);
  if (fields !== undefined)
    builder.add({ kind: "Subnet", name, labels: ownLabels(labels), spec: { ...fields } }, place);
}

function convertReserved({ place, value, name, labels }: PlacedObject, builder: PlanBuilder): void {
  const spec = decodePlaced(reservedSpec, value.spec, { place, field: "spec" });
  const ranges = (spec?.ips ?? []).flatMap((text, at) => {
    const range = parseSpan(text);
    if (range === undefined) place.problem(`spec.ips[${at}]`, text, "left out: want an address or a range first-last");
    return range ?? [];
  });
  const [first] = ranges;
  if (first === undefined) {
    if (spec !== undefined) place.unneeded("spec.ips", spec.ips, "reserves nothing");
    return;
  }
  const { family } = first.first;
  const ips = joinRanges(
    ranges.filter((range) => range.first.family === family),
    family,
  ).map(formatRange);
  for (const range of ranges)
    if (range.first.family !== family)
      place.problem("spec.ips", formatRange(range), "left out: another family than the first entry");
  builder.add({ kind: "ReservedIP", name, labels: ownLabels(labels), spec: { ips } }, place);
}

function useEndpoint({ place, value, namespace, name }: PlacedObject, builder: PlanBuilder): void {
  const status = endpointStatus.safeParse(value.status);
  if (!status.success) {
    place.problem("status", value.status, "the addresses of the endpoint cannot be read");
    return;
  }
  const { current, ownerControllerType, ownerControllerName } = status.data;
  const pod = `${namespace}/${name}`;
  for (const { interface: nic, ipv4, ipv6 } of current.ips) {
    for (const text of [ipv4, ipv6]) {
      const ip = text === undefined ? undefined : parseIp(text.split("/")[0] ?? "");
      if (ip !== undefined) builder.use(ip, "", { pod, text: `${pod} ${nic}` }, place);
      else if (text !== undefined) place.problem("status.current.ips", text, "want an address");
    }
  }
  const isRetained = ["StatefulSet", "VirtualMachine", "VirtualMachineInstance"].includes(ownerControllerType);
  if (!isRetained) return;
  const text =
    "its addresses stay reserved until they are adopted; a pod that moves before gets others, which it retains";
  place.changed("status.ownerControllerName", `${ownerControllerType} ${ownerControllerName}`, text);
}

/** Settings of the ConfigMap that have a default in Berth, or a place in the Coordinator. */
const settingsSchema = z.looseObject({
  enableIPv4: z.boolean().default(true),
  enableIPv6: z.boolean().default(true),
  enableStatefulSet: z.boolean().default(true),
  enableKubevirtStaticIP: z.boolean().default(true),
  enableSpiderSubnet: z.boolean().default(true),
  enableIPConflictDetection: z.boolean().default(false),
  enableGatewayDetection: z.boolean().default(false),
  clusterSubnetDefaultFlexibleIPNumber: z.number().default(1),
});

const SETTING_NAMES: Readonly<Record<string, string>> = {
  enableIPv4: "enableIPv4",
  enableIPv6: "enableIPv6",
  enableStatefulSet: "enableStatefulSet",
  enableKubevirtStaticIP: "enableKubevirt",
  enableSpiderSubnet: "enableSubnet",
};

/**
 * Reads the ConfigMap `spiderpool-conf`. Berth's settings are one text of the chart, which a conversion does not
 * overwrite.
 */
function convertSettings(objects: readonly PlacedObject[]): SpiderpoolSettings {
  const map = objects.find(
    ({ apiVersion, kind, name }) => apiVersion === "v1" && kind === "ConfigMap" && name === "spiderpool-conf",
  );
  const data = map?.value.data;
  const text = isJson(data) ? data["conf.yml"] : undefined;
  if (map === undefined || typeof text !== "string") return { detectIPConflict: false, detectGateway: false };
  const { place } = map;
  const field = 'data["conf.yml"]';
  let value: unknown;
  try {
    value = parseYaml(text, "conf.yml")[0]?.value;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    place.addPhrase("problem", field, error.got, "want well-formed YAML");
  }
  const settings = decodePlaced(settingsSchema, value ?? {}, { place, field }) ?? settingsSchema.parse({});
  for (const [key, own] of Object.entries(SETTING_NAMES)) {
    if (settings[key] === false) place.lost(`${field}.${key}`, false, `set ${own}: false in vendor-conf by hand`);
  }
  const number = settings.clusterSubnetDefaultFlexibleIPNumber;
  if (number > 1)
    place.lost(
      `${field}.clusterSubnetDefaultFlexibleIPNumber`,
      number,
      `annotate workloads with ${ANNOTATION_PREFIX}ippool-ip-number: "+${number}"; Berth's default is +1`,
    );
  const other = Object.keys(settings).filter((key) => !Object.hasOwn(settingsSchema.shape, key));
  for (const key of other) place.unneeded(`${field}.${key}`, settings[key], "a setting of Spiderpool's own programs");
  return { detectIPConflict: settings.enableIPConflictDetection, detectGateway: settings.enableGatewayDetection };
}

const POD_KEYS = [
  "subnet",
  "subnets",
  "ippool",
  "ippools",
  "routes",
  "ippool-ip-number",
  "ippool-reclaim",
  "default-route-nic",
];
const NAMESPACE_KEYS = ["default-ipv4-ippool", "default-ipv6-ippool"];

function renameKeys(
  { annotations, place, field }: AnnotationsToConvert,
  keys: readonly string[],
): Record<string, string> {
  const own: Record<string, string> = {};
  for (const [key, text] of Object.entries(annotations)) {
    const isForeign = key.startsWith("cni.spidernet.io/");
    if (!key.startsWith(PREFIX) && !isForeign) continue;
    const name = key.slice(PREFIX.length);
    if (!isForeign && keys.includes(name)) own[ANNOTATION_PREFIX + name] = text.trim();
    else if (!isForeign && name.startsWith("assigned-"))
      place.unneeded(`${field}["${key}"]`, text, "written by Spiderpool");
    else place.lost(`${field}["${key}"]`, text, "Berth has no such annotation");
  }
  return own;
}

const SPIDERPOOL_ANNOTATIONS: AnnotationConverter = {
  ofPod: (found) => renameKeys(found, POD_KEYS),
  ofNamespace: (found) => renameKeys(found, NAMESPACE_KEYS),
};
