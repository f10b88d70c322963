/** Spiderpool's networks: SpiderMultusConfig, network definitions with its plugins, and the settings of its coordinator. */
import * as z from "zod";
import { COORDINATOR_TYPES, IFACER_TYPES } from "../../cni/request.ts";
import { POD_TABLES_FIRST, POD_TABLES_LAST } from "../../config/coordinator-conf.ts";
import { DEFAULT_COORDINATOR_CONF } from "../../config/coordinator-settings.ts";
import { orAbsent } from "../../lib/schema.ts";
import type { PlanBuilder } from "./conversion-plan.ts";
import { decodePlaced, joinPath } from "./decode-placed.ts";
import type { Findings, Place } from "./findings.ts";
import type { Input, PlacedObject } from "./input.ts";
import {
  addNetwork,
  berthIpam,
  findNetworks,
  ipamOf,
  OWN_COORDINATOR,
  OWN_IFACER,
  type PeerNetwork,
  type PlacedPlugin,
  parseConfig,
  pluginsOf,
} from "./networks.ts";
import type { SpiderpoolSettings } from "./spiderpool.ts";

const IPAM_TYPE = "spiderpool";

const texts = orAbsent(z.array(z.string()));
const text = orAbsent(z.string());
const number = orAbsent(z.int());
const flag = orAbsent(z.boolean());

const coordinatorKeys = {
  mode: orAbsent(z.enum(["auto", "underlay", "overlay", "disable", "disabled"])),
  hijackCIDR: texts,
  policyRoutes: orAbsent(z.array(z.object({ dst: z.string(), gw: z.string() }))),
  podMACPrefix: text,
  tunePodRoutes: flag,
  hostRuleTable: number,
  podRPFilter: number,
  txQueueLen: number,
  vethLinkAddress: text,
  vethMTU: number,
};

const coordinatorSpec = z.object({
  ...coordinatorKeys,
  podCIDRType: orAbsent(z.enum(["auto", "cluster", "calico", "cilium", "none"])),
  podDefaultRouteNIC: text,
});

/** The keys of the plugin in a network definition. */
const coordinatorEntry = z.object({
  ...coordinatorKeys,
  type: z.string(),
  podDefaultRouteNic: text,
  podDefaultCniNic: text,
  multusNicPrefix: text,
  overlayPodCIDR: texts,
  serviceCIDR: texts,
  hostRPFilter: number,
  detectGateway: flag,
  detectIPConflict: flag,
  detectOptions: orAbsent(z.object({ retries: number, interval: text, timeout: text })),
  logOptions: orAbsent(z.looseObject({ logLevel: text, logFile: text })),
});

type CoordinatorKeys = z.output<z.ZodObject<typeof coordinatorKeys>>;

interface Context {
  readonly place: Place;
  readonly field: string;
  readonly findings: Findings;
}

/** Returns the keys that both forms of the settings have. */
function sharedKeys(keys: CoordinatorKeys, { place, field, findings }: Context): Record<string, unknown> {
  const { mode, hijackCIDR, policyRoutes = [], podMACPrefix, tunePodRoutes, hostRuleTable, podRPFilter = 0 } = keys;
  const at = (key: string) => joinPath(field, key);
  const lose = (key: string, value: unknown, why: string) => findings.add("lost", place, at(key), value, why);
  if (policyRoutes.length > 0) lose("policyRoutes", policyRoutes, "write the routes into the pool (spec.routes)");
  if ((keys.txQueueLen ?? 0) !== 0)
    lose("txQueueLen", keys.txQueueLen, "the coordinator leaves the queue length alone");
  if ((keys.vethLinkAddress ?? "") !== "")
    lose("vethLinkAddress", keys.vethLinkAddress, "the pair has no link-local IPv4 address");
  if (keys.vethMTU !== undefined) lose("vethMTU", keys.vethMTU, "the coordinator chooses the MTU of the pair");
  const filter = Math.max(-1, podRPFilter);
  if (filter !== 0)
    findings.add(
      "changed",
      place,
      at("podRPFilter"),
      podRPFilter,
      `hostRPFilter: ${filter}, which also applies to the node's links`,
    );
  const table = hostRuleTable === undefined ? undefined : otherTable(hostRuleTable);
  if (table !== undefined)
    findings.add(
      "changed",
      place,
      at("hostRuleTable"),
      hostRuleTable,
      `${table}: Spiderpool's routes of running pods stay in table ${hostRuleTable}`,
    );
  return {
    ...(mode === undefined ? {} : { mode: mode === "disabled" ? "disable" : mode }),
    ...(hijackCIDR === undefined ? {} : { hijackCIDR }),
    ...(podMACPrefix ? { podMACPrefix } : {}),
    ...(tunePodRoutes === undefined ? {} : { tunePodRoutes }),
    ...(filter === 0 ? {} : { hostRPFilter: filter }),
    ...(table === undefined ? {} : { hostRuleTable: table }),
  };
}

