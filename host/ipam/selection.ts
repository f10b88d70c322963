/**
 * Which pools a NIC may take its addresses from: the first rule that is present decides alone
 * (docs/selection.md, "Order of precedence").
 */
import { CniError, ErrorCode } from "../cni/error.ts";
import {
  ANNOTATION_PREFIX,
  decodeNamespaceAnnotations,
  IPS_ANNOTATION,
  isEnabled,
  type PodAnnotations,
  requireFamilies,
} from "../config/annotations.ts";
import { compilePattern, isPattern } from "../config/pattern.ts";
import { FAMILIES, type Family } from "../net/ip.ts";
import type { PoolOwner } from "../resources/fields/subnet-pool.ts";
import type { IpPool } from "../resources/ip-pool.ts";
import type { PoolsByName } from "../resources/pools-by-name.ts";
import { nicNameAt } from "./announced-nics.ts";
import { refuseOwnPool, refusePool, tieRank } from "./filters.ts";
import type { Candidate, FamilyDemand, NicDemand, Selection, Subject } from "./model.ts";
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

/** A selection in progress. */
interface Selecting {
  readonly subject: Subject;
  readonly pools: PoolsByName;
  /** By name: why other existing pools cannot be used. */
  readonly refused: ReadonlyMap<string, string>;
  readonly warnings: string[];
  /** The pools that the namespace's annotations name. */
  readonly ofNamespace: NamedPools;
  // Cached during this selection: a tenant may repeat a pattern for many NICs, and each match compares all pools.
  /** By family and pattern. */
  readonly matches: Map<string, readonly Candidate[]>;
  /** By family and list of names. */
  readonly lists: Map<string, readonly Candidate[]>;
  /** The pools that patterns found, by family and name: patterns of one annotation may all match the same pools. */
  readonly matched: Map<string, Candidate>;
}

/**
 * Chooses the candidates; `refused` has the reasons of existing pools that cannot be used. Throws CniError 100 if no
 * rule names a pool, 102 if an annotation cannot be followed; ConfigError for an annotation of the namespace.
 */
export function selectPools(
  subject: Subject,
  pools: PoolsByName,
  refused: Selecting["refused"] = new Map(),
): Selection {
  const { pod, namespace, vendorConf } = subject;
  const { subnet, subnets, ippools, ips = [] } = pod?.annotations ?? {};
  const ofNamespace = namespace === undefined ? {} : decodeNamespaceAnnotations(namespace.annotations, vendorConf);
  const warnings: string[] = [];
  for (const family of FAMILIES)
    if (!isEnabled(family, vendorConf) && [...ips.values()].flat().some((entry) => entry[`ipv${family}`] !== undefined))
      warnings.push(
        `annotation "${IPS_ANNOTATION}" names IPv${family} addresses, which are ignored because enableIPv${family} is false`,
      );
  const caches = { matches: new Map(), lists: new Map(), matched: new Map() };
  const selecting: Selecting = { subject, pools, refused, ofNamespace, warnings, ...caches };
  if (subnet !== undefined || subnets !== undefined) {
    const key = subnets === undefined ? SUBNET : SUBNETS;
    if (vendorConf.enableSubnet) return { nics: selectGenerated(key, selecting), warnings };
    warnings.push(`annotation "${key}" is ignored because enableSubnet is false`);
  }
  if (ippools !== undefined) return { nics: selectByInterfaces(ippools, selecting), warnings };
  const naming = findNaming(selecting);
  const families = demandPools(naming, selecting);
  return { nics: [{ ifName: subject.ifName, rule: naming.rule, cleanGateway: false, families }], warnings };
}

