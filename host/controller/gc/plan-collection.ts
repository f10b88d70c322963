/**
 * Decides the controller's action on one allocation: a table whose first matching row applies (late-del, node-lost,
 * retention, cooling-visibility, conflict, leak). Allocations of a live node are its agent's; the table covers the
 * cases in which no agent acts.
 */

import type { IpAllocation, IpAllocationSpec } from "../../resources/ip-allocation.ts";
import { NO_MACHINE } from "../../resources/machine.ts";
import type { CachedHolder } from "../cached-allocation.ts";

/** State of an allocation; the last two are the reasons of a quarantine. */
export type CollectionState = "Bound" | "Cooling" | "Kept" | "NodeLost" | "Conflict";

/** The node of the pod with the address. `outOfService`: its taint, or those of both of two, confirm that it is off. */
export type NodeStatus = "ready" | "notReady" | "outOfService" | "absent";

/** The pod with the holder's UID. `replaced`: another pod has its name. `unknown`: it may run without an object. */
export type PodStatus = "alive" | "finished" | "replaced" | "absent" | "unknown";

/**
 * Status of the pods with the address. `outliving`: one of two has ended on a ready node, and the other runs.
 * `unconfirmed`: both have ended, and the agent of a node may confirm it.
 */
export type PodsStatus = PodStatus | "outliving" | "unconfirmed";

/**
 * The address owner. `moved`: it is alive, and its member has another address for the NIC, instead of one in `NodeLost`
 * on another node; only with `NodeLost` and `Kept`. With `Kept` alone, of an owner that is alive: `unseen`: its last
 * holder is no pod that ever existed; `unused`: the member's pod has no such NIC, or no address of the family;
 * `excess`: its namespace retains more than its pods explain.
 */
export type OwnerStatus = "none" | "alive" | "moved" | "unseen" | "unused" | "excess" | "gone" | "unknown";

/** The node chosen to probe an address in quarantine; `none`: not yet chosen, or its agent met the conflict itself. */
export type ProberStatus = "none" | "ready" | "away";

/** The state of an allocation at one check. */
export interface ObservedState {
  readonly state: CollectionState;
  readonly node: NodeStatus;
  readonly pod: PodsStatus;
  readonly owner: OwnerStatus;
  readonly prober: ProberStatus;
  /** Whether this controller told the agents of the holders' nodes of this version. */
  readonly isTold: boolean;
}

interface CollectionCase extends ObservedState {
  /** Time since this state was first observed, monotonic: milliseconds; undefined at the first observation. */
  readonly ageMs: number | undefined;
}

export interface CollectionTimes {
  /** `garbageCollection.interval`, `.grace`, `.nodeLost` */
  readonly intervalMs: number;
  readonly graceMs: number;
  readonly nodeLostMs: number;
  /** The pool's cooldown. */
  readonly cooldownMs: number;
}

export type Action =
  /** The allocation is in order; the observation is dropped. */
  | "keep"
  /** The state is unclear; the observation is kept. */
  | "wait"
  /** Bound or NodeLost → Kept, for its owner. */
  | "preserve"
  /** Kept → Cooling. */
  | "cool"
  /** Bound → Quarantined(NodeLost). */
  | "quarantine"
  /** Quarantined: another node's agent is chosen to probe the address. */
  | "ask"
  /** Nothing is written: the agents of its holders' nodes are told to read it again. */
  | "tell"
  /** The object is deleted. */
  | "free";

/** Time for which the state must have been observed. */
type Pause = "grace" | "settle" | "overdue" | "silence" | "nodeLost" | "turn";

export interface CollectionRow {
  readonly state: CollectionState;
  /** Default: any. */
  readonly node?: readonly NodeStatus[];
  readonly pod?: readonly PodsStatus[];
  readonly owner?: readonly OwnerStatus[];
  readonly prober?: readonly ProberStatus[];
  readonly isTold?: boolean;
  /** Default: at the first observation. */
  readonly after?: Pause;
  readonly action: Action;
  readonly why: string;
}

export type CollectionDecision =
  | { readonly kind: "act"; readonly action: Action; readonly why: string }
  /** Not yet: check again when the state has been observed for `pauseMs`. */
  | { readonly kind: "observe"; readonly action: Action; readonly why: string; readonly pauseMs: number };

/** Number of its own sweeps that the agent of a ready node may miss before it counts as dead. */
const MISSED_SWEEPS = 2;

/** Multiple of `nodeLost` after which the next node is chosen to probe. */
const TURN_TIMES = 3;

export const PAUSES: Readonly<
  Record<Pause, { readonly text: string; readonly ms: (times: CollectionTimes) => number }>
