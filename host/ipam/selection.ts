/**
 * Which pools a NIC may take its addresses from: the first rule that is present decides alone
 * (docs/selection.md, "Order of precedence").
 */
import { CniError, ErrorCode } from "../cni/error.ts";
import { ANNOTATION_PREFIX, requireFamilies } from "../config/annotations.ts";
import { compilePattern, isPattern } from "../config/pattern.ts";
import { FAMILIES, type Family } from "../net/ip.ts";
import type { PoolOwner } from "../resources/fields/subnet-pool.ts";
import type { IpPool } from "../resources/ip-pool.ts";
import type { PoolsByName } from "../resources/pools-by-name.ts";
import { nicNameAt } from "./announced-nics.ts";
import { refuseOwnPool, refusePool, tieRank } from "./filters.ts";
import {
  type Candidate,
  type FamilyDemand,
  familyName,
  type NicDemand,
  type Selection,
  type Subject,
} from "./model.ts";
import { findSubnetPool, type SubnetPoolRequest } from "./subnet-pools.ts";

const SUBNET = `${ANNOTATION_PREFIX}subnet`;
const SUBNETS = `${ANNOTATION_PREFIX}subnets`;
const IPPOOL = `${ANNOTATION_PREFIX}ippool`;
const IPPOOLS = `${ANNOTATION_PREFIX}ippools`;

/** Pool names or patterns by family, as one rule gives them. */
interface NamedPools {
  readonly ipv4?: readonly string[] | undefined;
  readonly ipv6?: readonly string[] | undefined;
}

/** The pools, and by name why other existing pools cannot be used. */
interface Offer {
  readonly pools: PoolsByName;
  readonly refused: ReadonlyMap<string, string>;
  /**
   * Results cached during this selection: a tenant may repeat a pattern for many NICs, and each match compares all
   * pools.
   */
  readonly known: Known;
}

interface Known {
  /** Sorted pool names, by family. */
  readonly names: Map<Family, readonly string[]>;
  /** By family and pattern. */
  readonly matches: Map<string, readonly Candidate[]>;
  /** By family and list of names. */
  readonly lists: Map<string, readonly Candidate[]>;
  /** The pools that patterns found, by family and name: patterns of one annotation may all match the same pools. */
  readonly matched: Map<string, Candidate>;
}

/**
 * Chooses the candidates; `refused` has the reasons of existing pools that cannot be used. Throws CniError 100 if no
 * rule names a pool, 102 if an annotation cannot be followed.
 */
export function selectPools(subject: Subject, pools: PoolsByName, refused: Offer["refused"] = new Map()): Selection {
  const known: Known = { names: new Map(), matches: new Map(), lists: new Map(), matched: new Map() };
  const offer: Offer = { pools, refused, known };
  const warnings: string[] = [];
  const nics =
    selectGenerated(subject, offer, warnings) ??
    selectByInterfaces(subject, offer, warnings) ??
    selectByAnnotation(subject, offer, warnings) ??
    selectByNamespace(subject, offer, warnings) ??
    selectByConfiguration(subject, offer, warnings) ??
    selectDefaults(subject, offer, warnings);
  return { nics, warnings };
}

/**
 * Returns the pools that were generated for the pod's workload, and no others; undefined if the pod names no Subnets.
 */
function selectGenerated(subject: Subject, offer: Offer, warnings: string[]): NicDemand[] | undefined {
  const { subnet, subnets } = subject.pod?.annotations ?? {};
  if (subnet === undefined && subnets === undefined) return undefined;
  const key = subnets === undefined ? SUBNET : SUBNETS;
  if (!subject.vendorConf.enableSubnet) {
    warnings.push(`annotation "${key}" is ignored because enableSubnet is false`);
    return undefined;
  }
  const application = requireApplication(key, subject);
  const entries = subnets ?? [{ ...subnet, interface: subject.ifName }];
  const nics = entries.map((entry, index) => {
    const path = subnets === undefined ? "" : `[${index}]`;
    requireFamilies(key, path, entry, subject.vendorConf);
    const rule = `annotation "${key}"${path}`;
    const demand = (family: Family, names: readonly string[]): FamilyDemand => {
      const request = { application, ifName: entry.interface, family, subnets: names };
      return { family, candidates: candidatesOf(request, subject, offer.pools), generated: { application, request } };
    };
    const families = demandFamilies({ rule, what: "Subnets", named: entry, demand }, subject, warnings);
    return { ifName: entry.interface, rule, cleanGateway: false, families };
  });
  requireEntry(key, nics, subject);
  return nics;
}

function candidatesOf(request: SubnetPoolRequest, subject: Subject, pools: PoolsByName): Candidate[] {
  return findSubnetPool(pools, request).map((pool): Candidate => {
    const objection = refuseOwnPool(pool, subject, request.family);
    return { name: pool.name, pool, ...objection };
  });
}

