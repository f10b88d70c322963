/**
 * One address and all that may happen to its node, its pod and its workload, in any order: the controller and the
 * nodes act by their tables, and no address becomes free while a NIC has it, unless its node is marked as off.
 */

import fc from "fast-check";
import { expect, it } from "vitest";
import { decideOrphanObject } from "../../../host/agent/gc/plan-reconciliation.ts";
import {
  type Action,
  type CollectionTimes,
  changedSpec,
  decideCollection,
  lastHolder,
  type NodeStatus,
  type ObservedState,
  type PodStatus,
  situationOf,
} from "../../../host/controller/gc/plan-collection.ts";
import type { IpAllocation, IpAllocationSpec } from "../../../host/resources/ip-allocation.ts";
import { ip } from "../../world/values.ts";

const SEED = Number(process.env.BERTH_SEED ?? Date.now() % 2 ** 31);
const RUNS = 3_000;
const MINUTE_MS = 60_000;
const TIMES: CollectionTimes = {
  ...{ intervalMs: 5 * MINUTE_MS, graceMs: MINUTE_MS, nodeLostMs: 10 * MINUTE_MS, cooldownMs: MINUTE_MS / 2 },
};
const HOLDER = { namespace: "shop", pod: "web-0", podUid: "u1", ifName: "eth0", node: "n1" };
const WEB = { kind: "StatefulSet", namespace: "shop", name: "web", uid: "w1", member: "web-0" };

/** Events that may happen, besides time. */
const STEPS = [
  ...["cut off", "reconnect", "node object gone", "node object back", "marked out of service", "mark taken away"],
  ...["pod object gone", "pod ends", "workload gone", "member moves", "controller changes", "journal lost"],
  ...["look", "look", "look", "agent looks", "agent looks", "prober asks", "prober gone", "prober back"],
] as const;
type Step = (typeof STEPS)[number] | number;

class Model {
  object: IpAllocation | undefined;
  /** Whether a NIC has the address. */
  isOnNic = true;
  isPodObject = true;
  isNodeObject = true;
  isConnected = true;
  isOff = false;
  isMarked = false;
  hasJournal = true;
  workload: ObservedState["owner"];
  isProberReady = true;
  nowMs = 0;
  #seen: { readonly key: string; readonly sinceMs: number } | undefined;
  /** The version of which the agent was told. */
  #told: string | undefined;
  #released: string | undefined;
  #version = 1;
  readonly actions = new Set<Action>();

  constructor(isMember: boolean) {
    this.workload = isMember ? "alive" : "none";
    const place = { ip: ip("10.6.0.1"), addressSpace: "", prefixLength: 24, pool: "blue", node: "n1" };
    this.#write({ ...place, state: "Bound", holders: [HOLDER], ...(isMember ? { workload: WEB } : {}) });
  }

  step(step: Step): void {
    if (typeof step === "number") this.nowMs += step * MINUTE_MS;
    else if (step === "cut off") this.isConnected = false;
    else if (step === "reconnect") this.isConnected = !this.isOff;
    else if (step === "node object gone") this.isNodeObject = false;
    else if (step === "node object back") this.isNodeObject = true;
    else if (step === "marked out of service") this.#turnOff();
    else if (step === "mark taken away") this.isMarked = false;
    else if (step === "pod object gone") this.isPodObject = false;
    else if (step === "pod ends") this.#endPod();
    else if (step === "workload gone") this.workload = this.workload === "none" ? "none" : "gone";
    else if (step === "member moves") this.workload = this.workload === "alive" ? "moved" : this.workload;
    else if (step === "controller changes") this.#changeController();
    else if (step === "journal lost") this.hasJournal = false;
    else if (step === "look") this.#look();
    else if (step === "agent looks") this.#agentLooks();
    else if (step === "prober asks") this.#ask();
    else this.isProberReady = step === "prober back";
  }

