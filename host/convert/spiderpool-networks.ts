/** Spiderpool's networks: those that it makes of a SpiderMultusConfig, and network definitions with its plugins. */
import * as z from "zod";
import { COORDINATOR_TYPES, IFACER_TYPES } from "../cni/request.ts";
import { orAbsent } from "../lib/schema.ts";
import type { PlanBuilder } from "./conversion-plan.ts";
import { decodePlaced, joinPath } from "./decode-placed.ts";
import type { Findings, Place } from "./findings.ts";
import type { Input, PlacedObject } from "./input.ts";
import {
  addNetwork,
  berthIpam,
  findNetworks,
  ipamOf,
  OWN_IFACER,
  type PeerNetwork,
  type PlacedPlugin,
} from "./networks.ts";
import { networkOfMultusConfig, SPIDERPOOL_IPAM } from "./spider-multus-config.ts";
import { convertEntry, type SettingsPlace } from "./spiderpool-coordinator.ts";

const texts = orAbsent(z.array(z.string()));
const flag = orAbsent(z.boolean());

/** Returns Berth's entry for one of Spiderpool's plugins; other plugins as they are. */
function convertPlugin(plugin: PlacedPlugin, place: Place, findings: Findings): Readonly<Record<string, unknown>> {
  const { entry, field } = plugin;
  const ipam = ipamOf(plugin, [SPIDERPOOL_IPAM]);
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

function convertIpam(ipam: Readonly<Record<string, unknown>>, context: SettingsPlace): object {
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

/**
 * Returns whether one of the plugins is Spiderpool's. A coordinator alone, as behind Calico, is one too; one behind
 * Berth is Berth's.
 */
function isSpiderpools({ plugins }: PeerNetwork): boolean {
  if (plugins.some((plugin) => ipamOf(plugin, ["berth"]) !== undefined)) return false;
  return plugins.some(
    (plugin) => ipamOf(plugin, [SPIDERPOOL_IPAM]) !== undefined || plugin.entry.type === COORDINATOR_TYPES[0],
  );
}

/** Adds all networks; returns the definitions, `namespace/name`, that have a replacement. */
export function convertSpiderpoolNetworks(
  input: Input,
  configs: readonly PlacedObject[],
  builder: PlanBuilder,
): Set<string> {
  const { findings } = builder;
  const made = configs.flatMap((object) => networkOfMultusConfig(object, findings) ?? []);
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
