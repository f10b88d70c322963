/**
 * The text of a refusal: every candidate pool with the reason why it was passed over. The same text is the error of
 * ADD and the answer of `berthctl explain`.
 * Called by the agent.
 * Effects: none.
 */
import { CniError, ErrorCode } from "../cni/error.ts";
import { type FamilyDemand, familyName, type NicDemand } from "./model.ts";

/** Reasons that only the search for an address could find, by pool name. */
export type Shortages = ReadonlyMap<string, string>;

/** One line per NIC, family and candidate, in the order in which they were considered. */
export function describeDemand(nic: NicDemand, shortages: Shortages): string {
  const lines = nic.families.flatMap(({ family, candidates }) =>
    candidates.map((candidate) => {
      const reason = candidate.refusal ?? shortages.get(candidate.name) ?? "fits";
      return `${nic.ifName} ${familyName(family)} pool "${candidate.name}": ${reason}`;
    }),
  );
  return [`${nic.ifName}: by ${nic.rule}`, ...lines].join("\n");
}

/** Demands that no pool may serve at all. */
export function findUnservable(nics: readonly NicDemand[]): { nic: NicDemand; demand: FamilyDemand } | undefined {
  for (const nic of nics) {
    const demand = nic.families.find(({ candidates }) => candidates.every(({ refusal }) => refusal !== undefined));
    if (demand !== undefined) return { nic, demand };
  }
  return undefined;
}

/** Code 100: each candidate of one family was passed over before any address was looked for. */
export function noPoolMatches(nics: readonly NicDemand[], nic: NicDemand, demand: FamilyDemand): CniError {
  return refuse(ErrorCode.NoPoolMatches, "No pool may serve", nics, nic, demand, new Map());
}

/** Code 101: pools were left, but none of them has an address. */
export function poolsExhausted(
  nics: readonly NicDemand[],
  nic: NicDemand,
  demand: FamilyDemand,
  shortages: Shortages,
): CniError {
  return refuse(ErrorCode.PoolExhausted, "No address is free for", nics, nic, demand, shortages);
}

function refuse(
  code: ErrorCode,
  what: string,
  nics: readonly NicDemand[],
  nic: NicDemand,
  demand: FamilyDemand,
  shortages: Shortages,
): CniError {
  const reasons = demand.candidates.map(
    ({ name, refusal }) => `pool "${name}" ${refusal ?? shortages.get(name) ?? "was not needed"}`,
  );
  const message = `${what} ${familyName(demand.family)} of interface "${nic.ifName}" (${nic.rule}): ${reasons.join("; ")}`;
  return new CniError(code, message, { details: nics.map((each) => describeDemand(each, shortages)).join("\n") });
}
