/**
 * Removes the scheduling gate of pods for which the pools that they select have room, and says in a condition why
 * others wait (docs/scheduling-gate.md). plan-gates.ts decides.
 */

import { setImmediate } from "node:timers/promises";
import type { LabelSelector } from "../../host/config/label-selector.ts";
import { decodeAttachedNetwork, findIpamConf } from "../../host/config/network-definition.ts";
import type { CachedAllocation } from "../../host/controller/cached-allocation.ts";
import { firstNicOf, settingsOf } from "../../host/controller/caches.ts";
import { followObjects } from "../../host/controller/follow-objects.ts";
import { ifDecodable } from "../../host/controller/if-decodable.ts";
import { patchIfSame } from "../../host/controller/patch.ts";
import { startReconciling } from "../../host/controller/reconcile-loop.ts";
import type { Controller, ControllerDeps, StartController } from "../../host/controller/types.ts";
import { isReshaped } from "../../host/controller/usage/usage-controller.ts";
import { UsageCounter } from "../../host/controller/usage/usage-counter.ts";
import type { KubeObject } from "../../host/kubernetes/kube-api.ts";
import type { Change } from "../../host/kubernetes/mirror.ts";
import { describeObject } from "../../host/kubernetes/object-key.ts";
import { collectionPath, NETWORK_DEFINITIONS, objectPath, PODS, statusPath } from "../../host/kubernetes/paths.ts";
import type { Reflector } from "../../host/kubernetes/reflector.ts";
import { RefusalsOf } from "../../host/kubernetes/refused-writes.ts";
import { inParallel } from "../../host/lib/in-parallel.ts";
import type { PeriodicWorker } from "../../host/lib/periodic.ts";
import { COORDINATOR_NAME } from "../../host/resources/coordinator.ts";
import { memberKey } from "../../host/resources/member.ts";
import { decodeNetworkDefinition } from "../../host/resources/network-attachment-definition.ts";
import { PoolTable } from "../../host/resources/pools-by-name.ts";
import { ADDRESS_CONDITION, decodeGatedPod, type GatedPod, reduceGatedPod } from "./gated-pod.ts";
import { type GateDecision, type GatesView, inTurn, KnownDemands, openPass } from "./plan-gates.ts";
import { Promises } from "./promises.ts";

/** Shortest time between two passes, which is longer after a long one: milliseconds. */
const GATES_REST_MS = 250;

/** Longest time between two passes while there are such pods: milliseconds. Promises end. */
const LOOK_AGAIN_MS = 5_000;

/** Pods that are written at once. */
const PODS_AT_ONCE = 8;

type Network = NonNullable<ReturnType<GatesView["network"]>>;

export const startGates: StartController = (deps) => new GatesController(deps);

class GatesController implements Controller {
  readonly #deps: ControllerDeps;
  readonly #pods: Reflector<GatedPod>;
  /** Started with the first gated pod: without any, nothing is followed but those. */
  #networks: Reflector<Network> | undefined;
  readonly #promises = new Promises();
  readonly #counter = new UsageCounter();
  /** Number of addresses that are retained, or in quarantine for a lost node, by member. */
  readonly #kept = new Map<string, number>();
  /** Undefined after a change of its sources. */
  #view: GatesView | undefined;
  /** By namespace, when a pod of it was last let through: a number that grows. */
  readonly #served = new Map<string, number>();
  #servings = 0;
  #workMs = 0;
  readonly #loop: PeriodicWorker;
  readonly #renew = (): void => {
    this.#view = undefined;
    if (this.#pods.items.size > 0) this.#loop.wake();
  };

