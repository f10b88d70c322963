/**
 * The network of one NIC as its definition describes it: its names, and the settings of its coordinator.
 */
import type { CoordinatorConf } from "../config/coordinator-settings.ts";
import type { PodSubject } from "../ipam/model.ts";

/** A NIC as its request names it. */
export interface NicReference {
  readonly ifName: string;
  /** `name` of the network's configuration. */
  readonly network: string;
  /** Undefined if the pod is unknown. */
  readonly pod: PodSubject | undefined;
}

export interface NicSettings {
  /** The names by which `multusName` of a pool may mean the NIC's network; undefined: those that follow from the pod's annotations. */
  readonly networkNames: (nic: NicReference) => readonly string[] | undefined;
  /** The settings of the NIC's coordinator. */
  readonly settingsFor: (nic: NicReference) => CoordinatorConf;
  /** Whether the definition of the NIC's network has a coordinator. */
  readonly isCoordinated: (nic: NicReference) => boolean;
}
