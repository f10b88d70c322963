/** Compares the findings about an object with its conditions: which conditions to write, and what has turned bad. */
import { SharedValues } from "../../lib/shared-values.ts";
import type { Condition, ControlledMetadata } from "../objects.ts";

/**
 * Shortest interval at which a condition is written if only its message changes: milliseconds. All agents watch the
 * pools.
 */
const CONDITION_MESSAGE_MS = 60_000;

/** The types of conditions that the controller writes. */
export type ConditionType =
  | "Ready"
  | "Stalled"
  | "InvalidValues"
  | "Overlap"
  | "OutsideSubnet"
  | "InUseOutsideRange"
  | "InUseElsewhere"
  | "OtherMask"
  | "DeletedWithHolders"
  | "ProxyArpSuspected"
  | "ReservedInUse"
  | "Supplied"
  | "Full";

/** Conditions that are good when they are true. */
const GOOD: ReadonlySet<ConditionType> = new Set(["Ready", "Supplied"]);

/** A condition as it should be. `isTrue` is bad for all types but `Ready` and `Supplied`. */
export interface Finding {
  readonly type: ConditionType;
  readonly isTrue: boolean;
  /** One word for programs. */
  readonly reason: string;
  /** Sentences for people, the last one without a full stop; "" if there is nothing to say. */
  readonly message: string;
  /** An administrator has requested it: no event is sent. */
  readonly isWanted?: boolean;
  /** Of `Ready` that is false: it becomes true without a change by an administrator. */
  readonly isPassing?: boolean;
}

/**
 * Returns the finding that nothing is wrong, which is held once: ten thousand pools have seven of them each while their
 * conditions are written.
 */
export function absent(type: ConditionType, reason: string): Finding {
  return ABSENT.of(`${type} ${reason}`, () => ({ type, isTrue: false, reason, message: "" }));
}

const ABSENT = new SharedValues<Finding>();

/** The finding that an object is as it should be. */
export const READY: Finding = { type: "Ready", isTrue: true, reason: "Ready", message: "" };

/**
 * Returns `Stalled` beside `Ready`: a program that waits for the object, such as Flux, is told that waiting is in vain
 * (kstatus of kubernetes-sigs/cli-utils).
 */
function stalledOf(ready: Finding): Finding {
  if (ready.isTrue || ready.isWanted || ready.isPassing) return absent("Stalled", "NotStalled");
  return { ...ready, type: "Stalled", isTrue: true, isWanted: true };
}

/** Returns the text of a time in a condition: RFC 3339, in whole seconds. */
export function formatSecond(time: Date): string {
  return time.toISOString().replace(/\.[0-9]+Z$/, "Z");
}

interface ConditionsPlan {
  /** All conditions of the object as they should be; undefined if nothing has to be written. */
  readonly conditions: readonly Condition[] | undefined;
  /** The generation that all of them are about; undefined unless `Ready` is among the findings. */
  readonly observedGeneration: number | undefined;
  /** Findings that were good or unknown, and are bad now. */
  readonly turnedBad: readonly Finding[];
  /** After how long a change of the message alone may be written: milliseconds; undefined if there is none. */
  readonly dueMs: number | undefined;
}

interface ConditionsView {
  readonly object: Pick<ControlledMetadata, "conditions" | "generation"> & {
    readonly status?: { readonly observedGeneration?: unknown };
  };
  readonly findings: readonly Finding[];
  /** RFC 3339 */
  readonly now: string;
  /** Time since this process wrote the object's conditions; infinite if it never did. */
  readonly sinceMs: number;
}

/**
 * A condition that never was bad is not written; one that was bad stays and says that it no longer is. `Ready` is
 * always present. A status without `observedGeneration` is written with the next change: the kind may not have it yet.
 */
export function planConditions({ object, findings: found, now, sinceMs }: ConditionsView): ConditionsPlan {
  const ready = found.find(({ type }) => type === "Ready");
  const findings = ready === undefined ? found : [...found, stalledOf(ready)];
  const known = new Map(object.conditions.map((condition) => [condition.type, condition]));
  const wanted = findings.filter((each) => isTrouble(each) || each.type === "Ready" || known.has(each.type));
  const planned = wanted.map((finding) => conditionOf(finding, known.get(finding.type), object.generation, now));
  const own = new Set<string>(wanted.map(({ type }) => type));
  const foreign = object.conditions.filter(({ type }) => !own.has(type));
  const turnedBad = wanted.filter((finding) => isBad(finding) && known.get(finding.type)?.status !== statusOf(finding));
  const changes = planned.map((condition) => changeOf(condition, known.get(condition.type)));
  const conditions = [...planned, ...foreign];
  const observedGeneration = ready && object.generation;
  const { observedGeneration: observed = observedGeneration } = object.status ?? {};
  if (ready !== undefined && observed !== observedGeneration) changes.push("all");
  const nothing = { conditions: undefined, observedGeneration: undefined, turnedBad: [], dueMs: undefined };
  const all = { conditions, observedGeneration, turnedBad, dueMs: undefined };
  if (changes.includes("all")) return all;
  if (!changes.includes("message")) return nothing;
  const dueMs = CONDITION_MESSAGE_MS - sinceMs;
  return dueMs > 0 ? { ...nothing, dueMs } : all;
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

/**
 * Returns whether the finding is worth a write of its own: its status or reason differ, or it is a problem that has
 * no condition yet.
 */
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

function changeOf(now: Condition, before: Condition | undefined): "all" | "message" | "none" {
  if (before === undefined || before.status !== now.status || before.reason !== now.reason) return "all";
  if (before.observedGeneration !== now.observedGeneration) return "all";
  return before.message === now.message ? "none" : "message";
}
