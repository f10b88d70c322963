/**
 * Berth's annotations of pods and namespaces (spec.md 2.1, 2.2), from text to checked values.
 * Called per pod by selection; precedence between them is selection's, not this file's.
 * Effects: none.
 */
import type { IfName } from "../cni/names.ts";
import type { Ip } from "../net/ip.ts";
import type { Prefix } from "../net/prefix.ts";
import type { PoolNumber } from "./pool-number.ts";

/** Names in the order written; a family that was not named is absent, a list is never empty. */
export interface FamilyNames {
  readonly ipv4?: readonly string[] | undefined;
  readonly ipv6?: readonly string[] | undefined;
}

export interface NicSubnets extends FamilyNames {
  readonly interface: IfName;
}

/** Either every entry of the list has an `interface` or none has: then the index is the NIC's. */
export interface NicPools extends FamilyNames {
  readonly interface?: IfName | undefined;
  readonly cleangateway: boolean;
}

export interface AnnotatedRoute {
  readonly dst: Prefix;
  readonly gw: Ip;
}

/** One element of `k8s.v1.cni.cncf.io/networks`. */
export interface NetworkSelection {
  readonly namespace?: string | undefined;
  readonly name: string;
  readonly interface?: IfName | undefined;
}

/** Pool names may be patterns (pattern.ts); subnet names may not. */
export interface PodAnnotations {
  readonly subnet?: FamilyNames | undefined;
  readonly subnets?: readonly NicSubnets[] | undefined;
  readonly ippool?: FamilyNames | undefined;
  readonly ippools?: readonly NicPools[] | undefined;
  readonly routes?: readonly AnnotatedRoute[] | undefined;
  readonly defaultRouteNic?: IfName | undefined;
  readonly ippoolIpNumber?: PoolNumber | undefined;
  readonly ippoolReclaim?: boolean | undefined;
  readonly networks?: readonly NetworkSelection[] | undefined;
  /** `v1.multus-cni.io/default-network`. */
  readonly defaultNetwork?: NetworkSelection | undefined;
}

export const ANNOTATION_PREFIX = "ipam.vendor.io/";

/** Throws ConfigError whose source is `annotation "<key>"`. */
export function decodePodAnnotations(_annotations: Readonly<Record<string, string>>): PodAnnotations {
  throw new Error("decodePodAnnotations is under construction");
}

/** The pools that a namespace gives to its pods. Throws ConfigError. */
export function decodeNamespaceAnnotations(_annotations: Readonly<Record<string, string>>): FamilyNames {
  throw new Error("decodeNamespaceAnnotations is under construction");
}

/**
 * Throws ConfigError unless `entry` names every enabled family, or one enabled family where `allowSingleFamily` is set.
 * `path` is the entry's place in the annotation: "" or `[1]`.
 */
export function requireFamilies(
  _annotation: string,
  _path: string,
  _entry: FamilyNames,
  _families: { readonly enableIPv4: boolean; readonly enableIPv6: boolean; readonly allowSingleFamily: boolean },
): void {
  throw new Error("requireFamilies is under construction");
}
