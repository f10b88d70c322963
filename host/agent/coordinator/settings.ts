/**
 * Where the cluster's networks come from, and what follows when nobody knows them: the network's definition, the resource Coordinator, or
 * what the controller has collected into its status.
 */
import { CniError, ErrorCode } from "../../cni/error.ts";
import { pluginKeys } from "../../cni/net-conf.ts";
import type { CniRequest } from "../../cni/request.ts";
import { decodeCoordinatorConf } from "../../config/coordinator-conf.ts";
import {
  COLLECTED_KEYS,
  type CollectedKey,
  type CoordinatorConf,
  type CoordinatorSettings,
  resolveCoordinatorConf,
} from "../../config/coordinator-settings.ts";
import type { LinkRemover } from "../../kernel/link-remover.ts";
import type { OpenNamespace } from "../../kernel/open-namespace.ts";
import type { Faults } from "../../lib/fault.ts";
import type { Log } from "../../lib/log.ts";
import { formatPrefix, type Prefix } from "../../net/prefix.ts";
import type { Registry } from "../../registry/registry.ts";
import { type Coordinator, coordinatorLayers } from "../../resources/coordinator.ts";
import type { Snapshot } from "../../resources/snapshot.ts";
import type { Identifier } from "../ipam/pod-identity.ts";

export interface CoordinatorDeps {
  /** The node's own namespace. */
  readonly host: OpenNamespace;
  readonly remover: LinkRemover;
  readonly registry: Registry;
  readonly snapshot: () => Snapshot;
  readonly identifier: Pick<Identifier, "recognize">;
  /** Whether there is a controller, which collects the cluster's networks. */
  readonly isCluster: boolean;
  readonly faults: Faults;
  readonly log: Log;
}

type SettingsTools = Pick<CoordinatorDeps, "snapshot" | "isCluster">;

/** What the configuration says, and sentences about how it says it. */
export interface Settings {
  readonly conf: CoordinatorConf;
  readonly networks: ClusterNetworks;
  readonly warnings: readonly string[];
}

/** The entry's own keys over the resource Coordinator, over what was collected for it, over the defaults. Throws ConfigError. */
export function settingsOf({ netConf }: CniRequest, { snapshot, isCluster }: SettingsTools): Settings {
  const { coordinator } = snapshot();
  const entry = decodeCoordinatorConf(pluginKeys(netConf), "CNI configuration");
  const layers = [entry, ...coordinatorLayers(coordinator)];
  const networks = describeNetworks(entry, coordinator, isCluster);
  const warnings = [...layers.flatMap((layer) => layer.warnings), ...networks.warnings];
  return { conf: resolveCoordinatorConf(...layers), networks, warnings };
}

/** Most networks that one line of `berthctl explain` shows. @limit */
export const MAX_SHOWN_NETWORKS = 8;

export interface ClusterNetworks {
  /** One sentence for each key, for `berthctl explain`. */
  readonly origins: readonly string[];
  readonly warnings: readonly string[];
  /** Why no service network is known although they were looked for; undefined: they are, or nobody has looked. */
  readonly missing: string | undefined;
  /** Keys that nobody has written. */
  readonly collected: readonly CollectedKey[];
}

/** What an empty list in the resource says: nothing. In a definition it says that there are none. */
const nonEmpty = (networks: readonly Prefix[] | undefined): readonly Prefix[] | undefined =>
  networks === undefined || networks.length === 0 ? undefined : networks;

/** Whether the key is what was collected, or would be. */
function isCollected(key: CollectedKey, entry: CoordinatorSettings, spec: Coordinator["spec"] | undefined): boolean {
  if (entry[key] !== undefined || nonEmpty(spec?.[key]) !== undefined) return false;
  return key === "serviceCIDR" || spec?.podCIDRType !== "none";
}

const COLLECTOR = "The controller (berth-controller) collects them into its status";

/** `isCluster`: whether there is a controller that collects. */
export function describeNetworks(
  entry: CoordinatorSettings,
  coordinator: Coordinator | undefined,
  isCluster: boolean,
): ClusterNetworks {
  const origins = COLLECTED_KEYS.map((key) => originOf(key, entry, coordinator));
  const collected = COLLECTED_KEYS.filter((key) => isCollected(key, entry, coordinator?.spec));
  const status = coordinator?.collected;
  const isWanted = collected.includes("serviceCIDR");
  if (status === undefined) {
    const lack =
      coordinator === undefined
        ? 'There is no Coordinator "default"'
        : `Coordinator "${coordinator.name}" has no status yet`;
    return { origins, warnings: [], missing: isCluster && isWanted ? lack : undefined, collected: [] };
  }
  if (status.phase === "Synced") return { origins, warnings: [], missing: undefined, collected };
  const text = `Coordinator "${coordinator?.name}" is not ready: ${status.reason}`;
  const isMissing = isWanted && status.serviceCIDR.length === 0;
  return { origins, warnings: collected.length === 0 ? [] : [text], missing: isMissing ? text : undefined, collected };
}

/**
 * Throws CniError 11: a pod without a way to the services would be of no use, and would not get one later. Without pod networks it goes on:
 * a cluster may have none.
 */
export function requireServiceNetworks({ missing }: ClusterNetworks): void {
  if (missing === undefined) return;
  const text = `The cluster's service networks are not known. ${missing}. ${COLLECTOR}; see that it runs, or name them in "serviceCIDR" there or in the network's definition`;
  throw new CniError(ErrorCode.TryAgainLater, text);
}

function originOf(key: CollectedKey, entry: CoordinatorSettings, coordinator: Coordinator | undefined): string {
  const ofEntry = entry[key];
  if (ofEntry?.length === 0) return `${key} is empty, as the network's definition says`;
  if (ofEntry !== undefined) return `${key} is ${list(ofEntry)}, as the network's definition says`;
  if (coordinator === undefined)
    return `${key} is empty: the definition names none, and there is no Coordinator "default"`;
  const { name, spec, collected } = coordinator;
  const ofSpec = nonEmpty(spec[key]);
  if (ofSpec !== undefined) return `${key} is ${list(ofSpec)}, as Coordinator "${name}" says`;
  if (!isCollected(key, entry, spec)) return `${key} is empty, since podCIDRType of Coordinator "${name}" is none`;
  if (collected === undefined) return `${key} is empty: nobody names any, and Coordinator "${name}" has no status`;
  const found = nonEmpty(collected[key]);
  const status = `the status of Coordinator "${name}" (${collected.phase}: ${collected.reason})`;
  return found === undefined ? `${key} is empty in ${status}` : `${key} is ${list(found)}, as is said in ${status}`;
}

function list(networks: readonly Prefix[]): string {
  const shown = networks.slice(0, MAX_SHOWN_NETWORKS).map(formatPrefix).join(", ");
  const more = networks.length - MAX_SHOWN_NETWORKS;
  return more > 0 ? `${shown} and ${more} more` : shown;
}