  #changeController(): void {
    this.#seen = undefined;
    this.#told = undefined;
  }

  /** Whoever marks a node has made sure of it. */
  #turnOff(): void {
    this.isOff = true;
    this.isMarked = true;
    this.isConnected = false;
    this.isOnNic = false;
  }

  /** By its kubelet, which lives; it says so when it can. */
  #endPod(): void {
    this.isOnNic = false;
    if (this.isConnected) this.isPodObject = false;
  }

  get #node(): NodeStatus {
    if (!this.isNodeObject) return "absent";
    if (this.isMarked) return "outOfService";
    return this.isConnected ? "ready" : "notReady";
  }

  get #pod(): PodStatus {
    return this.isPodObject ? "alive" : "absent";
  }

  #addressOwnerOf({ workload, quarantine }: IpAllocationSpec): ObservedState["owner"] {
    if (workload === undefined) return "none";
    return this.workload === "moved" && quarantine?.reason !== "NodeLost" ? "alive" : this.workload;
  }

  #look(): void {
    const { object, nowMs } = this;
    if (object === undefined) return;
    const { spec } = object;
    const isHandedOver = spec.state === "Quarantined" && spec.node !== "n1";
    const seen: ObservedState = {
      state: spec.state === "Quarantined" ? (spec.quarantine?.reason ?? "Conflict") : spec.state,
      ...{ node: this.#node, pod: this.#pod, owner: this.#addressOwnerOf(spec) },
      prober: isHandedOver ? (this.isProberReady ? "ready" : "away") : "none",
      isTold: this.#told === object.resourceVersion,
    };
    const key = `${object.resourceVersion} ${situationOf(seen)}`;
    const ageMs = this.#seen?.key === key ? nowMs - this.#seen.sinceMs : undefined;
    const decision = decideCollection({ ...seen, ageMs }, TIMES);
    if (decision.kind === "observe") {
      if (this.#seen?.key !== key) this.#seen = { key, sinceMs: nowMs };
      return;
    }
    this.actions.add(decision.action);
    if (decision.action === "tell") this.#told = object.resourceVersion;
    if (decision.action === "free") this.object = undefined;
    const prober = spec.node === "n2" ? "n3" : "n2";
    const changed = changedSpec(object, decision.action, { since: "2026-11-20T04:00:00Z", prober });
    if (changed !== undefined) this.#write(changed);
  }

  /** Its own object, or one that it gets back from whoever was told to ask. */
  #agentLooks(): void {
    const { object } = this;
    if (!this.isConnected || object === undefined || lastHolder(object)?.node !== "n1") return;
    const { spec } = object;
    const isLost = spec.state === "Quarantined" && spec.quarantine?.reason === "NodeLost";
    const isOwn = spec.node === "n1";
    if (isLost && this.isPodObject && this.isOnNic && this.hasJournal) this.#bindAgain(spec);
    // Its own collection: the pod object is gone, and its kubelet, which can be reached, has ended the pod.
    else if (isOwn && !this.isPodObject && (spec.state === "Bound" || (isLost && this.hasJournal))) this.#release(spec);
    else if (isOwn && isLost && !this.hasJournal) this.#meetOrphan(object);
  }

  /** Decides about an object that has no row in the journal. */
  #meetOrphan(object: IpAllocation): void {
    const decision = decideOrphanObject({ object, node: "n1", ownRows: [], nowMs: this.nowMs });
    if (decision.kind !== "release") return;
    if (decision.ifPodGone && this.isPodObject) this.#bindAgain(object.spec);
    else this.#releaseTwice(object);
  }

  #bindAgain({ quarantine: _, ...spec }: IpAllocationSpec): void {
    this.#write({ ...spec, state: "Bound", node: "n1", holders: [HOLDER] });
  }

  #release(spec: IpAllocationSpec): void {
    this.isOnNic = false;
    const { quarantine: _, ...rest } = spec;
    this.#write({ ...rest, state: "Cooling", holders: [], workload: undefined });
  }

  #releaseTwice(object: IpAllocation): void {
    if (this.#released === object.resourceVersion) this.#release(object.spec);
    this.#released = object.resourceVersion;
  }

  #ask(): void {
    const { object } = this;
    if (object?.spec.state !== "Quarantined" || object.spec.node === "n1" || !this.isProberReady) return;
    if (!this.isOnNic) this.object = undefined;
  }

  #write(spec: IpAllocationSpec): void {
    const resourceVersion = String(this.#version++);
    this.object = { kind: "IPAllocation", name: "10.6.0.1", uid: "o1", resourceVersion, deleting: false, spec };
  }
}

const step = fc.oneof(fc.constantFrom<Step>(...STEPS), fc.integer({ min: 1, max: 30 }));

it(`node-lost: no address of a pod that may live becomes free while its node has not confirmed (seed ${SEED})`, () => {
  const actions = new Set<Action>();
  fc.assert(
    fc.property(fc.boolean(), fc.array(step, { minLength: 20, maxLength: 80 }), (isMember, steps) => {
      const model = new Model(isMember);
      for (const each of steps) {
        model.step(each);
        const state = model.object?.spec.state ?? "free";
        const isSafe = state === "Bound" || state === "Quarantined";
        if (model.isOnNic) expect(isSafe, `${String(each)}: the NIC has it, and it is ${state}`).toBe(true);
      }
      for (const action of model.actions) actions.add(action);
    }),
    { seed: SEED, numRuns: RUNS },
  );
  // The walks come by everything that may be done to it.
  for (const action of ["keep", "quarantine", "ask", "free", "preserve"] as const) expect(actions).toContain(action);
});
