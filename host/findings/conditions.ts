/**
 * The conditions of pools, Subnets, ReservedIPs and the Coordinator, and the findings in them. The controller writes
 * its findings as conditions; the finding's id is its reason.
 */
import { documentation } from "../lib/documentation.ts";
import type { Finding } from "../records/finding.ts";
import type { Condition } from "../resources/status.ts";
import { error, warning } from "./problem.ts";

/** The reasons of conditions that are false because nothing is wrong. */
export const WELL = {
  Stalled: "NotStalled",
  InvalidValues: "AllValid",
  Overlap: "NoOverlap",
  OverlapsOthers: "NoOthers",
  OutsideSubnet: "Inside",
  InUseOutsideRange: "AllInside",
  InUseElsewhere: "NoneElsewhere",
  OtherMask: "SameMask",
  OtherGateway: "SameGateway",
  DeletedWithHolders: "NoHolders",
  ProxyArpSuspected: "NoProxyArp",
  ReservedInUse: "NoneInUse",
  Expired: "InForce",
  Unavailable: "Available",
  Full: "NobodyWaits",
} as const;

/** Precedes the fault in the message about an object that cannot be decoded; agents say the fault as well. */
export const INVALID = "The specification is invalid: ";

/** Conditions that are good when they are true. */
export const GOOD: ReadonlySet<string> = new Set(["Ready", "Supplied"]);

/** Pods get no address, or share one with others. */
const ERRORS: readonly string[] = [...GOOD, "Full", "InUseElsewhere"];

/** Of the Coordinator: pods get addresses nevertheless. */
const NETWORKS_UNKNOWN = "NetworksUnknown";

/** Returns the conditions that say that something is wrong. `Stalled` repeats what `Ready` says. */
function wrongIn(conditions: readonly Condition[]): Condition[] {
  return conditions.filter(({ type, status }) =>
    GOOD.has(type) ? status === "False" : status === "True" && type in WELL && type !== "Stalled",
  );
}

/** Returns one finding for each message. `object`: `IPPool blue`. */
export function findInConditions(object: string, conditions: readonly Condition[]): Finding[] {
  const wrong = wrongIn(conditions).filter(({ reason }) => reason !== "Terminating");
  const once = wrong.filter((each, at) => wrong.findIndex(({ message }) => message === each.message) === at);
  return once.map(({ type, reason, message }) => {
    const problem = ERRORS.includes(type) && reason !== NETWORKS_UNKNOWN ? error : warning;
    return problem(reason, "{message}", `See ${documentation("pool-status.html#conditions")}`)({ message }, { object });
  });
}