/** Throws CniError 102 if the pod belongs to no workload, so that no pools are generated for it. */
function requireApplication(key: string, { pod }: Subject): PoolOwner {
  const belonging = pod?.application;
  if (belonging?.kind === "application") return belonging.application;
  const why =
    belonging === undefined
      ? "generated pools need cluster mode (berth-agent --kubeconfig or --in-cluster), in which a controller makes them"
      : `generated pools belong to workloads, and ${belonging.reason}`;
  throw new CniError(
    ErrorCode.InvalidAnnotation,
    `Annotation "${key}" cannot be followed: ${why}; name pools with "${IPPOOL}"`,
  );
}

function selectByInterfaces(subject: Subject, offer: Offer, warnings: string[]): NicDemand[] | undefined {
  const annotations = subject.pod?.annotations ?? {};
  const { ippools: entries } = annotations;
  if (entries === undefined) return undefined;
  const nics = entries.map((entry, index) => {
    const path = `[${index}]`;
    requireFamilies(IPPOOLS, path, entry, subject.vendorConf);
    const rule = `annotation "${IPPOOLS}"${path}`;
    return {
      ifName: entry.interface ?? nicNameAt(index, annotations, subject.firstNic),
      rule,
      cleanGateway: entry.cleangateway,
      families: demandNamed(rule, entry, subject, offer, warnings),
    };
  });
  const twice = nics.find(({ ifName }, index) => nics.findIndex((other) => other.ifName === ifName) !== index);
  if (twice !== undefined) {
    throw new CniError(
      ErrorCode.InvalidAnnotation,
      `Annotation "${IPPOOLS}" has two entries for interface "${twice.ifName}", which the annotation of networks names; name the interfaces`,
    );
  }
  requireEntry(IPPOOLS, nics, subject);
  return nics;
}

function requireEntry(key: string, nics: readonly NicDemand[], { ifName }: Subject): void {
  if (nics.some((nic) => nic.ifName === ifName)) return;
  const listed = nics.map((nic) => nic.ifName).join(", ");
  throw new CniError(
    ErrorCode.InvalidAnnotation,
    `Annotation "${key}" has no entry for interface "${ifName}"; it lists ${listed}`,
  );
}

function selectByAnnotation(subject: Subject, offer: Offer, warnings: string[]): NicDemand[] | undefined {
  const entry = subject.pod?.annotations.ippool;
  if (entry === undefined) return undefined;
  requireFamilies(IPPOOL, "", entry, subject.vendorConf);
  return oneNic(`annotation "${IPPOOL}"`, entry, subject, offer, warnings);
}

function selectByNamespace(subject: Subject, offer: Offer, warnings: string[]): NicDemand[] | undefined {
  const named = subject.namespace?.annotations;
  if (named === undefined || !namesAny(named)) return undefined;
  const given = FAMILIES.filter((family) => namedFor(named, family) !== undefined);
  const keys = given.map((family) => `"${ANNOTATION_PREFIX}default-ipv${family}-ippool"`);
  return oneNic(`namespace annotation ${keys.join(" and ")}`, named, subject, offer, warnings);
}

function selectByConfiguration(subject: Subject, offer: Offer, warnings: string[]): NicDemand[] | undefined {
  const { default_ipv4_ippool, default_ipv6_ippool } = subject.ipamConf;
  const named = { ipv4: default_ipv4_ippool, ipv6: default_ipv6_ippool };
  if (!namesAny(named)) return undefined;
  return oneNic("the CNI configuration", named, subject, offer, warnings);
}

function selectDefaults(subject: Subject, offer: Offer, warnings: string[]): NicDemand[] {
  const defaults = [...(offer.pools.defaults?.() ?? offer.pools.values())]
    .filter(({ spec }) => spec.default)
    .sort((a, b) => tieRank(a) - tieRank(b) || (a.name < b.name ? -1 : 1));
  const named = {
    ipv4: namesOf(defaults, 4),
    ipv6: namesOf(defaults, 6),
  };
  if (!namesAny(named)) {
    throw new CniError(
      ErrorCode.NoPoolMatches,
      `No pool is selected for interface "${subject.ifName}": no annotation, namespace default or CNI configuration ` +
        "names one, and no IPPool has spec.default: true",
    );
  }
  return oneNic("pools with spec.default: true", named, subject, offer, warnings);
}

function namesOf(pools: readonly IpPool[], family: Family): string[] | undefined {
  const names = pools.filter(({ spec }) => spec.family === family).map(({ name }) => name);
  return names.length > 0 ? names : undefined;
}

function namesAny(named: NamedPools): boolean {
  return FAMILIES.some((family) => namedFor(named, family) !== undefined);
}

function namedFor(named: NamedPools, family: Family): readonly string[] | undefined {
  return family === 4 ? named.ipv4 : named.ipv6;
}

