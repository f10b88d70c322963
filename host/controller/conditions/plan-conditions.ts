/** Compares the decisions about an object with its conditions: finds the conditions to write, and the new problems. */
import { GOOD, WELL } from "../../findings/conditions.ts";
import type { Condition } from "../../resources/status.ts";
import type { ControlledMetadata } from "../objects.ts";

/**
 * Shortest interval at which a condition is written if only its message changes: milliseconds. All agents watch the
 * pools.
 */
const CONDITION_MESSAGE_MS = 60_000;

const TYPES = Object.keys(WELL) as (keyof typeof WELL)[];

/** The types of conditions that the controller writes. */
export type ConditionType = "Ready" | "Supplied" | keyof typeof WELL;

/** A condition as it should be. `isTrue` is bad for all types but `Ready` and `Supplied`. */
export interface Decision {
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

/** Returns the decision that nothing is wrong. */
export function absent(type: keyof typeof WELL): Decision {
  return { type, isTrue: false, reason: WELL[type], message: "" };
}

/** The decision about an object that is as it should be. */
export const READY: Decision = { type: "Ready", isTrue: true, reason: "Ready", message: "" };

/**
 * Returns `Stalled` beside `Ready`: a program that waits for the object, such as Flux, is told that waiting is in vain
 * (kstatus of kubernetes-sigs/cli-utils).
 */
function stalledOf(ready: Decision): Decision[] {
  const isPassing = ready.isTrue || ready.isWanted || ready.isPassing;
  return isPassing ? [] : [{ ...ready, type: "Stalled", isTrue: true, isWanted: true }];
}

/** Returns the text of a time in a condition: RFC 3339, in whole seconds. */
export function formatSecond(time: Date): string {
  return time.toISOString().replace(/\.[0-9]+Z$/, "Z");
}

interface ConditionsPlan {
  /** All conditions of the object as they should be; undefined if nothing has to be written. */
  readonly conditions: readonly Condition[] | undefined;
  /** The generation that all of them are about; undefined unless `Ready` is among the decisions. */
  readonly observedGeneration: number | undefined;
  /** Decisions that were good or unknown, and are bad now. */
  readonly turnedBad: readonly Decision[];
  /** After how long a change of the message alone may be written: milliseconds; undefined if there is none. */
  readonly dueMs: number | undefined;
}

interface ConditionsView {
  readonly object: Pick<ControlledMetadata, "conditions" | "generation"> & {
    readonly status?: { readonly observedGeneration?: unknown };
  };
  readonly decisions: readonly Decision[];
  /** RFC 3339 */
  readonly now: string;
  /** Time since this process wrote the object's conditions; infinite if it never did. */
  readonly sinceMs: number;
}

/**
 * A condition that never was bad is not written; one that was bad stays and says that it no longer is: a decision about
 * `Ready` comes with all others that are bad. `Ready` is always present. A status without `observedGeneration` is
 * written with the next change: the kind may not have it yet.
 */
export function planConditions({ object, decisions: given, now, sinceMs }: ConditionsView): ConditionsPlan {
  const ready = given.find(({ type }) => type === "Ready");
  const known = new Map(object.conditions.map((condition) => [condition.type, condition]));
  const bad = ready === undefined ? given : [...given, ...stalledOf(ready)];
  const passed = TYPES.filter((type) => known.has(type) && !bad.some((decision) => decision.type === type));
  const decisions = ready === undefined ? bad : [...bad, ...passed.map(absent)];
  const wanted = decisions.filter((each) => isTrouble(each) || each.type === "Ready" || known.has(each.type));
  const planned = wanted.map((decision) => conditionOf(decision, known.get(decision.type), object.generation, now));
  const own = new Set<string>(wanted.map(({ type }) => type));
  const foreign = object.conditions.filter(({ type }) => !own.has(type));
  const turnedBad = wanted.filter(
    (decision) => isTrouble(decision) && !decision.isWanted && known.get(decision.type)?.status !== statusOf(decision),
  );
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

function statusOf({ isTrue }: Decision): Condition["status"] {
  return isTrue ? "True" : "False";
}

function isTrouble({ type, isTrue }: Decision): boolean {
  return isTrue !== GOOD.has(type);
}

/**
 * Returns whether the decision is worth a write of its own: its status or reason differ, or it is a problem that has
 * no condition yet.
 */
export function isOtherThan(decision: Decision, conditions: readonly Condition[]): boolean {
  const known = conditions.find(({ type }) => type === decision.type);
  if (known === undefined) return isTrouble(decision);
  return known.status !== statusOf(decision) || known.reason !== decision.reason;
}

function conditionOf(
  decision: Decision,
  before: Condition | undefined,
  observedGeneration: number,
  now: string,
): Condition {
  const status = statusOf(decision);
  const lastTransitionTime = before?.status === status ? before.lastTransitionTime : now;
  const { type, reason, message } = decision;
  return { type, status, observedGeneration, lastTransitionTime, reason, message };
}

function changeOf(now: Condition, before: Condition | undefined): "all" | "message" | "none" {
  if (before === undefined || before.status !== now.status || before.reason !== now.reason) return "all";
  if (before.observedGeneration !== now.observedGeneration) return "all";
  return before.message === now.message ? "none" : "message";
}
