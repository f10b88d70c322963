/** The input and the result of pool selection: pod and NIC; candidate pools, with the reasons of passed over ones. */
import type { PodAnnotations } from "../config/annotations.ts";
import type { IpamConf } from "../config/ipam-conf.ts";
import type { VendorConf } from "../config/vendor-conf.ts";
import type { Family, Ip } from "../net/ip.ts";
import type { PoolOwner } from "../resources/fields/subnet-pool.ts";
import type { IpPool } from "../resources/ip-pool.ts";
import type { Namespace } from "../resources/namespace.ts";
import type { SubnetPoolRequest } from "./subnet-pools.ts";

export type Labels = Readonly<Record<string, string>>;

/** The known facts about the pod. */
export interface PodSubject {
  readonly namespace: string;
  readonly name: string;
  readonly labels: Labels;
  readonly annotations: PodAnnotations;
  /** undefined if the pod names no Subnets, and in embedded mode. */
  readonly application?: Belonging | undefined;
}

/** The workload whose generated pools a pod may use, or why there is none: `pod "shop/x" has no controller`. */
export type Belonging =
  | { readonly kind: "application"; readonly application: PoolOwner }
  | { readonly kind: "none"; readonly reason: string };

/** Everything on which the selection of a NIC's pools depends. */
export interface Subject {
  readonly pod: PodSubject | undefined;
  readonly namespace: Pick<Namespace, "labels" | "annotations"> | undefined;
  /** undefined: no pool is refused for its nodes. */
  readonly node: { readonly name: string; readonly labels: Labels } | undefined;
  /** The NIC of the request, and the name of its network. */
  readonly ifName: string;
  readonly network: string;
  /** All names that match the network in `multusName`; default: `network`, and its names in the pod's networks. */
  readonly networkNames?: readonly string[] | undefined;
  /** Name of a pod's first NIC. */
  readonly firstNic: string;
  readonly ipamConf: IpamConf;
  readonly vendorConf: VendorConf;
}

/** A pool named by a rule. If `refusal` is set, it was passed over for that reason. */
export type Candidate = {
  readonly name: string;
  /** Found by a pattern: the author of the rule may not know the pool's name. */
  readonly isMatched?: boolean | undefined;
} & (
  | { readonly pool: IpPool; readonly refusal?: undefined; readonly brief?: undefined }
  | {
      readonly pool?: IpPool | undefined;
      readonly refusal: string;
      /** The refusal without names of nodes, networks and other namespaces' objects; undefined if it has none. */
      readonly brief?: string | undefined;
    }
);

/** A demand for one address, from the first candidate that has one. */
export interface FamilyDemand {
  readonly family: Family;
  /** Empty if no pool has been generated yet. */
  readonly candidates: readonly Candidate[];
  /** Set if the pod names Subnets: the candidates are the pools that were generated for its workload out of them. */
  readonly generated?: SubnetPoolRequest | undefined;
}

/** The demand of one NIC: one address of each family, all or nothing. */
export interface NicDemand {
  readonly ifName: string;
  /** The rule that named the pools, as text. */
  readonly rule: string;
  readonly cleanGateway: boolean;
  readonly families: readonly FamilyDemand[];
  /** The main plugin takes an address itself where it is told no gateway (pick.ts). Default: it does not. */
  readonly takesFirst?: boolean;
  /** Refused for this pod by a later plugin. Default: none. */
  readonly refused?: readonly RefusedIp[] | undefined;
}

/** `why` is a clause. */
export interface RefusedIp {
  readonly space: string;
  readonly ip: Ip;
  readonly why: string;
}

export interface Selection {
  /** The NIC of the request, and with `ippools` or `subnets` all NICs of the pod. */
  readonly nics: readonly NicDemand[];
  readonly warnings: readonly string[];
}