/** Returns the next routing table that neither the kernel nor Berth uses. */
function otherTable(table: number): number {
  const next = table + 1;
  if (next >= 253 && next <= 255) return 256;
  return next >= POD_TABLES_FIRST && next <= POD_TABLES_LAST ? POD_TABLES_LAST + 1 : next;
}

/** Adds the Coordinator `default`. */
export function convertCoordinator(
  objects: readonly PlacedObject[],
  settings: SpiderpoolSettings,
  builder: PlanBuilder,
): void {
  const { findings } = builder;
  for (const { place, value, name } of objects) {
    const context = { place, field: "spec", findings };
    if (name !== "default") {
      findings.add("problem", place, "metadata.name", name, 'not converted: only the object "default" has an effect');
      continue;
    }
    const spec = decodePlaced(coordinatorSpec, value.spec ?? {}, context);
    if (spec === undefined) continue;
    const { podCIDRType, podDefaultRouteNIC, hostRuleTable = DEFAULT_COORDINATOR_CONF.hostRuleTable } = spec;
    const own = {
      ...(podCIDRType === undefined ? {} : { podCIDRType }),
      ...(podDefaultRouteNIC ? { podDefaultRouteNic: podDefaultRouteNIC } : {}),
      ...sharedKeys({ ...spec, hostRuleTable }, context),
      ...(settings.detectIPConflict ? { detectIPConflict: true } : {}),
      ...(settings.detectGateway ? { detectGateway: true } : {}),
    };
    builder.add({ kind: "Coordinator", name, spec: own }, place);
  }
}

/** Returns Berth's entry for one of Spiderpool's plugins; other plugins as they are. */
function convertPlugin(plugin: PlacedPlugin, place: Place, findings: Findings): Readonly<Record<string, unknown>> {
  const { entry, field } = plugin;
  const ipam = ipamOf(plugin, [IPAM_TYPE]);
  if (ipam !== undefined)
    return { ...entry, ipam: convertIpam(ipam, { place, field: joinPath(field, "ipam"), findings }) };
  if (COORDINATOR_TYPES.some((type) => type === entry.type)) return convertEntry(entry, { place, field, findings });
  return IFACER_TYPES.some((type) => type === entry.type) ? { ...entry, type: OWN_IFACER } : entry;
}

const ipamKeys = z.object({
  type: z.string(),
  default_ipv4_ippool: texts,
  default_ipv6_ippool: texts,
  clean_gateway: flag,
  match_master_subnet: flag,
  log_level: z.unknown().optional(),
  log_file_path: z.unknown().optional(),
  log_file_max_size: z.unknown().optional(),
  log_file_max_age: z.unknown().optional(),
  log_file_max_count: z.unknown().optional(),
  ipam_unix_socket_path: z.unknown().optional(),
});

const OWN_KEYS = [
  "log_level",
  "log_file_path",
  "log_file_max_size",
  "log_file_max_age",
  "log_file_max_count",
  "ipam_unix_socket_path",
] as const;

function convertIpam(ipam: Readonly<Record<string, unknown>>, context: Context): object {
  const { place, field, findings } = context;
  const keys = decodePlaced(ipamKeys, ipam, context);
  if (keys?.clean_gateway === true)
    findings.add(
      "lost",
      place,
      joinPath(field, "clean_gateway"),
      true,
      "use a pool without gateway, or cleangateway of the annotation ippools",
    );
  if (keys?.match_master_subnet === true)
    findings.add("lost", place, joinPath(field, "match_master_subnet"), true, "name pools of the master's subnet");
  for (const key of OWN_KEYS)
    if (keys?.[key] !== undefined)
      findings.add("unneeded", place, joinPath(field, key), keys[key], "a setting of Spiderpool's own programs");
  return berthIpam({ 4: keys?.default_ipv4_ippool ?? [], 6: keys?.default_ipv6_ippool ?? [] });
}

