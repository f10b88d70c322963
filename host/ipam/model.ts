/**
 * What selection talks about: who asks, and which pools were considered for it, with the reasons.
 */
import type { FamilyNames, PodAnnotations } from "../config/annotations.ts";
import type { IpamConf } from "../config/ipam-conf.ts";
import type { VendorConf } from "../config/vendor-conf.ts";
import type { Family } from "../net/ip.ts";
import type { PoolOwner } from "../resources/fields/subnet-pool.ts";
import type { IpPool } from "../resources/ip-pool.ts";
import type { SubnetPoolRequest } from "./subnet-pools.ts";

export type Labels = Readonly<Record<string, string>>;

/** The pod as far as it is known: without Kubernetes arguments or a manifest there is none. */
export interface PodSubject {
  readonly namespace: string;
  readonly name: string;
  readonly labels: Labels;
  /** How many it has; `labels` has the first ones of very many. Absent: those. */
  readonly labelCount?: number | undefined;
  readonly annotations: PodAnnotations;
  /** Absent: the pod names no Subnets, or there is no cluster to ask. */
  readonly application?: Belonging | undefined;
}

/** The workload whose generated pools a pod may use; or why there is none, a clause: `pod "shop/x" has no controller`. */
export type Belonging =
  | { readonly kind: "application"; readonly application: PoolOwner }
  | { readonly kind: "none"; readonly reason: string };

interface NamespaceSubject {
  readonly labels: Labels;
  readonly annotations: FamilyNames;
}

/** All that decides which pools a NIC may take its addresses from. */
export interface Subject {
  readonly pod: PodSubject | undefined;
  readonly namespace: NamespaceSubject | undefined;
  readonly node: { readonly name: string; readonly labels: Labels };
  /** The NIC of the request, and the name of its network. */
  readonly ifName: string;
  readonly network: string;
  /** All names by which a pool's `multusName` may mean that network. Absent: the name, and what the pod's list of networks makes of it. */
  readonly networkNames?: readonly string[] | undefined;
  /** Name of a pod's first NIC. */
  readonly firstNic: string;
  readonly ipamConf: IpamConf;
  readonly vendorConf: VendorConf;
}

/** A pool that some rule named. With a `refusal` it was passed over, for that reason. */
export type Candidate = {
  readonly name: string;
  /** Found by a pattern, so that whoever wrote the rule need not know of the pool. Absent: named. */
  readonly isMatched?: boolean | undefined;
} & (
  | { readonly pool: IpPool; readonly refusal?: undefined }
  | {
      readonly pool?: IpPool | undefined;
      readonly refusal: string;
      /** The refusal without the names of nodes, networks, and other namespaces and their objects. Absent: it has none. */
      readonly brief?: string | undefined;
    }
);

/** One address is wanted from the first candidate that has one. */
export interface FamilyDemand {
  readonly family: Family;
  /** None: no pool has been generated for it yet. */
  readonly candidates: readonly Candidate[];
  /** Of a pod that names Subnets. */
  readonly generated?: GeneratedDemand | undefined;
}

/** The candidates are the pools that were generated for this workload, out of these Subnets. */
export interface GeneratedDemand {
  readonly application: PoolOwner;
  readonly request: SubnetPoolRequest;
}

/** What one NIC shall get: one address of each family, all or nothing. */
export interface NicDemand {
  readonly ifName: string;
  /** The rule that named the pools, as a person would say it. */
  readonly rule: string;
  readonly cleanGateway: boolean;
  readonly families: readonly FamilyDemand[];
}

export interface Selection {
  /** The NIC of the request, and with `ippools` or `subnets` all NICs of the pod. */
  readonly nics: readonly NicDemand[];
  readonly warnings: readonly string[];
}

/** `IPv4` or `IPv6`. */
export function familyName(family: Family): string {
  return `IPv${family}`;
}
