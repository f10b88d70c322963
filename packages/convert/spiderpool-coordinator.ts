/** Settings of Spiderpool's coordinator: of SpiderCoordinator, and of entries in network definitions. */
import * as z from "zod";
import { POD_TABLES_FIRST, POD_TABLES_LAST } from "../../host/config/coordinator-conf.ts";
import { DEFAULT_COORDINATOR_CONF } from "../../host/config/coordinator-settings.ts";
import { orAbsent } from "../../host/lib/schema.ts";
import type { PlanBuilder } from "./conversion-plan.ts";
import { decodePlaced, joinPath } from "./decode-placed.ts";
import type { PlacedField } from "./findings.ts";
import type { PlacedObject } from "./input.ts";
import { OWN_COORDINATOR } from "./networks.ts";

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

/** The specification of SpiderCoordinator; SpiderMultusConfig has it, too. */
export const coordinatorSpec = z.object({
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

/** Returns the keys that both forms of the settings have. */
function sharedKeys(keys: CoordinatorKeys, { place, field }: PlacedField): Record<string, unknown> {
  const { mode, hijackCIDR, policyRoutes = [], podMACPrefix, tunePodRoutes, hostRuleTable, podRPFilter = 0 } = keys;
  const at = (key: string) => joinPath(field, key);
  const lose = (key: string, value: unknown, why: string) => place.lost(at(key), value, why);
  if (policyRoutes.length > 0) lose("policyRoutes", policyRoutes, "write the routes into the pool (spec.routes)");
  if ((keys.txQueueLen ?? 0) !== 0)
    lose("txQueueLen", keys.txQueueLen, "the coordinator leaves the queue length alone");
  const filter = Math.max(-1, podRPFilter);
  if (filter !== 0)
    place.changed(at("podRPFilter"), podRPFilter, `hostRPFilter: ${filter}, which also applies to the node's links`);
  const table = hostRuleTable === undefined ? undefined : otherTable(hostRuleTable);
  if (table !== undefined)
    place.changed(
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
    ...(keys.vethMTU ? { vethMTU: keys.vethMTU } : {}),
    ...(keys.vethLinkAddress ? { vethLinkAddress: keys.vethLinkAddress } : {}),
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
  objects: readonly Pick<PlacedObject, "place" | "name" | "value">[],
  settings: SpiderpoolSettings,
  builder: PlanBuilder,
): void {
  for (const { place, value, name } of objects) {
    const context = { place, field: "spec" };
    if (name !== "default") {
      place.problem("metadata.name", name, 'not converted: only the object "default" has an effect');
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

/** Returns Berth's entry of the plugin, in which undefined values count as absent. */
export function convertEntry(
  entry: Readonly<Record<string, unknown>>,
  context: PlacedField,
): Readonly<Record<string, unknown>> {
  const { place, field } = context;
  const keys = decodePlaced(coordinatorEntry, entry, context);
  if (keys === undefined) return { type: OWN_COORDINATOR };
  if ((keys.multusNicPrefix ?? "") !== "")
    place.lost(joinPath(field, "multusNicPrefix"), keys.multusNicPrefix, "Berth reads the names of NICs from the pod");
  if (keys.logOptions !== undefined)
    place.unneeded(joinPath(field, "logOptions"), keys.logOptions, "Berth's coordinator has a log of its own");
  return {
    type: OWN_COORDINATOR,
    ...sharedKeys(keys, context),
    podDefaultRouteNic: keys.podDefaultRouteNic || undefined,
    podDefaultCniNic: keys.podDefaultCniNic || undefined,
    overlayPodCIDR: keys.overlayPodCIDR,
    serviceCIDR: keys.serviceCIDR,
    ...(keys.hostRPFilter === undefined ? {} : { hostRPFilter: Math.max(-1, keys.hostRPFilter) }),
    detectGateway: keys.detectGateway,
    detectIPConflict: keys.detectIPConflict,
    detectOptions: keys.detectOptions && entry.detectOptions,
  };
}

export interface SpiderpoolSettings {
  readonly detectIPConflict: boolean;
  readonly detectGateway: boolean;
}
