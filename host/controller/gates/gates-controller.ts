/**
 * Removes the scheduling gate of pods for which the pools that they select have room, and says in a condition why
 * others wait (docs/scheduling-gate.md). plan-gates.ts decides; the oldest pod is first.
 */
import { ConfigError } from "../../config/config-error.ts";
import { decodeAttachedNetwork, findIpamConf } from "../../config/network-definition.ts";
import { callIfThere, type KubeObject } from "../../kubernetes/kube-api.ts";
import { describeObject, keyOf } from "../../kubernetes/object-key.ts";
import { collectionPath, NETWORK_DEFINITIONS, objectPath, PODS, statusPath } from "../../kubernetes/paths.ts";
import { Reflector } from "../../kubernetes/reflector.ts";
import { RefusalsOf } from "../../kubernetes/refused-writes.ts";
import { inParallel } from "../../lib/in-parallel.ts";
import { byName, compareText } from "../../lib/order.ts";
import type { PeriodicWorker } from "../../lib/periodic.ts";
import { ADDRESS_CONDITION } from "../../resources/address-gate.ts";
import { COORDINATOR_NAME, occupiedOf } from "../../resources/coordinator.ts";
import type { IpPool } from "../../resources/ip-pool.ts";
import { memberKey } from "../../resources/member.ts";
import { decodeNetworkDefinition } from "../../resources/network-attachment-definition.ts";
import { OccupiedIps } from "../../resources/occupied-ips.ts";
import { decodePod } from "../../resources/pod.ts";
import { firstNicOf, settingsOf } from "../caches.ts";
import { patchIfSame } from "../patch.ts";
import { startReconciling } from "../reconcile-loop.ts";
import type { Controller, ControllerDeps, StartController } from "../types.ts";
import { UsageCounter } from "../usage/usage-counter.ts";
import { decodeGatedPod, type GatedPod, reduceGatedPod } from "./gated-pod.ts";
import { type LetThrough, LetThroughPods } from "./let-through.ts";
import { decideGate, type GateDecision, type GatesView } from "./plan-gates.ts";

/** Shortest time between two passes: milliseconds. */
const GATES_REST_MS = 250;

/** Pods that are written, or asked for, at once. */
const PODS_AT_ONCE = 8;

type Network = NonNullable<ReturnType<GatesView["network"]>>;

export const startGates: StartController = (deps) => new GatesController(deps);

class GatesController implements Controller {
  readonly #deps: ControllerDeps;
  readonly #pods: Reflector<GatedPod>;
  /** Started with the first gated pod: without any, nothing is followed but those. */
  #networks: Reflector<Network> | undefined;
  readonly #letThrough = new LetThroughPods();
  /** Set while pools are counted. */
  #counter: UsageCounter | undefined;
  /** Names of the pools that are counted: those that gated pods have selected. */
  readonly #counted = new Set<string>();
  #isResumed = false;
  readonly #loop: PeriodicWorker;
  readonly #ends: readonly (() => void)[];

