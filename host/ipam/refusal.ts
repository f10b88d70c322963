/**
 * The text of a refusal: every candidate pool with the reason why it was passed over. The same text is the error of
 * ADD and the answer of `berthctl explain`.
 * Called by the agent.
 * Effects: none.
 */
import { CniError, ErrorCode } from "../cni/error.ts";
import { describeAbsence, describeSupply } from "./generated/supply.ts";
import { type Candidate, type FamilyDemand, familyName, type NicDemand } from "./model.ts";

/** Reasons that only the search for an address could find, by pool name. */
export type Shortages = ReadonlyMap<string, string>;

/** No pool has an address for one demand. A refusal as it is; with generated pools one that may pass. */
export class PoolShortage extends CniError {
  readonly ifName: string;
  readonly demand: FamilyDemand;

  constructor(code: ErrorCode, message: string, of: { ifName: string; demand: FamilyDemand; details: string }) {
    super(code, message, { details: of.details });
    this.ifName = of.ifName;
    this.demand = of.demand;
  }
}

/** One line per NIC, family and candidate, in the order in which they were considered. */
export function describeDemand(nic: NicDemand, shortages: Shortages): string {
  const lines = nic.families.flatMap(({ family, candidates, generated }) => {
    const what = `${nic.ifName} ${familyName(family)}`;
    if (generated !== undefined && candidates.length === 0) return [`${what}: ${describeAbsence(generated)}`];
    return candidates.map((candidate) => {
      const reason = candidate.refusal ?? shortages.get(candidate.name) ?? "fits";
      return `${what} pool "${candidate.name}": ${reason}${supplyOf(candidate)}`;
    });
  });
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

/** `, has 3 of 10 addresses wanted (…)` of a generated pool that may serve. */
function supplyOf({ pool, refusal }: Candidate): string {
  const supply = refusal === undefined ? describeSupply(pool) : undefined;
  return supply === undefined ? "" : `, ${supply}`;
}

/** Code 100: each candidate of one family was passed over before any address was looked for. */
export function noPoolMatches(nics: readonly NicDemand[], nic: NicDemand, demand: FamilyDemand): PoolShortage {
  return refuse(ErrorCode.NoPoolMatches, "No pool may serve", nics, nic, demand, new Map());
}

/** Code 101: pools were left, but none of them has an address. */
export function poolsExhausted(
  nics: readonly NicDemand[],
  nic: NicDemand,
  demand: FamilyDemand,
  shortages: Shortages,
): PoolShortage {
  return refuse(ErrorCode.PoolExhausted, "No address is free for", nics, nic, demand, shortages);
}

function refuse(
  code: ErrorCode,
  what: string,
  nics: readonly NicDemand[],
  nic: NicDemand,
  demand: FamilyDemand,
  shortages: Shortages,
): PoolShortage {
  const { family, candidates, generated } = demand;
  const reasons = candidates.map((candidate) => {
    const { name, refusal } = candidate;
    return `pool "${name}" ${refusal ?? shortages.get(name) ?? "was not needed"}${supplyOf(candidate)}`;
  });
  if (generated !== undefined && candidates.length === 0) reasons.push(describeAbsence(generated));
  const message = `${what} ${familyName(family)} of interface "${nic.ifName}" (${nic.rule}): ${reasons.join("; ")}`;
  const details = nics.map((each) => describeDemand(each, shortages)).join("\n");
  return new PoolShortage(code, message, { ifName: nic.ifName, demand, details });
}
