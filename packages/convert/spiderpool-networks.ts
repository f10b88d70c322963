/** Spiderpool's networks: those that it makes of a SpiderMultusConfig, and network definitions with its plugins. */
import * as z from "zod";
import { COORDINATOR_TYPES, isCoordinator, isIfacer } from "../../host/cni/request.ts";
import { orAbsent } from "../../host/lib/schema.ts";
import { reportKeys } from "./cni-ranges.ts";
import type { PlanBuilder } from "./conversion-plan.ts";
import { decodePlaced, joinPath } from "./decode-placed.ts";
import type { Place, PlacedField } from "./findings.ts";
import type { Input, PlacedObject } from "./input.ts";
import {
  addNetwork,
  berthIpam,
  findNetworks,
  ipamOf,
  OWN_IFACER,
  type PeerNetwork,
  type PlacedPlugin,
  parseConfig,
  pluginsOf,
} from "./networks.ts";
import { convertEntry, coordinatorSpec } from "./spiderpool-coordinator.ts";

/** Type of the IPAM plugin. */
const SPIDERPOOL_IPAM = "spiderpool";

const texts = orAbsent(z.array(z.string()));
const text = orAbsent(z.string());
const number = orAbsent(z.int());
const flag = orAbsent(z.boolean());

/** Returns Berth's entry for one of Spiderpool's plugins; other plugins as they are. */
function convertPlugin(plugin: PlacedPlugin, place: Place): Readonly<Record<string, unknown>> {
  const { entry, field } = plugin;
  const ipam = ipamOf(plugin, SPIDERPOOL_IPAM);
  if (ipam !== undefined) return { ...entry, ipam: convertIpam(ipam, { place, field: joinPath(field, "ipam") }) };
  if (isCoordinator(entry.type)) return convertEntry(entry, { place, field });
  return isIfacer(entry.type) ? { ...entry, type: OWN_IFACER } : entry;
}

const LOST = {
  clean_gateway: "use a pool without gateway, or cleangateway of the annotation ippools",
  match_master_subnet: "name pools of the master's subnet",
} as const;

const OWN_KEYS =
  "log_level log_file_path log_file_max_size log_file_max_age log_file_max_count ipam_unix_socket_path".split(" ");
const UNNEEDED = Object.fromEntries(OWN_KEYS.map((key) => [key, "a setting of Spiderpool's own programs"]));

const ipamKeys = z.object({
  ...Object.fromEntries(OWN_KEYS.map((key) => [key, z.unknown().optional()])),
  type: z.string(),
  default_ipv4_ippool: texts,
  default_ipv6_ippool: texts,
  clean_gateway: flag,
  match_master_subnet: flag,
});

function convertIpam(ipam: Readonly<Record<string, unknown>>, context: PlacedField): object {
  const keys = decodePlaced(ipamKeys, ipam, context);
  if (keys !== undefined) reportKeys(ipam, context, { unneeded: UNNEEDED, lost: LOST });
  return berthIpam({ 4: keys?.default_ipv4_ippool ?? [], 6: keys?.default_ipv6_ippool ?? [] });
}

/**
 * Returns whether one of the plugins is Spiderpool's. A coordinator alone, as behind Calico, is one too; one behind
 * Berth is Berth's.
 */
function isSpiderpools({ plugins }: PeerNetwork): boolean {
  if (plugins.some((plugin) => ipamOf(plugin, "berth") !== undefined)) return false;
  return plugins.some(
    (plugin) => ipamOf(plugin, SPIDERPOOL_IPAM) !== undefined || plugin.entry.type === COORDINATOR_TYPES[0],
  );
}

