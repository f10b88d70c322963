/**
 * What is known of the network behind one NIC beside the request itself: which names it goes by, and what its coordinator is told.
 */
import type { CoordinatorConf } from "../config/coordinator-settings.ts";
import type { PodSubject } from "../ipam/model.ts";

/** A NIC as its request names it. */
export interface NicReference {
  readonly ifName: string;
  /** `name` of the network's configuration. */
  readonly network: string;
  /** Undefined when nothing is known of the pod. */
  readonly pod: PodSubject | undefined;
}

export interface NicSettings {
  /** By which `multusName` of a pool may mean the NIC's network; undefined: what the pod's annotations make of the name. */
  readonly networkNames: (nic: NicReference) => readonly string[] | undefined;
  /** What holds for the NIC's coordinator. */
  readonly settingsFor: (nic: NicReference) => CoordinatorConf;
  /** Whether the definition of the NIC's network has a coordinator. */
  readonly isCoordinated: (nic: NicReference) => boolean;
}