function oneNic(rule: string, named: NamedPools, subject: Subject, offer: Offer, warnings: string[]): NicDemand[] {
  const families = demandNamed(rule, named, subject, offer, warnings);
  return [{ ifName: subject.ifName, rule, cleanGateway: false, families }];
}

function demandNamed(
  rule: string,
  named: NamedPools,
  subject: Subject,
  offer: Offer,
  warnings: string[],
): FamilyDemand[] {
  const demand = (family: Family, names: readonly string[]): FamilyDemand => {
    const key = `${family} ${names.join(" ")}`;
    const candidates = offer.known.lists.get(key) ?? expandNames({ rule, names, family }, subject, offer);
    offer.known.lists.set(key, candidates);
    return { family, candidates };
  };
  return demandFamilies({ rule, what: "pools", named, demand }, subject, warnings);
}

/** The pools that one rule names for one NIC. */
interface Naming {
  readonly rule: string;
  readonly what: "pools" | "Subnets";
  readonly named: NamedPools;
  readonly demand: (family: Family, names: readonly string[]) => FamilyDemand;
}

function demandFamilies({ rule, what, named, demand }: Naming, subject: Subject, warnings: string[]): FamilyDemand[] {
  const { enableIPv4, enableIPv6 } = subject.vendorConf;
  const families = FAMILIES.flatMap((family): FamilyDemand[] => {
    const names = namedFor(named, family);
    const enabled = family === 4 ? enableIPv4 : enableIPv6;
    const kind = familyName(family);
    if (names === undefined) {
      const one = what === "pools" ? "pool" : "Subnet";
      if (enabled) warnings.push(`${rule} names no ${kind} ${one}: the NIC gets no ${kind} address`);
      return [];
    }
    if (!enabled) {
      warnings.push(`${rule} names ${kind} ${what}, which are ignored because enable${kind} is false`);
      return [];
    }
    return [demand(family, names)];
  });
  if (families.length === 0) {
    throw new CniError(
      ErrorCode.NoPoolMatches,
      `No pool is selected for interface "${subject.ifName}": ${rule} names ${what} of disabled families only; ${remedy(subject.vendorConf)}`,
    );
  }
  return families;
}

function remedy({ enableIPv4, enableIPv6 }: Subject["vendorConf"]): string {
  const settings = [...(enableIPv4 ? [] : ["enableIPv4"]), ...(enableIPv6 ? [] : ["enableIPv6"])];
  return `name pools of another family, or set ${settings.join(" or ")}: true in vendor-conf`;
}

/** One list of names of a rule. */
interface NameList {
  readonly rule: string;
  readonly names: readonly string[];
  readonly family: Family;
}

/** Replaces patterns by the matching pools, in name order. Each pool counts once, where it is named first. */
function expandNames({ rule, names, family }: NameList, subject: Subject, offer: Offer): readonly Candidate[] {
  const expanded = new Map<string, Candidate>();
  for (const name of names) {
    const found = isPattern(name)
      ? matchPools(name, family, subject, offer)
      : [evaluatePool(name, family, subject, offer)];
    if (found.length === 0) {
      const text = `Pattern "${name}" in ${rule} matches no ${familyName(family)} pool`;
      throw new CniError(ErrorCode.InvalidAnnotation, text);
    }
    for (const candidate of found) if (!expanded.has(candidate.name)) expanded.set(candidate.name, candidate);
  }
  return [...expanded.values()];
}

function matchPools(pattern: string, family: Family, subject: Subject, offer: Offer): readonly Candidate[] {
  const { matches } = offer.known;
  const key = `${family} ${pattern}`;
  const known = matches.get(key);
  if (known !== undefined) return known;
  const names = sortedNames(family, offer).filter(compilePattern(pattern));
  const found = names.map((name) => evaluateMatched(name, family, subject, offer));
  matches.set(key, found);
  return found;
}

function evaluateMatched(name: string, family: Family, subject: Subject, offer: Offer): Candidate {
  const { matched } = offer.known;
  const key = `${family} ${name}`;
  const known = matched.get(key) ?? { ...evaluatePool(name, family, subject, offer), isMatched: true };
  matched.set(key, known);
  return known;
}

function sortedNames(family: Family, { pools, known }: Offer): readonly string[] {
  const before = known.names.get(family);
  if (before !== undefined) return before;
  const names = [...pools.values()].filter(({ spec }) => spec.family === family).map(({ name }) => name);
  known.names.set(family, names.sort());
  return names;
}

function evaluatePool(name: string, family: Family, subject: Subject, { pools, refused }: Offer): Candidate {
  const pool = pools.get(name);
  if (pool !== undefined) return { name, pool, ...refusePool(pool, subject, family) };
  const refusal = refused.get(name);
  // The reason may name another pool.
  return refusal === undefined ? { name, refusal: "does not exist" } : { name, refusal, brief: "cannot be used" };
}