function convertEntry(entry: Readonly<Record<string, unknown>>, context: Context): Readonly<Record<string, unknown>> {
  const { place, field, findings } = context;
  const keys = decodePlaced(coordinatorEntry, entry, context);
  if (keys === undefined) return { type: OWN_COORDINATOR };
  const {
    podDefaultRouteNic,
    podDefaultCniNic,
    overlayPodCIDR,
    serviceCIDR,
    hostRPFilter,
    detectGateway,
    detectIPConflict,
  } = keys;
  if ((keys.multusNicPrefix ?? "") !== "")
    findings.add(
      "lost",
      place,
      joinPath(field, "multusNicPrefix"),
      keys.multusNicPrefix,
      "Berth reads the names of NICs from the pod",
    );
  if (keys.logOptions !== undefined)
    findings.add(
      "unneeded",
      place,
      joinPath(field, "logOptions"),
      keys.logOptions,
      "Berth's coordinator has a log of its own",
    );
  return {
    type: OWN_COORDINATOR,
    ...sharedKeys(keys, context),
    ...(podDefaultRouteNic ? { podDefaultRouteNic } : {}),
    ...(podDefaultCniNic ? { podDefaultCniNic } : {}),
    ...(overlayPodCIDR === undefined ? {} : { overlayPodCIDR }),
    ...(serviceCIDR === undefined ? {} : { serviceCIDR }),
    ...(hostRPFilter === undefined ? {} : { hostRPFilter: Math.max(-1, hostRPFilter) }),
    ...(detectGateway === undefined ? {} : { detectGateway }),
    ...(detectIPConflict === undefined ? {} : { detectIPConflict }),
    ...(keys.detectOptions === undefined ? {} : { detectOptions: entry.detectOptions }),
  };
}

/** Returns whether one of the plugins is Spiderpool's. A coordinator alone, as behind Calico, is one too; one behind Berth is Berth's. */
function isSpiderpools({ plugins }: PeerNetwork): boolean {
  if (plugins.some((plugin) => ipamOf(plugin, ["berth"]) !== undefined)) return false;
  return plugins.some(
    (plugin) => ipamOf(plugin, [IPAM_TYPE]) !== undefined || plugin.entry.type === COORDINATOR_TYPES[0],
  );
}

/** Adds all networks; returns the definitions, `namespace/name`, that have a replacement. */
export function convertSpiderpoolNetworks(
  input: Input,
  configs: readonly PlacedObject[],
  builder: PlanBuilder,
): Set<string> {
  const { findings } = builder;
  const made = configs.flatMap((object) => networkOf(object, findings) ?? []);
  const names = new Set(made.map(({ namespace, name }) => `${namespace}/${name}`));
  const found = findNetworks(input, findings).filter(isSpiderpools);
  // Spiderpool made these out of a SpiderMultusConfig.
  const others = found.filter(({ namespace, name }) => namespace === undefined || !names.has(`${namespace}/${name}`));
  const replaced = [...made, ...others].filter((network) =>
    addNetwork(
      network,
      network.plugins.map((plugin) => convertPlugin(plugin, network.place, findings)),
      builder,
    ),
  );
  return new Set(replaced.map(({ namespace, name }) => `${namespace}/${name}`));
}

const pools = orAbsent(z.object({ matchMasterSubnet: flag, ipv4: texts, ipv6: texts }));
const bond = orAbsent(z.object({ name: z.string(), mode: z.int(), options: text }));
const onMaster = {
  master: z.array(z.string()).min(1),
  mtu: number,
  vlanID: number,
  bond,
  rdmaResourceName: text,
  ippools: pools,
};
const trunk = z.object({ minID: number, maxID: number, id: number });

const multusSpec = z.object({
  cniType: z.enum(["macvlan", "ipvlan", "vlan", "sriov", "ovs", "ib-sriov", "ipoib", "custom"]).default("custom"),
  macvlan: orAbsent(z.object(onMaster)),
  ipvlan: orAbsent(z.object(onMaster)),
  vlan: orAbsent(z.object({ ...onMaster, vlanMode: text })),
  sriov: orAbsent(
    z.object({
      resourceName: z.string(),
      vlanID: number,
      mtu: number,
      minTxRateMbps: number,
      maxTxRateMbps: number,
      rdmaIsolation: flag,
      ippools: pools,
    }),
  ),
  ibsriov: orAbsent(
    z.object({
      resourceName: z.string(),
      pkey: text,
      linkState: text,
      rdmaIsolation: flag,
      enableIbKubernetes: flag,
      ippools: pools,
    }),
  ),
  ipoib: orAbsent(z.object({ master: z.string(), ippools: pools })),
  ovs: orAbsent(
    z.object({ bridge: z.string(), vlan: number, trunk: orAbsent(z.array(trunk)), deviceID: text, ippools: pools }),
  ),
  enableCoordinator: flag,
  disableIPAM: flag,
  coordinator: orAbsent(coordinatorSpec),
  chainCNIJsonData: texts,
  customCNI: text,
});

