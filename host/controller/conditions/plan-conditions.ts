/**
 * What was found out about an object against the conditions that it has: the list to write, and what has turned bad.
 */
import type { Condition, ControlledMetadata } from "../objects.ts";

/** A condition of which only the message changes is written at most so often: milliseconds. All agents watch the pools. @limit */
export const CONDITION_MESSAGE_MS = 60_000;

/** The types of conditions that the controller writes. */
export type ConditionType =
  | "Ready"
  | "Overlap"
  | "OutsideSubnet"
  | "InUseOutsideRange"
  | "DeletedWithHolders"
  | "ProxyArpSuspected"
  | "ReservedInUse"
  | "Supplied"
  | "Full";

/** Those that are good when they hold. */
const GOOD: ReadonlySet<ConditionType> = new Set(["Ready", "Supplied"]);

/** One thing that was looked at. `isTrue`: it holds. Of all but `Ready` and `Supplied` that is bad. */
export interface Finding {
  readonly type: ConditionType;
  readonly isTrue: boolean;
  /** One word for programs. */
  readonly reason: string;
  /** Sentences for people, without the end of the last one; "" when there is nothing to say. */
  readonly message: string;
  /** A person has asked for it: no event says so. */
  readonly isWanted?: boolean;
}

/** Nothing of the kind. */
export function absent(type: ConditionType, reason: string): Finding {
  return { type, isTrue: false, reason, message: "" };
}

export interface ConditionsPlan {
  /** All conditions of the object as they are to be; undefined: nothing is to be written. */
  readonly conditions: readonly Condition[] | undefined;
  /** What was good, or not known, and is bad now. */
  readonly turnedBad: readonly Finding[];
  /** After how long the message, which alone is another one, may be written: milliseconds. Undefined: it need not. */
  readonly dueMs: number | undefined;
}

export interface ConditionsView {
  readonly object: Pick<ControlledMetadata, "conditions" | "generation">;
  readonly findings: readonly Finding[];
  /** RFC 3339 */
  readonly now: string;
  /** Since this process wrote the object's conditions; infinite when it never did. */
  readonly sinceMs: number;
}

/** A condition that never was bad is not written; one that was stays, and says that it is so no more. `Ready` is always there. */
export function planConditions({ object, findings, now, sinceMs }: ConditionsView): ConditionsPlan {
  const known = new Map(object.conditions.map((condition) => [condition.type, condition]));
  const wanted = findings.filter((each) => isTrouble(each) || each.type === "Ready" || known.has(each.type));
  const planned = wanted.map((finding) => conditionOf(finding, known.get(finding.type), object.generation, now));
  const own = new Set<string>(wanted.map(({ type }) => type));
  const foreign = object.conditions.filter(({ type }) => !own.has(type));
  const turnedBad = wanted.filter((finding) => isBad(finding) && known.get(finding.type)?.status !== statusOf(finding));
  const news = planned.map((condition) => newsOf(condition, known.get(condition.type)));
  const conditions = [...planned, ...foreign];
  if (news.includes("all")) return { conditions, turnedBad, dueMs: undefined };
  if (!news.includes("message")) return { conditions: undefined, turnedBad: [], dueMs: undefined };
  const dueMs = CONDITION_MESSAGE_MS - sinceMs;
  if (dueMs > 0) return { conditions: undefined, turnedBad: [], dueMs };
  return { conditions, turnedBad, dueMs: undefined };
}

function statusOf({ isTrue }: Finding): Condition["status"] {
  return isTrue ? "True" : "False";
}

function isTrouble({ type, isTrue }: Finding): boolean {
  return isTrue !== GOOD.has(type);
}

function isBad(finding: Finding): boolean {
  return isTrouble(finding) && finding.isWanted !== true;
}

/** Whether it is worth a write of its own: the object's condition has another status or reason, or it has none and this is trouble. */
export function isOtherThan(finding: Finding, conditions: readonly Condition[]): boolean {
  const known = conditions.find(({ type }) => type === finding.type);
  if (known === undefined) return isTrouble(finding);
  return known.status !== statusOf(finding) || known.reason !== finding.reason;
}

function conditionOf(
  finding: Finding,
  before: Condition | undefined,
  observedGeneration: number,
  now: string,
): Condition {
  const status = statusOf(finding);
  const lastTransitionTime = before?.status === status ? before.lastTransitionTime : now;
  const { type, reason, message } = finding;
  return { type, status, observedGeneration, lastTransitionTime, reason, message };
}

function newsOf(now: Condition, before: Condition | undefined): "all" | "message" | "none" {
  if (before === undefined || before.status !== now.status || before.reason !== now.reason) return "all";
  if (before.observedGeneration !== now.observedGeneration) return "all";
  return before.message === now.message ? "none" : "message";
}