/** Adds all networks; returns the definitions, `namespace/name`, that have a replacement. */
export function convertSpiderpoolNetworks(
  input: Input,
  configs: readonly PlacedObject[],
  builder: PlanBuilder,
): Set<string> {
  const made = configs.flatMap((object) => networkOfMultusConfig(object) ?? []);
  const names = new Set(made.map(({ namespace, name }) => `${namespace}/${name}`));
  const found = findNetworks(input).filter(isSpiderpools);
  // Spiderpool made these out of a SpiderMultusConfig.
  const others = found.filter(({ namespace, name }) => namespace === undefined || !names.has(`${namespace}/${name}`));
  const replaced = [...made, ...others].filter((network) =>
    addNetwork(
      network,
      network.plugins.map((plugin) => convertPlugin(plugin, network.place)),
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
function networkOfMultusConfig(object: PlacedObject): PeerNetwork | undefined {
  const { place, value, name, namespace, annotations } = object;
  const context = { place, field: "spec" };
  const spec = decodePlaced(multusSpec, value.spec ?? {}, context);
  if (spec === undefined) return undefined;
  const definition = annotations["multus.spidernet.io/cr-name"] ?? name;
  const cniVersion = annotations["multus.spidernet.io/cni-version"] ?? "0.3.1";
  const around = { place, name: definition, namespace: namespace || "default", fileName: "", node: undefined };
  if (spec.cniType === "custom") {
    const config = parseConfig(spec.customCNI ?? "", { place, field: "spec.customCNI" });
    return config && { ...around, annotations, config, plugins: pluginsOf(config, "spec.customCNI") };
  }
  const main = mainPlugins(spec, context);
  if (main === undefined) return undefined;
  const chained = (spec.chainCNIJsonData ?? []).flatMap((text, at): Readonly<Record<string, unknown>>[] => {
    const parsed = parseConfig(text, { ...context, field: `spec.chainCNIJsonData[${at}]` });
    return parsed === undefined ? [] : [parsed];
  });
  const { podCIDRType, podDefaultRouteNIC, ...keys } = spec.coordinator ?? {};
  if (podCIDRType !== undefined)
    place.unneeded("spec.coordinator.podCIDRType", podCIDRType, "Spiderpool reads it of the SpiderCoordinator only");
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

/**
 * Returns the entries before and after those of chained plugins and coordinator; undefined if the settings of the
 * type are missing.
 */
function mainPlugins(spec: MultusSpec, context: PlacedField): MainPlugins | undefined {
  const { place } = context;
  const { cniType, macvlan, ipvlan, vlan, sriov, ibsriov, ipoib, ovs } = spec;
  const ipamFor = (named: z.output<typeof pools>) => (spec.disableIPAM === true ? {} : { ipam: spiderpoolIpam(named) });
  const one = cniType === "macvlan" ? macvlan : cniType === "ipvlan" ? ipvlan : cniType === "vlan" ? vlan : undefined;
  if (one !== undefined) {
    const devices = devicesOf(one, { ...context, field: `spec.${cniType}` }, cniType !== "vlan");
    if (devices === undefined) return undefined;
    const mtu = one.mtu === 0 ? undefined : one.mtu;
    if (vlan?.vlanMode !== undefined && vlan.vlanMode !== "manual" && cniType === "vlan")
      place.lost("spec.vlan.vlanMode", vlan.vlanMode, "write a VLAN id");
    const mode = cniType === "macvlan" ? "bridge" : undefined;
    const vlanId = cniType === "vlan" ? one.vlanID : undefined;
    const main = { type: cniType, master: devices.master, mode, vlanId, mtu, ...ipamFor(one.ippools) };
    return { before: [...devices.entries, main], after: [] };
  }
  if (cniType === "sriov" && sriov !== undefined) {
    const { resourceName, vlanID, mtu = 0, minTxRateMbps, maxTxRateMbps, rdmaIsolation, ippools } = sriov;
    const main = {
      type: "sriov",
      vlan: vlanID,
      min_tx_rate: minTxRateMbps,
      max_tx_rate: maxTxRateMbps,
      ...ipamFor(ippools),
    };
    const after = mtu > 0 ? [{ type: "tuning", mtu }] : [];
    return { before: [main, ...(rdmaIsolation === true ? [{ type: "rdma" }] : [])], after, resource: resourceName };
  }
  if (cniType === "ib-sriov" && ibsriov !== undefined) {
    const { resourceName, pkey, linkState, rdmaIsolation, enableIbKubernetes, ippools } = ibsriov;
    const keys = { pkey, link_state: linkState, rdmaIsolation, ibKubernetesEnabled: enableIbKubernetes };
    return { before: [{ type: "ib-sriov", ...keys, ...ipamFor(ippools) }], after: [], resource: resourceName };
  }
  if (cniType === "ipoib" && ipoib !== undefined)
    return { before: [{ type: "ipoib", master: ipoib.master, ...ipamFor(ipoib.ippools) }], after: [] };
  if (cniType === "ovs" && ovs !== undefined) {
    const { bridge, vlan: tag, trunk: trunks, deviceID, ippools } = ovs;
    const main = {
      type: "ovs",
      bridge,
      vlan: tag,
      trunk: trunks,
      deviceID: deviceID || undefined,
      ...ipamFor(ippools),
    };
    return { before: [main], after: [], resource: deviceID ? `ovs-cni.network.kubevirt.io/${bridge}` : undefined };
  }
  place.problem(`spec.${fieldOf(cniType)}`, undefined, `not converted: want the settings of cniType ${cniType}`);
  return undefined;
}

function spiderpoolIpam(named: z.output<typeof pools>): object {
  const { ipv4, ipv6, matchMasterSubnet } = named ?? {};
  return {
    type: SPIDERPOOL_IPAM,
    ...(ipv4 === undefined ? {} : { default_ipv4_ippool: ipv4 }),
    ...(ipv6 === undefined ? {} : { default_ipv6_ippool: ipv6 }),
    ...(matchMasterSubnet === true ? { match_master_subnet: true } : {}),
  };
}

type OnMaster = z.output<z.ZodObject<typeof onMaster>>;

/**
 * Returns the ifacer's entry, if one is needed, and the device under the pods' NICs. `hasVlan`: the ifacer makes the
 * VLAN, not the main plugin.
 */
function devicesOf(
  { master, vlanID = 0, bond, rdmaResourceName }: OnMaster,
  { place, field }: PlacedField,
  hasVlan: boolean,
) {
  if (rdmaResourceName)
    place.lost(joinPath(field, "rdmaResourceName"), rdmaResourceName, "write the resource into the pods");
  if (master.length > 1 && bond === undefined) {
    place.problem(joinPath(field, "bond"), undefined, "not converted: want the bond that joins several masters");
    return undefined;
  }
  const vlan = hasVlan ? vlanID : 0;
  const parent = master.length === 1 ? master[0] : bond?.name;
  const isNeeded = vlan !== 0 || master.length > 1;
  const joined = master.length > 1 && bond !== undefined ? { bond: { ...bond, options: bond.options ?? "" } } : {};
  const ifacer = { type: OWN_IFACER, interfaces: master, ...(vlan === 0 ? {} : { vlanID: vlan }), ...joined };
  return { entries: isNeeded ? [ifacer] : [], master: vlan === 0 ? parent : `${parent}.${vlan}` };
}