type MultusSpec = z.output<typeof multusSpec>;

const RESOURCE_ANNOTATION = "k8s.v1.cni.cncf.io/resourceName";

/** Returns the network that Spiderpool makes of a SpiderMultusConfig, in the form of a definition. */
function networkOf(
  { place, value, name, namespace, annotations }: PlacedObject,
  findings: Findings,
): PeerNetwork | undefined {
  const context = { place, field: "spec", findings };
  const spec = decodePlaced(multusSpec, value.spec ?? {}, context);
  if (spec === undefined) return undefined;
  const definition = annotations["multus.spidernet.io/cr-name"] ?? name;
  const cniVersion = annotations["multus.spidernet.io/cni-version"] ?? "0.3.1";
  const around = { place, name: definition, namespace: namespace || "default", fileName: "", node: undefined };
  if (spec.cniType === "custom") {
    const config = parseConfig(spec.customCNI ?? "", { place, field: "spec.customCNI", findings });
    return config && { ...around, annotations, config, plugins: pluginsOf(config, "spec.customCNI") };
  }
  const main = mainPlugins(spec, context);
  if (main === undefined) return undefined;
  const chained = (spec.chainCNIJsonData ?? []).flatMap((text, at): Readonly<Record<string, unknown>>[] => {
    const parsed = parseConfig(text, { ...context, field: `spec.chainCNIJsonData[${at}]` });
    return parsed === undefined ? [] : [parsed];
  });
  const { podCIDRType: _, podDefaultRouteNIC, ...keys } = spec.coordinator ?? {};
  const coordinator = {
    type: COORDINATOR_TYPES[0],
    ...keys,
    ...(podDefaultRouteNIC ? { podDefaultRouteNic: podDefaultRouteNIC } : {}),
  };
  const chain: Readonly<Record<string, unknown>>[] = [...main.before, ...chained];
  const plugins = [...chain, ...(spec.enableCoordinator === false ? [] : [coordinator]), ...main.after];
  const config = { cniVersion, name: annotations["cni.spidernet.io/cniconfig-name"] ?? definition, plugins };
  const resource = main.resource === undefined ? {} : { [RESOURCE_ANNOTATION]: main.resource };
  const placed = plugins.map((entry): PlacedPlugin => {
    const field = entry === coordinator ? "spec.coordinator" : `spec.${fieldOf(spec.cniType)}`;
    return { entry, field };
  });
  return { ...around, annotations: { ...annotations, ...resource }, config, plugins: placed };
}

function fieldOf(type: MultusSpec["cniType"]): string {
  return type === "ib-sriov" ? "ibsriov" : type;
}

interface MainPlugins {
  readonly before: readonly Readonly<Record<string, unknown>>[];
  readonly after: readonly Readonly<Record<string, unknown>>[];
  readonly resource?: string | undefined;
}

