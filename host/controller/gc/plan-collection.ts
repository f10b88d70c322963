/**
 * What the controller does with one allocation: a table, whose first row that fits holds (allocation rules 1, 2, 8, 10, 12 and 16). What
 * belongs to a node that lives is that node's agent's: here are only the cases in which no agent acts.
 */

import type { Holder, IpAllocation, IpAllocationSpec } from "../../resources/ip-allocation.ts";

/** Of an allocation; `NodeLost` and `Conflict` are the two reasons of a quarantine. */
export type CollectionState = "Bound" | "Cooling" | "Kept" | "NodeLost" | "Conflict";

/** The node of the pod that has, or had, the address; of two the one that is more there. `outOfService`: somebody says that it is off. */
export type NodeStatus = "ready" | "notReady" | "outOfService" | "absent";

/** That very pod, by its UID. `replaced`: its name is another's. `unknown`: it may run although no object tells. */
export type PodStatus = "alive" | "finished" | "replaced" | "absent" | "unknown";

/** What keeps the address. `moved`: it lives, and its member has another address for the NIC, elsewhere; told of `NodeLost` only. */
export type OwnerStatus = "none" | "alive" | "moved" | "gone" | "unknown";

/** The node that was told to ask for an address of `NodeLost`. */
export type ProberStatus = "nobody" | "ready" | "away";

/** What one look has found. */
export interface ObservedState {
  readonly state: CollectionState;
  readonly node: NodeStatus;
  readonly pod: PodStatus;
  readonly owner: OwnerStatus;
  readonly prober: ProberStatus;
}

export interface CollectionCase extends ObservedState {
  /** For how long it has been seen so, on the observer's monotonic clock; undefined at the first look. */
  readonly ageMs: number | undefined;
}

export interface CollectionTimes {
  /** `garbageCollection.interval`, `.grace`, `.nodeLost` */
  readonly intervalMs: number;
  readonly graceMs: number;
  readonly nodeLostMs: number;
  /** Of the pool. */
  readonly cooldownMs: number;
}

export type Action =
  /** Everything is as it should be; what was observed is forgotten. */
  | "keep"
  /** It cannot be told; what was observed stands. */
  | "wait"
  /** Bound or NodeLost → Kept, for its workload. */
  | "preserve"
  /** Kept → Cooling. */
  | "cool"
  /** Bound → Quarantined(NodeLost). */
  | "quarantine"
  /** Quarantined: another node's agent is told to ask for the address. */
  | "ask"
  /** The object goes. */
  | "free";

/** How long it must have been seen so. */
export type Pause = "none" | "grace" | "settle" | "overdue" | "silence" | "nodeLost" | "turn";

export interface CollectionRow {
  readonly state: CollectionState;
  /** Absent: any. */
  readonly node?: readonly NodeStatus[];
  readonly pod?: readonly PodStatus[];
  readonly owner?: readonly OwnerStatus[];
  readonly prober?: readonly ProberStatus[];
  /** Absent: at the first look. */
  readonly after?: Pause;
  readonly action: Action;
  readonly why: string;
}

export type CollectionDecision =
  | { readonly kind: "act"; readonly action: Action; readonly why: string }
  /** Not yet: to be looked at again when it has been seen so for `pauseMs`. */
  | { readonly kind: "observe"; readonly action: Action; readonly why: string; readonly pauseMs: number };

/** How many sweeps of its own an agent on a node that is ready may let pass before it counts as dead. */
const MISSED_SWEEPS = 2;

/** After how many times `nodeLost` another node is told to ask. */
const TURN_TIMES = 3;

export const PAUSES: Readonly<
  Record<Pause, { readonly text: string; readonly ms: (times: CollectionTimes) => number }>
