/**
 * The settings of a request: its own keys, the resource Coordinator, and the cluster's networks, which a definition
 * or the resource names or the controller collects into the status.
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
import type { NodeNamespace } from "../../kernel/open-namespace.ts";
import { BoundedMap } from "../../lib/bounded-map.ts";
import { listSome } from "../../lib/describe.ts";
import type { Faults } from "../../lib/fault.ts";
import type { Log } from "../../lib/log.ts";
import { formatPrefix, type Prefix } from "../../net/prefix.ts";
import type { Registry } from "../../registry/registry.ts";
import { type Coordinator, coordinatorLayers } from "../../resources/coordinator.ts";
import type { Snapshot } from "../../resources/snapshot.ts";
import type { Identifier } from "../ipam/pod-identity.ts";
import type { NicSettings } from "../request/nic-definition.ts";
import type { PairRemover } from "./pair-remover.ts";

export interface CoordinatorDeps {
  /** The node's own namespace. */
  readonly host: NodeNamespace;
  readonly remover: PairRemover;
  readonly registry: Registry;
  readonly snapshot: () => Snapshot;
  readonly identifier: Pick<Identifier, "recognize">;
  readonly definitions: NicSettings;
  /** There is a controller, which collects the cluster's networks. */
  readonly isCluster: boolean;
  readonly faults: Faults;
  readonly log: Log;
}

type SettingsDeps = Pick<CoordinatorDeps, "snapshot" | "isCluster">;

/** The configuration, and warnings about it. */
interface Settings {
  readonly conf: CoordinatorConf;
  readonly networks: ClusterNetworks;
  readonly warnings: readonly string[];
}

/** Most entries of network definitions whose settings are remembered. */
const MAX_REMEMBERED_ENTRIES = 16;

/** Longest entry that is remembered: UTF-16 units of its JSON. */
const MAX_REMEMBERED_ENTRY_LENGTH = 4_096;

/** The settings of requests. The pods of a network have the same, so those of the latest entries are remembered. */
export class SettingsReader {
  readonly #deps: SettingsDeps;
  readonly #known = new BoundedMap<string, Settings>(MAX_REMEMBERED_ENTRIES);
  /** The resource that the remembered settings are of. */
  #coordinator: Coordinator | undefined;

  constructor(deps: SettingsDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the settings, in order of precedence: the entry's own keys, the resource Coordinator, collected networks,
   * defaults. Throws ConfigError.
   */
  read({ netConf }: Pick<CniRequest, "netConf">): Settings {
    const { coordinator } = this.#deps.snapshot();
    if (coordinator !== this.#coordinator) this.#known.clear();
    this.#coordinator = coordinator;
    const keys = pluginKeys(netConf);
    const text = JSON.stringify(keys);
    const settings = this.#known.get(text) ?? resolve(keys, coordinator, this.#deps.isCluster);
    if (text.length <= MAX_REMEMBERED_ENTRY_LENGTH) this.#known.set(text, settings);
    return settings;
  }
}

function resolve(
  keys: Readonly<Record<string, unknown>>,
  coordinator: Coordinator | undefined,
  isCluster: boolean,
): Settings {
  const entry = decodeCoordinatorConf(keys, "CNI configuration");
  const layers = [entry, ...coordinatorLayers(coordinator)];
  const networks = describeNetworks(entry, coordinator, isCluster);
  const warnings = [...layers.flatMap((layer) => layer.warnings), ...networks.warnings];
  return { conf: resolveCoordinatorConf(...layers), networks, warnings };
}

/** Most networks that one line of `berthctl explain` shows. */
const MAX_SHOWN_NETWORKS = 8;

export interface ClusterNetworks {
  /** One sentence for each key, for `berthctl explain`. */
  readonly origins: readonly string[];
  readonly warnings: readonly string[];
  /** Why no service network is known; undefined if one is, or none is expected. */
  readonly missing: string | undefined;
  /** Keys that neither the definition nor the resource sets. */
  readonly collected: readonly CollectedKey[];
}

/** Returns undefined for an empty list: in the resource it means "not set", whereas in a definition it means "none". */
const nonEmpty = (networks: readonly Prefix[] | undefined): readonly Prefix[] | undefined =>
  networks === undefined || networks.length === 0 ? undefined : networks;

/** Returns whether the value of the key is, or would be, a collected one. */
function isCollected(key: CollectedKey, entry: CoordinatorSettings, spec: Coordinator["spec"] | undefined): boolean {
  if (entry[key] !== undefined || nonEmpty(spec?.[key]) !== undefined) return false;
  return key === "serviceCIDR" || spec?.podCIDRType !== "none";
}

const COLLECTOR = "The controller (berth-controller) collects them into that status";

/** `isCluster`: there is a controller that collects networks. */
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
    const missing =
      coordinator === undefined
        ? 'There is no Coordinator "default"'
        : `Coordinator "${coordinator.name}" has no status yet`;
    return { origins, warnings: [], missing: isCluster && isWanted ? missing : undefined, collected: [] };
  }
  if (status.phase === "Synced") return { origins, warnings: [], missing: undefined, collected };
  const text = `Coordinator "${coordinator?.name}" is not ready: ${status.reason}`;
  const isMissing = isWanted && status.serviceCIDR.length === 0;
  return { origins, warnings: collected.length === 0 ? [] : [text], missing: isMissing ? text : undefined, collected };
}

/**
 * Throws CniError 11 if service networks are unknown: the pod could not reach services, and would not get the routes
 * later. Unknown pod networks are accepted: a cluster may have none.
 */
export function requireServiceNetworks({ missing }: ClusterNetworks): void {
  if (missing === undefined) return;
  const text = `The cluster's service networks are unknown. ${missing}. ${COLLECTOR}; check that it is running, or set "serviceCIDR" there or in the network's definition`;
  throw new CniError(ErrorCode.TryAgainLater, text);
}

function originOf(key: CollectedKey, entry: CoordinatorSettings, coordinator: Coordinator | undefined): string {
  const ofEntry = entry[key];
  if (ofEntry?.length === 0) return `${key} is empty, set by the network's definition`;
  if (ofEntry !== undefined) return `${key} is ${list(ofEntry)}, set by the network's definition`;
  if (coordinator === undefined)
    return `${key} is empty: the definition names none, and there is no Coordinator "default"`;
  const { name, spec, collected } = coordinator;
  const ofSpec = nonEmpty(spec[key]);
  if (ofSpec !== undefined) return `${key} is ${list(ofSpec)}, set by Coordinator "${name}"`;
  if (!isCollected(key, entry, spec)) return `${key} is empty because podCIDRType of Coordinator "${name}" is none`;
  if (collected === undefined) return `${key} is empty: it is not set, and Coordinator "${name}" has no status yet`;
  const found = nonEmpty(collected[key]);
  const status = `the status of Coordinator "${name}" (${collected.phase}: ${collected.reason})`;
  return found === undefined ? `${key} is empty in ${status}` : `${key} is ${list(found)}, from ${status}`;
}

function list(networks: readonly Prefix[]): string {
  return listSome(networks.map(formatPrefix), MAX_SHOWN_NETWORKS);
}