/** Returns the pools that were generated for the pod's workload, and no others. */
function selectGenerated(key: string, selecting: Selecting): NicDemand[] {
  const { subject, pools } = selecting;
  const { subnet, subnets } = subject.pod?.annotations ?? {};
  const application = requireApplication(key, subject);
  const entries = subnets ?? [{ ...subnet, interface: subject.ifName }];
  const nics = entries.map((entry, index) => {
    const path = subnets === undefined ? "" : `[${index}]`;
    requireFamilies(key, path, entry, subject.vendorConf);
    const rule = `annotation "${key}"${path}`;
    const families = listsOf({ rule, what: "Subnet", named: entry }, selecting).map(({ family, names }) => {
      const generated = { application, ifName: entry.interface, family, subnets: names };
      return { family, candidates: candidatesOf(generated, subject, pools), generated };
    });
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

function selectByInterfaces(entries: NonNullable<PodAnnotations["ippools"]>, selecting: Selecting): NicDemand[] {
  const { subject } = selecting;
  const annotations = subject.pod?.annotations ?? {};
  const nics = entries.map((entry, index) => {
    const path = `[${index}]`;
    requireFamilies(IPPOOLS, path, entry, subject.vendorConf);
    const rule = `annotation "${IPPOOLS}"${path}`;
    return {
      ifName: entry.interface ?? nicNameAt(index, annotations, subject.firstNic),
      rule,
      cleanGateway: entry.cleangateway,
      families: demandPools({ rule, named: entry }, selecting),
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

function findNaming({ subject, ofNamespace, pools }: Selecting): Naming {
  const { pod, ipamConf, vendorConf } = subject;
  const entry = pod?.annotations.ippool;
  if (entry !== undefined) {
    requireFamilies(IPPOOL, "", entry, vendorConf);
    return { rule: `annotation "${IPPOOL}"`, named: entry };
  }
  const { ipv4, ipv6 } = ofNamespace;
  if (ipv4 !== undefined || ipv6 !== undefined) {
    const families = FAMILIES.filter((family) => (family === 4 ? ipv4 : ipv6) !== undefined);
    const keys = families.map((family) => `"${ANNOTATION_PREFIX}default-ipv${family}-ippool"`);
    return { rule: `namespace annotation ${keys.join(" and ")}`, named: ofNamespace };
  }
  const configured = { ipv4: ipamConf.default_ipv4_ippool, ipv6: ipamConf.default_ipv6_ippool };
  if (configured.ipv4 !== undefined || configured.ipv6 !== undefined)
    return { rule: "the CNI configuration", named: configured };
  return { rule: "pools with spec.default: true", named: requireDefaults(subject, pools) };
}

function requireDefaults({ ifName }: Subject, pools: PoolsByName): NamedPools {
  const defaults = [...pools.defaults].sort((a, b) => tieRank(a) - tieRank(b) || (a.name < b.name ? -1 : 1));
  if (defaults.length === 0) {
    throw new CniError(
      ErrorCode.NoPoolMatches,
      `No pool is selected for interface "${ifName}": no annotation, namespace default or CNI configuration ` +
        "names one, and no IPPool has spec.default: true",
    );
  }
  const { ipv4, ipv6 } = Object.groupBy(defaults, ({ spec }) => `ipv${spec.family}` as const);
  return { ipv4: ipv4?.map(({ name }) => name), ipv6: ipv6?.map(({ name }) => name) };
}

function demandPools(naming: Naming, selecting: Selecting): FamilyDemand[] {
  const { lists } = selecting;
  return listsOf(naming, selecting).map(({ family, names }) => {
    const key = `${family} ${names.join(" ")}`;
    const candidates = lists.get(key) ?? expandNames({ rule: naming.rule, names, family }, selecting);
    lists.set(key, candidates);
    return { family, candidates };
  });
}

/** The pools that one rule names for one NIC. */
interface Naming {
  readonly rule: string;
  /** Default: pools. */
  readonly what?: "pool" | "Subnet";
  readonly named: NamedPools;
}

/** Returns the names of the enabled families. Throws CniError 100 if there are none. */
function listsOf({ rule, what = "pool", named }: Naming, { subject, warnings }: Selecting) {
  const lists: Omit<NameList, "rule">[] = [];
  for (const family of FAMILIES) {
    const names = named[`ipv${family}`];
    const isServed = isEnabled(family, subject.vendorConf);
    const kind = `IPv${family}`;
    if (names !== undefined && isServed) lists.push({ names, family });
    else if (names !== undefined)
      warnings.push(`${rule} names ${kind} ${what}s, which are ignored because enable${kind} is false`);
    else if (isServed) warnings.push(`${rule} names no ${kind} ${what}: the NIC gets no ${kind} address`);
  }
  if (lists.length === 0) {
    throw new CniError(
      ErrorCode.NoPoolMatches,
      `No pool is selected for interface "${subject.ifName}": ${rule} names ${what}s of disabled families only; ${remedy(subject.vendorConf)}`,
    );
  }
  return lists;
}

function remedy(vendorConf: Subject["vendorConf"]): string {
  const settings = FAMILIES.flatMap((family) => (isEnabled(family, vendorConf) ? [] : `enableIPv${family}`));
  return `name pools of another family, or set ${settings.join(" or ")}: true in vendor-conf`;
}

/** One list of names of a rule. */
interface NameList {
  readonly rule: string;
  readonly names: readonly string[];
  readonly family: Family;
}

/** Replaces patterns by the matching pools, in name order. Each pool counts once, where it is named first. */
function expandNames({ rule, names, family }: NameList, selecting: Selecting): readonly Candidate[] {
  const expanded = new Map<string, Candidate>();
  for (const name of names) {
    const isOne = selecting.pools.has(name) || !isPattern(name);
    const found = isOne ? [evaluatePool(name, family, selecting)] : matchPools(name, family, selecting);
    if (found.length === 0) {
      const text = `Pattern "${name}" in ${rule} matches no IPv${family} pool`;
      throw new CniError(ErrorCode.InvalidAnnotation, text);
    }
    for (const candidate of found) if (!expanded.has(candidate.name)) expanded.set(candidate.name, candidate);
  }
  return [...expanded.values()];
}

function matchPools(pattern: string, family: Family, selecting: Selecting): readonly Candidate[] {
  const { pools, matches, matched } = selecting;
  const evaluate = ({ name }: IpPool): Candidate =>
    matched.getOrInsertComputed(`${family} ${name}`, () => ({
      ...evaluatePool(name, family, selecting),
      isMatched: true,
    }));
  return matches.getOrInsertComputed(`${family} ${pattern}`, () => {
    const isMatch = compilePattern(pattern);
    return [...pools.values()].filter(({ name, spec }) => spec.family === family && isMatch(name)).map(evaluate);
  });
}

function evaluatePool(name: string, family: Family, { subject, pools, refused }: Selecting): Candidate {
  const pool = pools.get(name);
  if (pool !== undefined) return { name, pool, ...refusePool(pool, subject, family) };
  const refusal = refused.get(name);
  // The reason may name another pool.
  return refusal === undefined ? { name, refusal: "does not exist" } : { name, refusal, brief: "cannot be used" };
}

/** Returns the first demand whose candidates were all passed over. */
export function findUnservable(nics: readonly NicDemand[]): { nic: NicDemand; demand: FamilyDemand } | undefined {
  const demands = nics.flatMap((nic) => nic.families.map((demand) => ({ nic, demand })));
  return demands.find(({ demand }) => demand.candidates.every(({ refusal }) => refusal !== undefined));
}
