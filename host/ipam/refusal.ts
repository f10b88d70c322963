/**
 * The text of a refusal: the candidate pools with the reasons why they were passed over. The pod's owner sees counts
 * and reasons, the node's log names more of them, and `berthctl explain` shows every candidate (passed-over.ts).
 */
import { ErrorCode } from "../cni/error.ts";
import type { Candidate, FamilyDemand, NicDemand } from "./model.ts";
import { describePassedOver, type Reader } from "./passed-over.ts";
import { poolsOf } from "./pick.ts";
import { describeAbsence, describeSupply, PoolShortage } from "./subnet-capacity.ts";

/** Most lines of a refusal's `details`; a last line counts those left out. */
export const MAX_DETAIL_LINES = 40;

/** Reasons found by the search for an address, by pool name. */
type Shortages = ReadonlyMap<string, string>;

/**
 * Returns one line per NIC, family and candidate for the node's administrator, in the order in which they were
 * considered.
 */
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

/** Returns the first demand whose candidates were all passed over. */
export function findUnservable(nics: readonly NicDemand[]): { nic: NicDemand; demand: FamilyDemand } | undefined {
  for (const nic of nics) for (const demand of nic.families) if (poolsOf(demand).length === 0) return { nic, demand };
  return undefined;
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
  readonly shortages?: Shortages;
}

/** Returns code 100: every candidate of one family was passed over. */
export function noPoolMatches(unserved: Unserved): PoolShortage {
  return refuse(ErrorCode.NoPoolMatches, "No pool may serve", unserved);
}

/** Returns code 101: none of the remaining pools has a free address. */
export function poolsExhausted(unserved: Unserved): PoolShortage {
  return refuse(ErrorCode.PoolExhausted, "No address is free for", unserved);
}

function refuse(code: ErrorCode, what: string, { nics, nic, demand, shortages = new Map() }: Unserved): PoolShortage {
  const head = `${what} IPv${demand.family} of interface "${nic.ifName}" (${nic.rule})`;
  const textFor = (reader: Reader): string =>
    `${head}: ${describeReasons(demand, { shortages, reader, separator: " " }).join("; ")}`;
  const details = nics.flatMap((each) => detailsOf(each, shortages));
  const leftOut = details.length - MAX_DETAIL_LINES;
  const shown = leftOut > 0 ? [...details.slice(0, MAX_DETAIL_LINES), `and ${leftOut} more lines`] : details;
  const facts = { ifName: nic.ifName, demand, details: shown.join("\n"), forLog: textFor("administrator") };
  return new PoolShortage(code, textFor("owner"), facts);
}

interface Wording {
  readonly shortages: Shortages;
  readonly reader: Reader;
  readonly separator: string;
}

function describeReasons({ candidates, generated }: FamilyDemand, wording: Wording): string[] {
  const { shortages, reader, separator } = wording;
  if (generated !== undefined && candidates.length === 0) return [describeAbsence(generated)];
  return describePassedOver(candidates, reader, {
    reasonOf: ({ name }) => shortages.get(name) ?? "was not needed",
    shortReasonOf: ({ name }) => (shortages.has(name) ? "has no free address" : "was not needed"),
    separator,
    more: supplyOf,
  });
}

/** Returns the lines of one NIC, for the pod's owner. */
function detailsOf(nic: NicDemand, shortages: Shortages): string[] {
  const lines = nic.families.flatMap((demand) => {
    const reasons = describeReasons(demand, { shortages, reader: "owner", separator: ": " });
    return reasons.map((reason) => `${nic.ifName} IPv${demand.family} ${reason}`);
  });
  return [`${nic.ifName}: by ${nic.rule}`, ...lines];
}