  constructor(deps: ControllerDeps) {
    this.#deps = deps;
    const { api, caches, log, random, clock } = deps;
    const wake = (): void => this.#loop.wake();
    this.#pods = new Reflector<GatedPod>({
      ...{ api, log, random, keyOf, onSynced: wake },
      name: "pods with the scheduling gate",
      path: collectionPath(PODS),
      fieldSelector: "spec.nodeName=,status.phase=Pending",
      decode: decodeGatedPod,
      budgeted: { budget: caches.budget, reduce: reduceGatedPod },
      onChange: wake,
    });
    this.#loop = startReconciling(deps, {
      failure: "Removing scheduling gates of pods failed",
      work: () => this.#reconcile(clock.nowMs()),
      restMs: () => GATES_REST_MS,
    });
    this.#ends = [
      caches.allocations.subscribe((change) => {
        this.#counter?.apply(change);
        if (change.kind === "set") this.#letThrough.gave(change.value);
        this.#wakeIfGated();
      }),
      ...[caches.pools, caches.reserved, caches.coordinators, caches.namespaces, caches.vendorConf].map((cache) =>
        cache.subscribe(() => this.#wakeIfGated()),
      ),
      caches.nodes.subscribe(({ kind, before }) => (kind === "gone" || before === undefined) && this.#wakeIfGated()),
    ];
    this.#pods.start();
  }

  get problems(): readonly string[] {
    return [...this.#pods.problems, ...(this.#networks?.problems ?? []), ...this.#loop.problems];
  }

  async close(): Promise<void> {
    for (const end of this.#ends) end();
    await this.#loop.close();
    await this.#networks?.close();
    await this.#pods.close();
  }

  #wakeIfGated(): void {
    if (this.#pods.items.size > 0) this.#loop.wake();
  }

  async #reconcile(nowMs: number): Promise<number | undefined> {
    await this.#forgetGone(nowMs);
    if (!this.#pods.isSynced || this.#pods.items.size === 0) {
      this.#counted.clear();
      this.#counter = undefined;
      return this.#letThrough.dueIn(nowMs);
    }
    if (!this.#follow().isSynced) return undefined;
    const refusals = new RefusalsOf();
    const view = this.#view();
    // The API server tells the second in which a pod was made.
    const pods = [...this.#pods.items.values()].sort((a, b) => compareText(a.created, b.created) || byName(a, b));
    // Those of the controller before wait for what they were let through for.
    for (const pod of this.#isResumed ? [] : pods) if (!pod.hasGate) this.#note(pod, decideGate(pod, view), nowMs);
    this.#isResumed = true;
    const writes = pods.flatMap((pod) => {
      if (!pod.hasGate) return [];
      const decision: GateDecision = this.#letThrough.has(pod.uid)
        ? { kind: "open", pools: [] }
        : decideGate(pod, view);
      this.#note(pod, decision, nowMs);
      return [{ pod, decision }];
    });
    await inParallel(writes, PODS_AT_ONCE, ({ pod, decision }) => refusals.attempt(() => this.#write(pod, decision)));
    return refusals.require(this.#letThrough.dueIn(nowMs));
  }

  #note(pod: GatedPod, decision: GateDecision, nowMs: number): void {
    if (decision.kind === "open") this.#letThrough.add(pod, decision.pools, nowMs);
  }

  #follow(): Reflector<Network> {
    if (this.#networks !== undefined) return this.#networks;
    const { api, caches, log, random } = this.#deps;
    const wake = (): void => this.#loop.wake();
    this.#networks = new Reflector<Network>({
      ...{ api, log, random, keyOf, onSynced: wake, onChange: wake },
      name: "NetworkAttachmentDefinitions of gated pods",
      path: collectionPath(NETWORK_DEFINITIONS),
      optional: true,
      decode: decodeNetwork,
      budgeted: { budget: caches.budget },
    });
    this.#networks.start();
    return this.#networks;
  }

  #view(): GatesView {
    const { caches } = this.#deps;
    const pools = new Map<string, IpPool>();
    const refused = new Map<string, string>();
    for (const [name, { value, deleting }] of caches.pools.items) {
      if (value !== undefined && !deleting) pools.set(name, value);
      else refused.set(name, deleting ? "is being deleted" : "is invalid");
    }
    let kept: ReadonlySet<string> | undefined;
    this.#count(pools);
    return {
      ...{ pools, refused },
      namespaces: caches.namespaces.items,
      settings: settingsOf(caches),
      firstNic: firstNicOf(caches),
      mode: caches.coordinators.items.get(COORDINATOR_NAME)?.value?.spec.mode ?? "auto",
      network: (name) => this.#networks?.items.get(name),
      nodes: caches.nodes.items.values(),
      isKept: (workload) => {
        kept ??= this.#keptMembers();
        return kept.has(memberKey(workload));
      },
      freeIn: (name) => {
        if (!this.#counted.has(name)) {
          this.#counted.add(name);
          this.#count(pools);
        }
        const { total, used } = this.#counter?.countsOf(name) ?? { total: 0, used: 0 };
        return total - used - this.#letThrough.waitingFor(name);
      },
    };
  }

  /** Counts a pool that is new, or has another shape. */
  #count(pools: ReadonlyMap<string, IpPool>): void {
    const { caches } = this.#deps;
    const reserved = [...caches.reserved.items.values()].flatMap(({ value }) => value ?? []);
    const occupied = new OccupiedIps(occupiedOf(caches.coordinators.items.get(COORDINATOR_NAME)?.status ?? {}));
    const counted = [...this.#counted].flatMap((name) => pools.get(name) ?? []);
    if (counted.length === 0) return;
    this.#counter ??= new UsageCounter();
    this.#counter.follow(counted, reserved, caches.allocations.items.values(), occupied);
  }

  #keptMembers(): ReadonlySet<string> {
    const members = new Set<string>();
    for (const { spec } of this.#deps.caches.allocations.items.values())
      if (spec.state === "Kept" && spec.workload !== undefined) members.add(memberKey(spec.workload));
    return members;
  }

  /** A pod that is let through says so first: the next controller counts it. */
  async #write(pod: GatedPod, decision: GateDecision): Promise<void> {
    // Of a pod that does not fit the other conditions are not known.
    const told = pod.isReduced === true ? pod.resourceVersion : await this.#tell(pod, decision);
    if (decision.kind === "hold" || told === undefined) return;
    const { api, leading: signal, log } = this.#deps;
    const { namespace, name, uid, otherGates } = pod;
    const path = objectPath(PODS, { namespace, name });
    const body = { spec: { schedulingGates: otherGates.map((each) => ({ name: each })) } };
    await patchIfSame(api, { path, uid, resourceVersion: told, body, signal });
    log.debug({ namespace, pod: name, pools: decision.pools }, "A pod was let through");
  }

  /** Returns the pod's version with the condition; undefined if the pod has changed meanwhile. */
  async #tell(pod: GatedPod, decision: GateDecision): Promise<string | undefined> {
    const { api, leading: signal, clock } = this.#deps;
    const { namespace, name, uid, resourceVersion, conditions } = pod;
    const [status, reason, message] =
      decision.kind === "open"
        ? ["True", "RoomAvailable", "The pools that the pod selects have room"]
        : ["False", decision.reason, decision.message];
    const before = conditions.find(({ type }) => type === ADDRESS_CONDITION);
    if (before?.status === status && before.reason === reason && before.message === message) return resourceVersion;
    const lastTransitionTime = clock
      .now()
      .toISOString()
      .replace(/\.\d+Z$/, "Z");
    const since = before?.status === status ? {} : { lastTransitionTime };
    const own = { ...before, ...since, type: ADDRESS_CONDITION, status, reason, message };
    const others = conditions.filter(({ type }) => type !== ADDRESS_CONDITION);
    const path = statusPath(PODS, { namespace, name });
    const body = { status: { conditions: [...others, own] } };
    const answer = await patchIfSame(api, { path, uid, resourceVersion, body, signal });
    return answer && String(Object(answer.metadata).resourceVersion);
  }

  /** Pods that were let through and have no address: those that are gone, or have ended, wait for none. */
  async #forgetGone(nowMs: number): Promise<void> {
    await inParallel(this.#letThrough.takeDue(nowMs), PODS_AT_ONCE, async (each) => {
      if (!(await this.#isThere(each))) this.#letThrough.remove(each);
    });
  }

  async #isThere({ namespace, name, uid }: LetThrough): Promise<boolean> {
    if (this.#pods.items.get(`${namespace}/${name}`)?.uid === uid) return true;
    const { api, leading: signal } = this.#deps;
    const object = await callIfThere(api, { method: "GET", path: objectPath(PODS, { namespace, name }), signal });
    if (object === undefined) return false;
    const pod = decodePod(object, describeObject(object));
    return pod.uid === uid && !pod.isFinished && !pod.deleting;
  }
}

/** Returns undefined for a network whose addresses are not Berth's, as far as the definition says. */
function decodeNetwork(object: KubeObject): Network | undefined {
  const source = describeObject(object);
  try {
    const { name, config, oversizeBytes } = decodeNetworkDefinition(object, source);
    if (oversizeBytes !== undefined || config.trim() === "") return undefined;
    const network = decodeAttachedNetwork(config, name, source);
    const ipamConf = findIpamConf(network.plugins);
    return ipamConf && { name: network.name, ipamConf };
  } catch (error) {
    if (error instanceof ConfigError) return undefined;
    throw error;
  }
}