/** Returns the entries before and after those of chained plugins and coordinator; undefined if the settings of the type are missing. */
function mainPlugins(spec: MultusSpec, context: Context): MainPlugins | undefined {
  const { place, findings } = context;
  const { cniType, macvlan, ipvlan, vlan, sriov, ibsriov, ipoib, ovs } = spec;
  const ipamFor = (named: z.output<typeof pools>) => (spec.disableIPAM === true ? {} : { ipam: spiderpoolIpam(named) });
  const keep = (entry: Record<string, unknown>) =>
    Object.fromEntries(Object.entries(entry).filter(([, value]) => value !== undefined));
  const one = cniType === "macvlan" ? macvlan : cniType === "ipvlan" ? ipvlan : cniType === "vlan" ? vlan : undefined;
  if (one !== undefined) {
    const devices = devicesOf(one, { ...context, field: `spec.${cniType}` }, cniType !== "vlan");
    if (devices === undefined) return undefined;
    const mtu = one.mtu === 0 ? undefined : one.mtu;
    if (vlan?.vlanMode !== undefined && vlan.vlanMode !== "manual" && cniType === "vlan")
      findings.add("lost", place, "spec.vlan.vlanMode", vlan.vlanMode, "write a VLAN id");
    const mode = cniType === "macvlan" ? "bridge" : undefined;
    const vlanId = cniType === "vlan" ? one.vlanID : undefined;
    const main = keep({ type: cniType, master: devices.master, mode, vlanId, mtu, ...ipamFor(one.ippools) });
    return { before: [...devices.entries, main], after: [] };
  }
  if (cniType === "sriov" && sriov !== undefined) {
    const { resourceName, vlanID, mtu = 0, minTxRateMbps, maxTxRateMbps, rdmaIsolation, ippools } = sriov;
    const main = keep({
      type: "sriov",
      vlan: vlanID,
      min_tx_rate: minTxRateMbps,
      max_tx_rate: maxTxRateMbps,
      ...ipamFor(ippools),
    });
    const after = mtu > 0 ? [{ type: "tuning", mtu }] : [];
    return { before: [main, ...(rdmaIsolation === true ? [{ type: "rdma" }] : [])], after, resource: resourceName };
  }
  if (cniType === "ib-sriov" && ibsriov !== undefined) {
    const { resourceName, pkey, linkState, rdmaIsolation, enableIbKubernetes, ippools } = ibsriov;
    const keys = { pkey, link_state: linkState, rdmaIsolation, ibKubernetesEnabled: enableIbKubernetes };
    return { before: [keep({ type: "ib-sriov", ...keys, ...ipamFor(ippools) })], after: [], resource: resourceName };
  }
  if (cniType === "ipoib" && ipoib !== undefined)
    return { before: [keep({ type: "ipoib", master: ipoib.master, ...ipamFor(ipoib.ippools) })], after: [] };
  if (cniType === "ovs" && ovs !== undefined) {
    const { bridge, vlan: tag, trunk: trunks, deviceID, ippools } = ovs;
    const main = keep({
      type: "ovs",
      bridge,
      vlan: tag,
      trunk: trunks,
      deviceID: deviceID || undefined,
      ...ipamFor(ippools),
    });
    return { before: [main], after: [], resource: deviceID ? `ovs-cni.network.kubevirt.io/${bridge}` : undefined };
  }
  findings.add(
    "problem",
    place,
    `spec.${fieldOf(cniType)}`,
    undefined,
    `not converted: want the settings of cniType ${cniType}`,
  );
  return undefined;
}

function spiderpoolIpam(named: z.output<typeof pools>): object {
  const { ipv4, ipv6, matchMasterSubnet } = named ?? {};
  return {
    type: IPAM_TYPE,
    ...(ipv4 === undefined ? {} : { default_ipv4_ippool: ipv4 }),
    ...(ipv6 === undefined ? {} : { default_ipv6_ippool: ipv6 }),
    ...(matchMasterSubnet === true ? { match_master_subnet: true } : {}),
  };
}

type OnMaster = z.output<z.ZodObject<typeof onMaster>>;

/** Returns the ifacer's entry, if one is needed, and the device under the pods' NICs. `hasVlan`: the ifacer makes the VLAN, not the main plugin. */
function devicesOf(
  { master, vlanID = 0, bond, rdmaResourceName }: OnMaster,
  { place, field, findings }: Context,
  hasVlan: boolean,
) {
  if (rdmaResourceName)
    findings.add(
      "lost",
      place,
      joinPath(field, "rdmaResourceName"),
      rdmaResourceName,
      "write the resource into the pods",
    );
  if (master.length > 1 && bond === undefined) {
    findings.add(
      "problem",
      place,
      joinPath(field, "bond"),
      undefined,
      "not converted: want the bond that joins several masters",
    );
    return undefined;
  }
  const vlan = hasVlan ? vlanID : 0;
  const parent = master.length === 1 ? master[0] : bond?.name;
  const isNeeded = vlan !== 0 || master.length > 1;
  const joined = master.length > 1 && bond !== undefined ? { bond: { ...bond, options: bond.options ?? "" } } : {};
  const ifacer = { type: OWN_IFACER, interfaces: master, ...(vlan === 0 ? {} : { vlanID: vlan }), ...joined };
  return { entries: isNeeded ? [ifacer] : [], master: vlan === 0 ? parent : `${parent}.${vlan}` };
}