> = {
  none: { text: "at once", ms: () => 0 },
  grace: { text: "`grace`", ms: ({ graceMs }) => graceMs },
  settle: { text: "the longer of `grace` and the pool's cooldown", ms: graceOrCooldownMs },
  overdue: {
    text: "the cooldown, and the longer of `grace` and the cooldown",
    ms: (times) => times.cooldownMs + graceOrCooldownMs(times),
  },
  silence: {
    text: "two `interval` and `nodeLost`",
    ms: ({ intervalMs, nodeLostMs }) => MISSED_SWEEPS * intervalMs + nodeLostMs,
  },
  nodeLost: { text: "`nodeLost`, at least `grace`", ms: ({ nodeLostMs, graceMs }) => Math.max(nodeLostMs, graceMs) },
  turn: {
    text: "three times `nodeLost`, at least `grace`",
    ms: ({ nodeLostMs, graceMs }) => Math.max(TURN_TIMES * nodeLostMs, graceMs),
  },
};

const ENDED = ["finished", "replaced", "absent"] as const;
const PRESENT = ["ready", "notReady"] as const;
const AWAY = ["outOfService", "absent"] as const;

/** The first row that fits holds. */
export const COLLECTION_ROWS: readonly CollectionRow[] = [
  { state: "Bound", pod: ["alive"], action: "keep", why: "its pod is there" },
  { state: "Bound", pod: ["unknown"], action: "wait", why: "whether its pod runs cannot be told" },
  {
    ...{ state: "Bound", node: ["outOfService"], owner: ["unknown"], action: "wait" },
    why: "whether its workload lives cannot be told",
  },
  {
    ...{ state: "Bound", node: ["outOfService"], owner: ["alive"], action: "preserve" },
    why: "its node is out of service, and its workload lives",
  },
  { state: "Bound", node: ["outOfService"], action: "free", why: "its node is out of service" },
  {
    ...{ state: "Bound", node: ["absent"], pod: ENDED, after: "grace", action: "quarantine" },
    why: "its pod and its node are gone, and the node has not confirmed it",
  },
  {
    ...{ state: "Bound", node: ["notReady"], pod: ENDED, after: "grace", action: "quarantine" },
    why: "its pod is gone, and its node is not ready and has not confirmed it",
  },
  {
    ...{ state: "Bound", node: ["ready"], pod: ENDED, after: "silence", action: "quarantine" },
    why: "its pod is gone, and the agent of its node does not act",
  },

  { state: "Kept", owner: ["alive"], action: "keep", why: "its workload lives" },
  { state: "Kept", owner: ["gone"], after: "grace", action: "cool", why: "its workload is gone" },
  { state: "Kept", action: "wait", why: "whether its workload lives cannot be told" },

  {
    ...{ state: "Cooling", node: PRESENT, after: "overdue", action: "free" },
    why: "it has cooled, and the agent of its node does not act",
  },
  { state: "Cooling", node: AWAY, after: "settle", action: "free", why: "it has cooled, and its node is gone" },

  { state: "NodeLost", pod: ["alive"], action: "wait", why: "its pod is there: its node's agent binds it again" },
  { state: "NodeLost", pod: ["unknown"], action: "wait", why: "whether its pod runs cannot be told" },
  { state: "NodeLost", owner: ["unknown"], action: "wait", why: "whether its workload lives cannot be told" },
  {
    ...{ state: "NodeLost", node: ["outOfService"], owner: ["alive"], action: "preserve" },
    why: "its node is out of service, and its workload lives",
  },
  { state: "NodeLost", node: ["outOfService"], action: "free", why: "its node is out of service" },
  {
    ...{ state: "NodeLost", owner: ["alive"], action: "keep" },
    why: "the next pod of its workload asks for it and takes it over",
  },
  {
    ...{ state: "NodeLost", prober: ["nobody"], after: "nodeLost", action: "ask" },
    why: "its node has not confirmed it for long",
  },
  {
    ...{ state: "NodeLost", prober: ["away"], after: "grace", action: "ask" },
    why: "the node that was told to ask is gone or not ready",
  },
  {
    ...{ state: "NodeLost", prober: ["ready"], after: "turn", action: "ask" },
    why: "the node that was told to ask has not found it silent",
  },

  { state: "Conflict", node: PRESENT, action: "keep", why: "the agent of its node asks again" },
  {
    ...{ state: "Conflict", node: AWAY, after: "nodeLost", action: "ask" },
    why: "the node whose agent would ask again is gone",
  },
];

