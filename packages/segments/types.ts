/** The dependencies of this package's controllers besides those of all controllers, and their counts for metrics. */
import type { ControllerDeps } from "../../host/controller/types.ts";
import type { KubeApi } from "../../host/kubernetes/kube-api.ts";
import type { HttpClient } from "./record-server/http-client.ts";
import type { Product } from "./record-server/prefix-server.ts";
import type { MeasuredRange, MeasuredRecords } from "./segment-metrics.ts";

declare module "../../host/controller/types.ts" {
  interface Measurements {
    /** The ranges that blocks are leased of. */
    readonly ranges?: () => readonly MeasuredRange[];
    /** Undefined if addresses are not recorded. */
    readonly records?: MeasuredRecords;
  }
}

/** The API server with the ranges that several clusters share. */
export interface HubAccess {
  readonly api: Pick<KubeApi, "call">;
  /** This cluster's name in its RangeMembers. */
  readonly member: string;
  /** Where the ConfigMap `berth-address-ranges` is. */
  readonly namespace: string;
  /** Interval at which the hub is asked: milliseconds. Default: 15,000. */
  readonly checkMs?: number;
}

/** The IPAM of record, Nautobot or NetBox. */
export interface RecordServerAccess {
  readonly product: Product;
  readonly client: HttpClient;
  /** This cluster's name, as people know it. */
  readonly cluster: string;
  /** By address space of pools: the namespace of Nautobot, or the VRF of NetBox, in which "" is no VRF. */
  readonly spaces: ReadonlyMap<string, string>;
  /** Where the ConfigMap `berth-address-ranges` is. */
  readonly namespace: string;
}

/** Of the controller that leases blocks. */
export interface BlocksDeps extends ControllerDeps {
  /** Undefined if no pool may take its addresses from a hub. */
  readonly hub?: HubAccess | undefined;
  /** Undefined if there is none. */
  readonly recordServer?: RecordServerAccess | undefined;
}
