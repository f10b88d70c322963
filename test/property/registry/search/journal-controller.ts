/** The controller's part of the protocol: check-allocation.ts around the product's table of collection. */

import { dueFor } from "../../../../host/controller/claimants.ts";
import { lostNode, stateOf } from "../../../../host/controller/gc/check-allocation.ts";
import {
  type Action,
  changedSpec,
  decideCollection,
  lastHolder,
  type NodeStatus,
  type ObservedState,
} from "../../../../host/controller/gc/plan-collection.ts";
import { podStatus, podsStatus } from "../../../../host/controller/gc/read-status.ts";
import type { Holder, IpAllocation, IpAllocationSpec } from "../../../../host/resources/ip-allocation.ts";
import { areTwoMachines } from "../../../../host/resources/machine.ts";
import { keptSpec, objectOf, SINCE } from "./journal-object.ts";
import type { ControllerTurn, Limit, NodeState, Surroundings } from "./protocol.ts";

type Turn = ControllerTurn<IpAllocationSpec>;

const CLAIMANT = { kind: "Service", namespace: "shop", name: "svc", member: "svc", uid: "svc", addresses: [] } as const;

/** No time of the table is believed. */
const TIMES = { intervalMs: 1, graceMs: 1, nodeLostMs: 1, cooldownMs: 1 };

const STATUS: Readonly<Record<NodeState, NodeStatus>> = {
  ...{ there: "ready", lost: "notReady", off: "outOfService", absent: "absent" },
};

function observe(object: IpAllocation, isTold: boolean, place: Surroundings<IpAllocationSpec>): ObservedState {
  const { spec } = object;
  const nodeOf = (name: string, machine?: string): NodeStatus =>
    areTwoMachines({ machine: place.machines.get(name) }, { machine })
      ? "absent"
      : STATUS[place.nodes.get(name) ?? "absent"];
  const state = stateOf(object);
  const lost = lastHolder(object);
  const holders = state === "Bound" ? spec.holders : state === "NodeLost" && lost !== undefined ? [lost] : [];
  const nodes = holders.map((holder) => nodeOf(holder.node, holder.machine));
  const node = nodes.find((each) => each !== "outOfService") ?? nodes[0] ?? nodeOf(spec.node);
  const found = ({ pod }: Holder) => {
    const uid = place.uidOf(pod);
    return uid === undefined ? undefined : { uid, configHash: undefined, deleting: false };
  };
  const pods = holders.map((holder, index) => podStatus(holder, found(holder), nodes[index] ?? node));
  const isOfOther = state === "NodeLost" && spec.node !== lostNode(object);
  return {
    ...{ state, node, pod: podsStatus(pods, nodes) },
    owner: spec.workload === undefined ? "none" : isGone(object, place) ? "gone" : "alive",
    prober: isOfOther ? (nodeOf(spec.node) === "ready" ? "ready" : "away") : "none",
    isTold,
  };
}

/** The lost node itself comes first once it is back; another machine with its name only if it has the object. */
function chooseProber(object: IpAllocation, { nodes, machines }: Surroundings<IpAllocationSpec>): string | undefined {
  const { node, workload } = object.spec;
  const lost = lostNode(object);
  const isReplaced = areTwoMachines({ machine: machines.get(lost) }, lastHolder(object));
  const ready = [...nodes].flatMap(([name, state]) => (state === "there" && name !== node ? [name] : []));
  const others = ready.filter((name) => name !== lost);
  const own = workload !== undefined && node === lost && isReplaced ? lost : undefined;
  return (isReplaced ? undefined : ready.find((name) => name === lost)) ?? others[0] ?? own;
}

function isGone({ spec: { workload } }: IpAllocation, { isClaimed }: Surroundings<IpAllocationSpec>): boolean {
  return workload?.kind === "Service" && !isClaimed;
}

/** Agents may have been told of the object before, and have done nothing. */
export function controlTurns(place: Surroundings<IpAllocationSpec>): readonly Turn[] {
  const object = place.object && objectOf(place.object);
  const claim = place.isClaimed ? dueFor(object, [{ claimant: CLAIMANT, spec: keptSpec(CLAIMANT) }]) : undefined;
  const own = typeof claim === "object" ? [recordTurn(claim.spec, place)] : [];
  if (object === undefined) return own;
  return [...own, ...[false, true].flatMap((isTold) => turnOf(object, observe(object, isTold, place), place))];
}

/** As networks/machines-controller.ts. */
function recordTurn(spec: IpAllocationSpec, { object }: Surroundings<IpAllocationSpec>): Turn {
  const call =
    object === undefined ? ({ kind: "create", spec } as const) : ({ kind: "replace", spec, before: object } as const);
  return { label: "records the Service's address", call, told: [], waitsFor: [], node: "" };
}

function turnOf(object: IpAllocation, seen: ObservedState, place: Surroundings<IpAllocationSpec>): readonly Turn[] {
  const { action, why } = decideCollection({ ...seen, ageMs: Number.POSITIVE_INFINITY }, TIMES);
  const { node, holders } = object.spec;
  const turn = { label: `${action}: ${why}`, waitsFor: waitsOf(seen, action), node };
  if (action === "tell") return [{ ...turn, told: holders.map((holder) => holder.node) }];
  const call = callOf(object, action, place);
  // Where it matters whether agents were told, both looks decide the same.
  return call === undefined || (!seen.isTold && seen.state !== "Bound") ? [] : [{ ...turn, call, told: [] }];
}

function callOf(object: IpAllocation, action: Action, place: Surroundings<IpAllocationSpec>) {
  const before = { uid: Number(object.uid), version: Number(object.resourceVersion) };
  if (action === "free") return { kind: "delete", before } as const;
  const prober = action === "ask" ? chooseProber(object, place) : undefined;
  const spec = changedSpec(object, action, { prober, since: SINCE });
  return spec === undefined ? undefined : ({ kind: "replace", spec, before } as const);
}

/** Returns whether the controller leaves this to a live agent, as it does while it has patience. */
function waitsOf({ state, node, prober }: ObservedState, action: Action): readonly Limit[] {
  if (state === "Cooling") return node === "ready" ? ["cooldown", "patience"] : ["cooldown"];
  const isLeft = (action === "quarantine" && node === "ready") || (action === "ask" && prober === "ready");
  return isLeft ? ["patience"] : [];
}