/** The longer of grace and cooldown: the time counts once, from the first look to the last (allocation rule 10). */
function graceOrCooldownMs({ graceMs, cooldownMs }: CollectionTimes): number {
  return Math.max(graceMs, cooldownMs);
}

/** Undefined when no row fits, which a test excludes. */
export function findRow(found: ObservedState): CollectionRow | undefined {
  return COLLECTION_ROWS.find(
    ({ state, node, pod, owner, prober }) =>
      state === found.state &&
      (node?.includes(found.node) ?? true) &&
      (pod?.includes(found.pod) ?? true) &&
      (owner?.includes(found.owner) ?? true) &&
      (prober?.includes(found.prober) ?? true),
  );
}

/** What no row fits is left alone. */
export function decideCollection(found: CollectionCase, times: CollectionTimes): CollectionDecision {
  const {
    action,
    why,
    after = "none",
  } = findRow(found) ?? { action: "wait", why: "nothing is known about such a case" };
  if (after === "none") return { kind: "act", action, why };
  const pauseMs = PAUSES[after].ms(times);
  // Two looks, whatever the pause (allocation rule 16).
  const isDue = found.ageMs !== undefined && found.ageMs >= pauseMs;
  return isDue ? { kind: "act", action, why } : { kind: "observe", action, why, pauseMs };
}

/** What an observation was made of: seen otherwise in between, it counts anew. */
export function situationOf(seen: ObservedState): string {
  return `${seen.state} ${findRow(seen)?.why ?? ""}`;
}

export interface ChangeTerms {
  /** Of `ask`: who is told. */
  readonly prober?: string | undefined;
  /** RFC 3339. */
  readonly since: string;
}

/** The holder that the object's node answers for; of a quarantine for a lost node the one that had the address. */
export function lastHolder({ spec }: IpAllocation): Holder | undefined {
  const { holders, node, quarantine } = spec;
  return quarantine?.holder ?? holders.find((holder) => holder.node === node) ?? holders[0];
}

/** Undefined where there is nothing to write, or the object goes. */
export function changedSpec(object: IpAllocation, action: Action, terms: ChangeTerms): IpAllocationSpec | undefined {
  const { ip, addressSpace, prefixLength, pool, node, workload, quarantine } = object.spec;
  const { since, prober } = terms;
  const base = { ip, addressSpace, prefixLength, pool, node, holders: [], since };
  const holder = lastHolder(object);
  switch (action) {
    case "quarantine": {
      const lost = { reason: "NodeLost" as const, mac: "", parent: "", ...(holder === undefined ? {} : { holder }) };
      // What keeps the address stays known: the next pod of that member asks for it, and takes it over.
      return { ...base, state: "Quarantined", ...(workload === undefined ? {} : { workload }), quarantine: lost };
    }
    case "ask":
      if (prober === undefined || quarantine === undefined) return undefined;
      // The link was the other node's.
      return {
        ...{ ...base, node: prober, state: "Quarantined", quarantine: { ...quarantine, parent: "" } },
        ...(workload === undefined ? {} : { workload }),
      };
    case "preserve": {
      if (workload === undefined) return undefined;
      const { ifName = holder?.ifName } = workload;
      return { ...base, state: "Kept", workload: { ...workload, ...(ifName === undefined ? {} : { ifName }) } };
    }
    case "cool":
      return { ...base, state: "Cooling" };
    case "free":
    case "keep":
    case "wait":
      return undefined;
  }
}