  constructor(deps: ControllerDeps) {
    this.#deps = deps;
    const { caches } = deps;
    this.#pods = followObjects(deps, () => this.#loop.wake(), {
      name: "pods with the scheduling gate",
      path: collectionPath(PODS),
      // With those that have a node: one that is gone takes no address.
      fieldSelector: "status.phase=Pending",
      decode: decodeGatedPod,
      budgeted: { budget: caches.budget, reduce: reduceGatedPod },
    });
    this.#loop = startReconciling(deps, {
      failure: "Removing scheduling gates of pods failed",
      work: () => this.#reconcile(),
      restMs: () => Math.max(GATES_REST_MS, this.#workMs),
      follow: () => [
        caches.allocations.subscribe((change) => this.#onAllocation(change)),
        caches.pools.subscribe((change) => {
          // No pod can name a generated one.
          const { value } = change.kind === "set" ? change.value : change.before;
          if (value?.spec.generated === undefined && isReshaped(change)) this.#renew();
        }),
        ...[caches.reserved, caches.coordinators, caches.namespaces, caches.vendorConf].map((each) =>
          each.subscribe(this.#renew),
        ),
      ],
    });
  }

  get problems(): readonly string[] {
    return [...this.#pods.problems, ...(this.#networks?.problems ?? []), ...this.#loop.problems];
  }

  async close(): Promise<void> {
    await this.#loop.close();
    await this.#networks?.close();
    await this.#pods.close();
  }

  #onAllocation(change: Change<CachedAllocation>): void {
    if (this.#networks === undefined) return;
    this.#counter.apply(change);
    this.#keep(change.before?.spec, -1);
    if (change.kind === "set") this.#take(change.value.spec, change.before?.spec.state !== "Bound");
    if (this.#pods.items.size > 0) this.#loop.wake();
  }

  #take(spec: CachedAllocation["spec"], isNew = true): void {
    this.#keep(spec, 1);
    if (isNew) this.#promises.gave(spec, this.#pods.items);
  }

  #keep(spec: CachedAllocation["spec"] | undefined, step: 1 | -1): void {
    if (spec?.workload === undefined || (spec.state !== "Kept" && spec.state !== "Quarantined")) return;
    const key = memberKey(spec.workload);
    this.#kept.set(key, (this.#kept.get(key) ?? 0) + step);
    if (this.#kept.get(key) === 0) this.#kept.delete(key);
  }

  async #reconcile(): Promise<number | undefined> {
    if (!this.#pods.isSynced || this.#pods.items.size === 0) return undefined;
    if (!this.#follow().isSynced) return undefined;
    const { clock } = this.#deps;
    const startMs = clock.nowMs();
    const pods = inTurn(this.#pods.items.values(), this.#served);
    this.#view ??= this.#look();
    const decide = openPass(this.#view, this.#promises, this.#promises.renew(pods, startMs));
    const decided: { readonly pod: GatedPod; readonly decision: GateDecision }[] = [];
    for (const pod of pods) {
      // Others of the process have their turns meanwhile.
      await setImmediate();
      const decision = decide(pod);
      if (!pod.hasGate) continue;
      decided.push({ pod, decision });
      if (decision.kind === "open") this.#served.set(pod.namespace, ++this.#servings);
    }
    this.#workMs = clock.nowMs() - startMs;
    const refusals = new RefusalsOf();
    await inParallel(decided, PODS_AT_ONCE, ({ pod, decision }) => refusals.attempt(() => this.#write(pod, decision)));
    return refusals.require(LOOK_AGAIN_MS);
  }

  #follow(): Reflector<Network> {
    if (this.#networks !== undefined) return this.#networks;
    const { caches } = this.#deps;
    this.#networks = followObjects(this.#deps, this.#renew, {
      name: "NetworkAttachmentDefinitions of gated pods",
      path: collectionPath(NETWORK_DEFINITIONS),
      optional: true,
      decode: decodeNetwork,
      budgeted: { budget: caches.budget },
    });
    for (const { spec } of caches.allocations.items.values()) this.#take(spec);
    return this.#networks;
  }

  #look(): GatesView {
    const { caches } = this.#deps;
    const pools = new PoolTable();
    const refused = new Map<string, string>();
    for (const [name, { value }] of caches.pools.items)
      if (value === undefined) refused.set(name, "is invalid");
      else pools.set(name, value);
    const reserved = [...caches.reserved.items.values()].flatMap(({ value }) => value ?? []);
    const coordinator = caches.coordinators.items.get(COORDINATOR_NAME);
    const named = [...pools.values()].filter(({ spec }) => spec.generated === undefined);
    this.#counter.follow(named, reserved, caches.allocations.items.values());
    return {
      ...{ pools, refused, reserved },
      namespaces: caches.namespaces.items,
      settings: settingsOf(caches),
      firstNic: firstNicOf(caches),
      mode: coordinator?.value?.spec.mode ?? "auto",
      network: (name) => this.#networks?.items.get(name),
      isKept: (workload) => this.#kept.has(memberKey(workload)),
      freeIn: (name) => {
        const { total, used } = this.#counter.countsOf(name) ?? { total: 0, used: 0 };
        return total - used;
      },
      labelKeys: [...new Set(named.flatMap(({ spec }) => (spec.podAffinity ? keysOfSelector(spec.podAffinity) : [])))],
      known: new KnownDemands(),
    };
  }

  /** A pod that is let through says so first: the next controller counts it. */
  async #write(pod: GatedPod, decision: GateDecision): Promise<void> {
    // The other conditions of a pod that does not fit are not known.
    const told = pod.isReduced === true ? pod.resourceVersion : await this.#tell(pod, decision);
    if (decision.kind === "hold" || told === undefined) return;
    const { api, leading: signal, log } = this.#deps;
    const { namespace, name, uid, otherGates } = pod;
    const body = { spec: { schedulingGates: otherGates.map((each) => ({ name: each })) } };
    await patchIfSame(api, { path: objectPath(PODS, pod), uid, resourceVersion: told, body, signal });
    log.debug({ namespace, pod: name, pools: decision.pools }, "A pod was let through");
  }

  /** Returns the pod's version with the condition; undefined if the pod has changed meanwhile. */
  async #tell(pod: GatedPod, decision: GateDecision): Promise<string | undefined> {
    const { api, leading: signal, clock } = this.#deps;
    const { uid, resourceVersion, conditions } = pod;
    const [status, reason, message] =
      decision.kind === "open"
        ? ["True", "RoomAvailable", "The pools that the pod selects have room"]
        : ["False", decision.reason, decision.message];
    const before = conditions.find(({ type }) => type === ADDRESS_CONDITION);
    if (before?.status === status && before.reason === reason && before.message === message) return resourceVersion;
    const since = before?.status === status ? {} : { lastTransitionTime: clock.now().toISOString() };
    const own = { ...before, ...since, type: ADDRESS_CONDITION, status, reason, message };
    const others = conditions.filter(({ type }) => type !== ADDRESS_CONDITION);
    const body = { status: { conditions: [...others, own] } };
    const answer = await patchIfSame(api, { path: statusPath(PODS, pod), uid, resourceVersion, body, signal });
    return answer && String(Object(answer.metadata).resourceVersion);
  }
}

/** Returns the labels that the selector looks at. */
const keysOfSelector = ({ matchLabels, matchExpressions }: LabelSelector): string[] => [
  ...Object.keys(matchLabels),
  ...matchExpressions.map(({ key }) => key),
];

/** Returns undefined for a network whose addresses are not Berth's, as far as the definition says. */
function decodeNetwork(object: KubeObject): Network | undefined {
  const source = describeObject(object);
  return ifDecodable(() => {
    const { name, config } = decodeNetworkDefinition(object, source);
    if (config.trim() === "") return undefined;
    const network = decodeAttachedNetwork(config, name, source);
    const ipamConf = findIpamConf(network.plugins);
    return ipamConf && { name: network.name, ipamConf };
  });
}
