/** The network of one NIC as its definition describes it: its names, and the settings of its coordinator. */
import type { CoordinatorConf } from "../../config/coordinator-settings.ts";
import type { PlacedEntry } from "../../config/network-definition.ts";
import type { PodSubject } from "../../ipam/model.ts";

/** A NIC as its request names it. */
export interface NicReference {
  readonly ifName: string;
  /** `name` of the network's configuration. */
  readonly network: string;
  /** Undefined if the pod is unknown. */
  readonly pod: PodSubject | undefined;
}

/** A NIC that a pod announces, with its network. */
export interface NicNetwork {
  readonly ifName: string;
  /** `name` of the network's configuration; "" if no definition is known. */
  readonly network: string;
  /** `namespace/name` of the NetworkAttachmentDefinition; undefined for a definition of the node. */
  readonly attachment?: string | undefined;
  /** Plugins of the network's definition; empty if none is known. */
  readonly plugins: readonly PlacedEntry[];
  /** Whether the pod or the definition requests addresses for it by name. */
  readonly isAsking?: boolean | undefined;
}

/** The definition of a NIC's network, as an ADD needs it. */
export interface NicDefinition {
  /**
   * The names by which `multusName` of a pool may mean the network; undefined: those that follow from the pod's
   * annotations.
   */
  readonly networkNames: readonly string[] | undefined;
  /** The settings of the NIC's coordinator. */
  readonly settings: CoordinatorConf;
  /** Whether the definition has a coordinator. */
  readonly isCoordinated: boolean;
}

export interface NicSettings {
  readonly definitionOf: (nic: NicReference) => NicDefinition;
  /** The NICs that the pod announces, in the order in which they are attached. */
  readonly nicsOf: (pod: PodSubject) => readonly NicNetwork[];
  /** Whether a definition of an administrator names the log file. Absent where all are. */
  readonly isAdministratorsLog?: (logFile: string) => boolean;
  /** The plugins of a network of this node; undefined if there is none of the name. */
  readonly pluginsOf: (network: string) => readonly PlacedEntry[] | undefined;
}

/**
 * Returns the plugins of the NIC's network: of the NetworkAttachmentDefinition that the pod names for it, else of the
 * node's network; empty if no definition is known.
 */
export function pluginsOfNic(
  { nicsOf, pluginsOf }: Pick<NicSettings, "nicsOf" | "pluginsOf">,
  { ifName, network, pod }: NicReference,
): readonly PlacedEntry[] {
  const announced = pod && nicsOf(pod).find((nic) => nic.ifName === ifName && nic.network === network);
  if (announced?.attachment !== undefined) return announced.plugins;
  return pluginsOf(network) ?? announced?.plugins ?? [];
}