> = {
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

/** The first matching row applies. */
export const COLLECTION_ROWS: readonly CollectionRow[] = [
  { state: "Bound", pod: ["alive"], action: "keep", why: "its pod exists" },
  {
    state: "Bound",
    pod: ["outliving"],
    after: "grace",
    action: "tell",
    why: "one of its two pods is gone, and the agent of that pod's node has not removed it",
  },
  {
    state: "Bound",
    pod: ["unconfirmed"],
    isTold: false,
    after: "grace",
    action: "tell",
    why: "its two pods are gone, and the agents of their nodes have removed neither",
  },
  {
    state: "Bound",
    pod: ["unconfirmed"],
    after: "silence",
    action: "quarantine",
    why: "its two pods are gone, and the agents of their nodes do not act",
  },
  { state: "Bound", pod: ["unknown"], action: "wait", why: "it is unknown whether its pod runs" },
  {
    state: "Bound",
    node: ["outOfService"],
    owner: ["unknown"],
    action: "wait",
    why: "it is unknown whether its owner is alive",
  },
  {
    state: "Bound",
    node: ["outOfService"],
    owner: ["alive"],
    action: "preserve",
    why: "its node is out of service, and its owner is alive",
  },
  { state: "Bound", node: ["outOfService"], action: "free", why: "its node is out of service" },
  {
    state: "Bound",
    node: ["absent"],
    pod: ENDED,
    after: "grace",
    action: "quarantine",
    why: "its pod and its node are gone, and the node has not confirmed that the pod has stopped",
  },
  {
    state: "Bound",
    node: ["notReady"],
    pod: ENDED,
    after: "grace",
    action: "quarantine",
    why: "its pod is gone, and its node is not ready and has not confirmed that the pod has stopped",
  },
  {
    state: "Bound",
    node: ["ready"],
    pod: ENDED,
    isTold: false,
    after: "settle",
    action: "tell",
    why: "its pod is gone, and the agent of its node has not released it",
  },
  {
    state: "Bound",
    node: ["ready"],
    pod: ENDED,
    after: "silence",
    action: "quarantine",
    why: "its pod is gone, and the agent of its node does not act",
  },

  { state: "Kept", owner: ["alive"], action: "keep", why: "its owner is alive" },
  {
    state: "Kept",
    owner: ["moved"],
    after: "silence",
    action: "cool",
    why: "its member has another address for the NIC",
  },
  { state: "Kept", owner: ["unseen"], after: "grace", action: "cool", why: "no pod of its owner has had it" },
  {
    state: "Kept",
    owner: ["unused"],
    after: "silence",
    action: "cool",
    why: "its member's pod does not have the NIC, or no address of the family",
  },
  {
    state: "Kept",
    owner: ["excess"],
    after: "grace",
    action: "cool",
    why: "its namespace retains too many for what its pods have had at once",
  },
  { state: "Kept", owner: ["gone"], after: "grace", action: "cool", why: "its owner is gone" },
  { state: "Kept", action: "wait", why: "it is unknown whether its owner is alive" },

  {
    state: "Cooling",
    node: PRESENT,
    after: "overdue",
    action: "free",
    why: "its cooldown is over, and the agent of its node does not act",
  },
  { state: "Cooling", node: AWAY, after: "settle", action: "free", why: "its cooldown is over, and its node is gone" },

  {
    state: "NodeLost",
    pod: ["alive", "outliving"],
    action: "wait",
    why: "its pod exists; its node's agent binds it again",
  },
  { state: "NodeLost", pod: ["unknown"], action: "wait", why: "it is unknown whether its pod runs" },
  { state: "NodeLost", owner: ["unknown"], action: "wait", why: "it is unknown whether its owner is alive" },
  {
    state: "NodeLost",
    node: ["outOfService"],
    owner: ["alive"],
    action: "preserve",
    why: "its node is out of service, and its owner is alive",
  },
  { state: "NodeLost", node: ["outOfService"], action: "free", why: "its node is out of service" },
  {
    state: "NodeLost",
    owner: ["alive"],
    action: "keep",
    why: "the next pod of its owner takes it over",
  },
  {
    state: "NodeLost",
    prober: ["none"],
    after: "nodeLost",
    action: "ask",
    why: "its node has not confirmed for a long time that the pod has stopped",
  },
  {
    state: "NodeLost",
    prober: ["away"],
    after: "grace",
    action: "ask",
    why: "the node chosen to probe it is gone or not ready",
  },
  {
    state: "NodeLost",
    prober: ["ready"],
    after: "turn",
    action: "ask",
    why: "the node chosen to probe it has not found it silent",
  },

  {
    state: "Conflict",
    node: AWAY,
    after: "nodeLost",
    action: "ask",
    why: "the node whose agent would probe it again is gone",
  },
  { state: "Conflict", prober: ["ready"], after: "turn", action: "ask", why: "the node asked has not found it silent" },
  { state: "Conflict", action: "keep", why: "the agent of its node probes it again" },
];

/** Returns the longer of grace and cooldown: both run from the first observation (cooling-visibility). */
function graceOrCooldownMs({ graceMs, cooldownMs }: CollectionTimes): number {
  return Math.max(graceMs, cooldownMs);
}

/** For a state that no row matches, which a test rules out. */
const UNKNOWN: CollectionRow = { state: "Bound", action: "wait", why: "no rule covers this state" };

function findRow(found: ObservedState): CollectionRow {
  const row = COLLECTION_ROWS.find(
    ({ state, node, pod, owner, prober, isTold }) =>
      state === found.state &&
      (node?.includes(found.node) ?? true) &&
      (pod?.includes(found.pod) ?? true) &&
      (owner?.includes(found.owner) ?? true) &&
      (prober?.includes(found.prober) ?? true) &&
      (isTold ?? found.isTold) === found.isTold,
  );
  return row ?? UNKNOWN;
}

export function decideCollection(found: CollectionCase, times: CollectionTimes): CollectionDecision {
  const { action, why, after } = findRow(found);
  if (after === undefined) return { kind: "act", action, why };
  const pauseMs = PAUSES[after].ms(times);
  // Two observations are needed, however short the pause (leak).
  const isDue = (found.ageMs ?? Number.NEGATIVE_INFINITY) >= pauseMs;
  return isDue ? { kind: "act", action, why } : { kind: "observe", action, why, pauseMs };
}

/** Returns the identity of an observation: a change restarts its time. */
export function situationOf(seen: ObservedState): string {
  return `${seen.state} ${findRow(seen).why}`;
}

export interface ChangeTerms {
  /** Set with `ask`: the node that is chosen to probe. */
  readonly prober?: string | undefined;
  /** RFC 3339. */
  readonly since: string;
}

interface HeldBy<H> {
  readonly spec: {
    readonly node: string;
    readonly holders: readonly H[];
    readonly quarantine?: { readonly holder?: H | undefined } | undefined;
  };
}

/** Returns the holder on the object's node; in a quarantine for a lost node, the former holder. */
export function lastHolder<H extends CachedHolder>({ spec }: HeldBy<H>): H | undefined {
  const { holders, node, quarantine } = spec;
  return quarantine?.holder ?? holders.find((holder) => holder.node === node) ?? holders[0];
}

/** Returns the new specification; undefined if nothing is written, or the object is deleted. */
export function changedSpec(object: IpAllocation, action: Action, terms: ChangeTerms): IpAllocationSpec | undefined {
  const { ip, addressSpace, prefixLength, pool, node, workload, quarantine } = object.spec;
  const { since, prober } = terms;
  const base = { ip, addressSpace, prefixLength, pool, node, holders: [], since };
  const holder = lastHolder(object);
  switch (action) {
    case "free":
    case "tell":
    case "keep":
    case "wait":
      return undefined;
    case "quarantine": {
      // Of two pods it names one, and only a probe tells whether both have stopped.
      const last = holder && (object.spec.holders.length < 2 ? holder : { ...holder, machine: NO_MACHINE });
      const lost = { reason: "NodeLost" as const, mac: "", parent: "", ...(last && { holder: last }) };
      // The owner stays recorded, so that the member's next pod can take the address over.
      return { ...base, state: "Quarantined", ...(workload === undefined ? {} : { workload }), quarantine: lost };
    }
    case "ask":
      if (prober === undefined || quarantine === undefined) return undefined;
      // Another machine with the node's name probes addresses that no owner retains; this one has none that exists. The
      // parent link was the other node's.
      return {
        ...base,
        node: prober,
        state: "Quarantined",
        quarantine: { ...quarantine, parent: "" },
        ...(workload === undefined || prober === node ? {} : { workload }),
      };
    case "preserve": {
      if (workload === undefined) return undefined;
      const { ifName = holder?.ifName } = workload;
      const last = holder === undefined ? {} : { lastHolder: holder };
      return {
        ...base,
        state: "Kept",
        ...last,
        workload: { ...workload, ...(ifName === undefined ? {} : { ifName }) },
      };
    }
    case "cool":
      return { ...base, state: "Cooling" };
  }
}
