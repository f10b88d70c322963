/**
 * The text of a refusal: the candidate pools with the reasons why they were passed over, as phrases whose number does
 * not grow with the number of pools. The pod's owner reads why named pools were rejected, and how many a pattern found;
 * only the node's administrator reads names of other namespaces' objects. `berthctl explain` shows every candidate.
 */
import { ErrorCode } from "../cni/error.ts";
import type { Candidate, FamilyDemand, NicDemand } from "./model.ts";
import { describeAbsence, describeSupply, PoolShortage } from "./subnet-capacity.ts";

/** Most candidate pools that a refusal names to the pod. */
const MAX_NAMED_POOLS = 8;

/** Most candidate pools that the node's log names for a refusal. `berthctl explain` names all. */
const MAX_LOGGED_POOLS = 32;

/** Most different reasons that a refusal counts; pools with others are counted together. */
const MAX_COUNTED_REASONS = 8;

/** Most lines of a refusal's `details`; a last line counts those left out. */
export const MAX_DETAIL_LINES = 40;

/** Reasons found by the search for an address, by pool name. */
type Shortages = ReadonlyMap<string, string>;

/** Returns one line per NIC, family and candidate, in the order considered, for the node's administrator. */
export function describeDemand(nic: NicDemand, shortages: Shortages): string {
  const lines = nic.families.flatMap(({ family, candidates, generated }) => {
    const what = `${nic.ifName} IPv${family}`;
    if (generated !== undefined && candidates.length === 0) return [`${what}: ${describeAbsence(generated)}`];
    return candidates.map((candidate) => {
      const reason = candidate.refusal ?? shortages.get(candidate.name) ?? "fits";
      return `${what} pool "${candidate.name}": ${reason}${supplyOf(candidate)}`;
    });
  });
  return [`${nic.ifName}: by ${nic.rule}`, ...lines].join("\n");
}

/** Returns `, has 3 of 10 addresses wanted (…)` for a generated pool that was not refused, else "". */
function supplyOf({ pool, refusal }: Candidate): string {
  const supply = refusal === undefined ? describeSupply(pool) : undefined;
  return supply === undefined ? "" : `, ${supply}`;
}

/** A demand that no pool serves. */
interface Unserved {
  /** All that were demanded together. */
  readonly nics: readonly NicDemand[];
  readonly nic: NicDemand;
  readonly demand: FamilyDemand;
  readonly reasons?: Shortages;
}

/** Returns code 100: every candidate of one family was passed over. */
export function noPoolMatches(unserved: Unserved): PoolShortage {
  return refuse(ErrorCode.NoPoolMatches, "No pool may serve", unserved);
}

/** Returns code 101: none of the remaining pools has a free address. */
export function poolsExhausted(unserved: Unserved): PoolShortage {
  return refuse(ErrorCode.PoolExhausted, "No address is free for", unserved);
}

function refuse(code: ErrorCode, what: string, { nics, nic, demand, reasons = new Map() }: Unserved): PoolShortage {
  const head = `${what} IPv${demand.family} of interface "${nic.ifName}" (${nic.rule})`;
  const textFor = (reader: Reader): string =>
    `${head}: ${describeReasons(demand, { reasons, reader, separator: " " }).join("; ")}`;
  const details = nics.flatMap((each) => detailsOf(each, reasons));
  const leftOut = details.length - MAX_DETAIL_LINES;
  const shown = leftOut > 0 ? [...details.slice(0, MAX_DETAIL_LINES), `and ${leftOut} more lines`] : details;
  const facts = { ifName: nic.ifName, demand, details: shown.join("\n"), forLog: textFor("administrator") };
  return new PoolShortage(code, textFor("owner"), facts);
}

interface Wording {
  readonly reasons: Shortages;
  readonly reader: Reader;
  readonly separator: string;
}

function describeReasons({ candidates, generated }: FamilyDemand, wording: Wording): string[] {
  const { reasons, reader, separator } = wording;
  if (generated !== undefined && candidates.length === 0) return [describeAbsence(generated)];
  return describePassedOver(candidates, reader, {
    reasonOf: ({ name }) => reasons.get(name) ?? "was not needed",
    shortReasonOf: ({ name }) => (reasons.has(name) ? "has no free address" : "was not needed"),
    separator,
    more: supplyOf,
  });
}

/** Returns the lines of one NIC, for the pod's owner. */
function detailsOf(nic: NicDemand, reasons: Shortages): string[] {
  const lines = nic.families.flatMap((demand) => {
    const texts = describeReasons(demand, { reasons, reader: "owner", separator: ": " });
    return texts.map((reason) => `${nic.ifName} IPv${demand.family} ${reason}`);
  });
  return [`${nic.ifName}: by ${nic.rule}`, ...lines];
}

/** The pod's owner, or the administrator of its node. */
export type Reader = "owner" | "administrator";

/** Texts for candidates that no filter rejects. */
interface PassedOverTexts {
  readonly reasonOf: (candidate: Candidate) => string;
  /** The reason without details of one pool, so that equal reasons can be counted. */
  readonly shortReasonOf: (candidate: Candidate) => string;
  /** Between a pool's name and its reason. */
  readonly separator: string;
  /** Text after the reason of a named pool. */
  readonly more?: (candidate: Candidate) => string;
}

/** Returns `pool "blue" is disabled (spec.disable)`, and for unnamed pools `600 pools: has no free address`. */
export function describePassedOver(candidates: readonly Candidate[], reader: Reader, texts: PassedOverTexts): string[] {
  const isOwner = reader === "owner";
  const nameable = isOwner ? candidates.filter(({ isMatched }) => isMatched !== true) : candidates;
  const named = nameable.slice(0, isOwner ? MAX_NAMED_POOLS : MAX_LOGGED_POOLS);
  const told = named.map((candidate) => {
    const { name, refusal = texts.reasonOf(candidate) } = candidate;
    return `pool "${name}"${texts.separator}${isOwner ? (candidate.brief ?? refusal) : refusal}${texts.more?.(candidate) ?? ""}`;
  });
  const others = candidates.length === named.length ? [] : candidates.filter((each) => !named.includes(each));
  return [...told, ...countReasons(others, texts.shortReasonOf, told.length > 0 ? "more " : "")];
}

function countReasons(candidates: readonly Candidate[], reasonOf: PassedOverTexts["reasonOf"], more: string): string[] {
  const groups = Map.groupBy(candidates, (each) => each.brief ?? each.refusal ?? reasonOf(each));
  const counts = [...groups].map(([reason, { length }]) => ({ reason, length })).sort((a, b) => b.length - a.length);
  const shown = counts.slice(0, MAX_COUNTED_REASONS).map(({ reason, length }) => `${pools(length, more)}: ${reason}`);
  const rest = counts.slice(MAX_COUNTED_REASONS).reduce((sum, { length }) => sum + length, 0);
  return rest === 0 ? shown : [...shown, `${pools(rest, more)}: other reasons`];
}

function pools(count: number, more: string): string {
  return `${count} ${more}${count === 1 ? "pool" : "pools"}`;
}
