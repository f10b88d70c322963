/**
 * Which pools a NIC may take its addresses from: the first rule that is present decides alone
 * (docs/selection.md, "Order of precedence").
 * Called by the agent for ADD and explain.
 * Effects: none.
 */
import { CniError, ErrorCode } from "../cni/error.ts";
import { ANNOTATION_PREFIX, requireFamilies } from "../config/annotations.ts";
import { isPattern, matchPattern } from "../config/pattern.ts";
import { FAMILIES, type Family } from "../net/ip.ts";
import type { IpPool } from "../resources/ip-pool.ts";
import { refusePool, tieRank } from "./filters.ts";
import {
  type Candidate,
  type FamilyDemand,
  familyName,
  type NicDemand,
  type Selection,
  type Subject,
} from "./model.ts";

const SUBNET = `${ANNOTATION_PREFIX}subnet`;
const SUBNETS = `${ANNOTATION_PREFIX}subnets`;
const IPPOOL = `${ANNOTATION_PREFIX}ippool`;
const IPPOOLS = `${ANNOTATION_PREFIX}ippools`;

export type PoolsByName = ReadonlyMap<string, IpPool>;

/** Pool names or patterns by family, as one rule gives them. */
interface NamedPools {
  readonly ipv4?: readonly string[] | undefined;
  readonly ipv6?: readonly string[] | undefined;
}

/** Pools, and why others that exist may not be used, by name. */
interface Offer {
  readonly pools: PoolsByName;
  readonly refused: ReadonlyMap<string, string>;
}

/** Chooses the candidates; `refused` has the reasons of pools that exist and may not be used. Throws CniError 100 when no rule names a pool, 102 when an annotation cannot be followed. */
export function selectPools(subject: Subject, pools: PoolsByName, refused: Offer["refused"] = new Map()): Selection {
  const offer = { pools, refused };
  const warnings: string[] = [];
  refuseSubnets(subject, warnings);
  const nics =
    selectByInterfaces(subject, offer, warnings) ??
    selectByAnnotation(subject, offer, warnings) ??
    selectByNamespace(subject, offer, warnings) ??
    selectByConfiguration(subject, offer, warnings) ??
    selectDefaults(subject, offer, warnings);
  return { nics, warnings };
}

/** Generated pools need the controller. */
function refuseSubnets({ pod, vendorConf }: Subject, warnings: string[]): void {
  const { subnet, subnets } = pod?.annotations ?? {};
  if (subnet === undefined && subnets === undefined) return;
  const name = subnets === undefined ? SUBNET : SUBNETS;
  if (!vendorConf.enableSubnet) {
    warnings.push(`annotation "${name}" is ignored because enableSubnet is false`);
    return;
  }
  throw new CniError(
    ErrorCode.InvalidAnnotation,
    `Annotation "${name}" asks for a pool generated from a Subnet, which needs the controller of a cluster; ` +
      `name pools with "${IPPOOL}" instead`,
  );
}

function selectByInterfaces(subject: Subject, offer: Offer, warnings: string[]): NicDemand[] | undefined {
  const entries = subject.pod?.annotations.ippools;
  if (entries === undefined) return undefined;
  const nics = entries.map((entry, index) => {
    const path = `[${index}]`;
    requireFamilies(IPPOOLS, path, entry, subject.vendorConf);
    const rule = `annotation "${IPPOOLS}"${path}`;
    return {
      ifName: entry.interface ?? nicNameAt(index, subject),
      rule,
      cleanGateway: entry.cleangateway,
      families: demandFamilies(rule, entry, subject, offer, warnings),
    };
  });
  const twice = nics.find(({ ifName }, index) => nics.findIndex((other) => other.ifName === ifName) !== index);
  if (twice !== undefined) {
    throw new CniError(
      ErrorCode.InvalidAnnotation,
      `Annotation "${IPPOOLS}" has two entries for interface "${twice.ifName}", which the annotation of networks names; name the interfaces`,
    );
  }
  if (!nics.some(({ ifName }) => ifName === subject.ifName)) {
    const listed = nics.map(({ ifName }) => ifName).join(", ");
    throw new CniError(
      ErrorCode.InvalidAnnotation,
      `Annotation "${IPPOOLS}" has no entry for interface "${subject.ifName}"; it lists ${listed}`,
    );
  }
  return nics;
}

/** Without names the order of the entries is the order of the NICs. */
function nicNameAt(index: number, { firstNic, pod }: Subject): string {
  if (index === 0) return firstNic;
  return pod?.annotations.networks?.[index - 1]?.interface ?? `net${index}`;
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
  const defaults = [...offer.pools.values()]
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
  const families = demandFamilies(rule, named, subject, offer, warnings);
  return [{ ifName: subject.ifName, rule, cleanGateway: false, families }];
}

function demandFamilies(
  rule: string,
  named: NamedPools,
  subject: Subject,
  offer: Offer,
  warnings: string[],
): FamilyDemand[] {
  const { enableIPv4, enableIPv6 } = subject.vendorConf;
  const families = FAMILIES.flatMap((family): FamilyDemand[] => {
    const names = namedFor(named, family);
    const enabled = family === 4 ? enableIPv4 : enableIPv6;
    if (names === undefined) {
      if (enabled)
        warnings.push(`${rule} names no ${familyName(family)} pool: the NIC gets no ${familyName(family)} address`);
      return [];
    }
    if (!enabled) {
      warnings.push(
        `${rule} names ${familyName(family)} pools, which are ignored because enable${familyName(family)} is false`,
      );
      return [];
    }
    return [
      {
        family,
        candidates: expandNames(rule, names, family, offer.pools).map((name) => judge(name, family, subject, offer)),
      },
    ];
  });
  if (families.length === 0) {
    throw new CniError(
      ErrorCode.NoPoolMatches,
      `No pool is selected for interface "${subject.ifName}": ${rule} names pools of disabled families only`,
    );
  }
  return families;
}

/** Patterns become the names they match, in name order; each name counts once, where it stands first. */
function expandNames(rule: string, names: readonly string[], family: Family, pools: PoolsByName): string[] {
  const expanded = names.flatMap((name) => {
    if (!isPattern(name)) return [name];
    const matching = [...pools.values()]
      .filter((pool) => pool.spec.family === family && matchPattern(name, pool.name))
      .map((pool) => pool.name)
      .sort();
    if (matching.length === 0) {
      const why = `pattern "${name}" in ${rule} matches no ${familyName(family)} pool`;
      throw new CniError(ErrorCode.InvalidAnnotation, why.charAt(0).toUpperCase() + why.slice(1));
    }
    return matching;
  });
  return [...new Set(expanded)];
}

function judge(name: string, family: Family, subject: Subject, { pools, refused }: Offer): Candidate {
  const pool = pools.get(name);
  if (pool === undefined) return { name, refusal: refused.get(name) ?? "does not exist" };
  const refusal = refusePool(pool, subject, family);
  return refusal === undefined ? { name, pool } : { name, pool, refusal };
}
