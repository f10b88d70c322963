/**
 * Writes the EndpointSlices of Services that name a network and pods on it (docs/services.md). Readiness and labels
 * come from the pods of namespaces that have such a Service, addresses from IPAllocations; plan-slices.ts decides.
 */

import { setImmediate } from "node:timers/promises";
import { type CachedAllocation, hashUid } from "../../host/controller/cached-allocation.ts";
import { firstNicOf } from "../../host/controller/caches.ts";
import { followObjects } from "../../host/controller/follow-objects.ts";
import { LIVE_PODS } from "../../host/controller/owners/pool-owner-kinds.ts";
import { patchIfSame } from "../../host/controller/patch.ts";
import { startReconciling } from "../../host/controller/reconcile-loop.ts";
import type { Controller, ControllerDeps, StartController } from "../../host/controller/types.ts";
import { callIfThere, isConflict, type KubeApi, type KubeCall } from "../../host/kubernetes/kube-api.ts";
import type { Change } from "../../host/kubernetes/mirror.ts";
import { collectionPath, ENDPOINT_SLICES, objectPath, PODS, SERVICES } from "../../host/kubernetes/paths.ts";
import type { Reflector } from "../../host/kubernetes/reflector.ts";
import { RefusalsOf } from "../../host/kubernetes/refused-writes.ts";
import { inParallel } from "../../host/lib/in-parallel.ts";
import type { PeriodicWorker } from "../../host/lib/periodic.ts";
import { orElse } from "../../host/lib/try-or.ts";
import type { Ip } from "../../host/net/ip.ts";
import { type BackendPod, decodeBackendPod } from "./backend-pod.ts";
import { decodeSlice, encodeSlice, type KnownSlice, MANAGED_BY_LABEL, MANAGER, reduceSlice } from "./endpoint-slice.ts";
import { decodeNetworkService, type FaultyService, type NetworkService } from "./network-service.ts";
import { planSlices, type SlicePlan } from "./plan-slices.ts";

/** Shortest time between two passes: milliseconds. */
const SERVICES_REST_MS = 250;

/** Time after which a slice is written again whose name was taken, or which had changed meanwhile: milliseconds. */
const TAKEN_RETRY_MS = 5_000;

const NAMESPACES_AT_ONCE = 8;

export const startServices: StartController = (deps) => new ServicesController(deps);

/** A namespace with Services that have no fault. */
interface Home {
  readonly pods: Reflector<BackendPod>;
  /** Of its pods, by name. */
  readonly allocations: Map<string, CachedAllocation>;
}

class ServicesController implements Controller {
  readonly #deps: ControllerDeps;
  readonly #services: Reflector<NetworkService | FaultyService>;
  readonly #slices: Reflector<KnownSlice>;
  readonly #homes = new Map<string, Home>();
  /** Namespaces to compare. */
  readonly #due = new Set<string>();
  readonly #loop: PeriodicWorker;

  constructor(deps: ControllerDeps) {
    this.#deps = deps;
    const { caches } = deps;
    const { budget } = caches;
    const wake = (): void => this.#loop.wake();
    this.#services = followObjects(deps, (change) => (change === undefined ? wake() : this.#onService(change)), {
      ...{ name: "Services with a network", path: collectionPath(SERVICES) },
      ...{ decode: decodeNetworkService, budgeted: { budget } },
    });
    this.#slices = followObjects(
      deps,
      (change) => (change === undefined ? wake() : this.#mark(namespaceOf(change.key))),
      {
        ...{ name: "EndpointSlices", path: collectionPath(ENDPOINT_SLICES) },
        labelSelector: `${MANAGED_BY_LABEL}=${MANAGER}`,
        ...{ decode: decodeSlice, budgeted: { budget, reduce: reduceSlice } },
      },
    );
    this.#loop = startReconciling(deps, {
      failure: "Writing EndpointSlices failed",
      work: () => this.#reconcile(),
      restMs: () => SERVICES_REST_MS,
      follow: () => [
        caches.allocations.subscribe((change) => this.#onAllocation(change)),
        caches.coordinators.subscribe(() => {
          for (const namespace of this.#homes.keys()) this.#mark(namespace);
        }),
      ],
    });
  }

  get problems(): readonly string[] {
    const followed = [this.#services, this.#slices, ...[...this.#homes.values()].map(({ pods }) => pods)];
    return [...followed.flatMap(({ problems }) => problems), ...this.#loop.problems];
  }

  async close(): Promise<void> {
    await this.#loop.close();
    for (const { pods } of this.#homes.values()) await pods.close();
    await this.#slices.close();
    await this.#services.close();
  }

  #mark(namespace: string): void {
    this.#due.add(namespace);
    this.#loop.wake();
  }

  #onService(change: Change<NetworkService | FaultyService>): void {
    this.#mark(namespaceOf(change.key));
    if (change.kind === "gone") return;
    const { namespace, name, uid, fault } = change.value;
    if (fault === undefined || (change.before?.uid === uid && change.before.fault === fault)) return;
    this.#deps.events.emit({
      regarding: { kind: "Service", apiVersion: "v1", namespace, name, uid },
      reason: "NoEndpointsFromNetwork",
      note: `Berth writes no EndpointSlices for this Service: ${fault}`,
      type: "Warning",
      action: "WriteEndpoints",
    });
  }

  #onAllocation({ key, before, ...change }: Change<CachedAllocation>): void {
    const after = "value" in change ? change.value : undefined;
    for (const { namespace } of before?.spec.holders ?? [])
      if (this.#homes.get(namespace)?.allocations.delete(key)) this.#mark(namespace);
    if (after !== undefined) this.#note(key, after);
  }

  #note(key: string, allocation: CachedAllocation): void {
    if (this.#homes.size === 0 || allocation.spec.state !== "Bound") return;
    for (const { namespace } of allocation.spec.holders)
      if (this.#homes.get(namespace)?.allocations.set(key, allocation)) this.#mark(namespace);
  }

  async #reconcile(): Promise<number | undefined> {
    // Objects that are not known yet must not be taken for absent.
    if (!this.#services.isSynced || !this.#slices.isSynced) return undefined;
    const due = [...this.#due];
    const services = Map.groupBy(this.#services.items.values(), ({ namespace }) => namespace);
    const slices = Map.groupBy(this.#slices.items.values(), ({ namespace }) => namespace);
    const refusals = new RefusalsOf();
    await inParallel(due, NAMESPACES_AT_ONCE, async (namespace) => {
      this.#due.delete(namespace);
      const serve = () => this.#serve(namespace, services.get(namespace) ?? [], slices.get(namespace) ?? []);
      let isDone: boolean | undefined;
      try {
        isDone = await refusals.attempt(serve);
      } finally {
        if (isDone !== true) this.#due.add(namespace);
      }
    });
    return refusals.require(due.some((namespace) => this.#due.has(namespace)) ? TAKEN_RETRY_MS : undefined);
  }

  /** Returns whether all changes are written. */
  async #serve(
    namespace: string,
    all: readonly (NetworkService | FaultyService)[],
    slices: readonly KnownSlice[],
  ): Promise<boolean> {
    const services = all.filter((service) => service.fault === undefined);
    const home = services.length === 0 ? await this.#leave(namespace) : this.#enter(namespace);
    // The reflector wakes the loop when it is.
    if (home?.pods.isSynced === false) return true;
    const backends = {
      pods: home?.pods.items.values().toArray() ?? [],
      addressesOf: addressesIn(namespace, home?.allocations.values() ?? []),
      firstNic: firstNicOf(this.#deps.caches),
    };
    const byName = new Map(services.map((service) => [service.name, service]));
    const names = new Set([...byName.keys(), ...slices.map(({ service }) => service)]);
    let isDone = true;
    const refusals = new RefusalsOf();
    for (const name of names) {
      // A namespace may have very many, and pods.
      await setImmediate();
      const own = slices.filter((slice) => slice.service === name);
      const plan = planSlices(byName.get(name), backends, own);
      if ((await refusals.attempt(() => this.#write(namespace, plan))) !== true) isDone = false;
    }
    refusals.require();
    return isDone;
  }

  #enter(namespace: string): Home {
    const known = this.#homes.get(namespace);
    if (known !== undefined) return known;
    const { caches } = this.#deps;
    const pods = followObjects<BackendPod>(this.#deps, () => this.#mark(namespace), {
      name: `pods of namespace ${namespace}`,
      path: collectionPath(PODS, namespace),
      fieldSelector: LIVE_PODS,
      decode: decodeBackendPod,
      budgeted: { budget: caches.budget },
    });
    const home = { pods, allocations: new Map() };
    this.#homes.set(namespace, home);
    for (const [key, allocation] of caches.allocations.items) this.#note(key, allocation);
    return home;
  }

  async #leave(namespace: string): Promise<undefined> {
    const home = this.#homes.get(namespace);
    this.#homes.delete(namespace);
    await home?.pods.close();
  }

  async #write(namespace: string, { create, change, remove }: SlicePlan): Promise<boolean> {
    const { api, leading: signal } = this.#deps;
    let isDone = true;
    // New slices first: a Service is not without endpoints in between.
    for (const { name, family, ...content } of create) {
      const { metadata, ...own } = encodeSlice(content);
      const kind = { apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", addressType: `IPv${family}` };
      const body = { ...kind, ...own, metadata: { ...metadata, name } };
      const path = collectionPath(ENDPOINT_SLICES, namespace);
      isDone = (await isMade(api, { method: "POST", path, body, signal })) && isDone;
    }
    for (const { slice, ...content } of change) {
      const { name, uid, resourceVersion } = slice;
      const path = objectPath(ENDPOINT_SLICES, { namespace, name });
      const patch = { path, uid, resourceVersion, body: encodeSlice(content), signal };
      isDone = (await patchIfSame(api, patch)) !== undefined && isDone;
    }
    for (const { name, uid, resourceVersion } of remove) {
      const path = objectPath(ENDPOINT_SLICES, { namespace, name });
      const body = { preconditions: { uid, resourceVersion } };
      isDone = (await isMade(api, { method: "DELETE", path, body, signal })) && isDone;
    }
    return isDone;
  }
}

/** Returns whether the object was as expected. */
function isMade(api: Pick<KubeApi, "call">, call: KubeCall): Promise<boolean> {
  return callIfThere(api, call).then(() => true, orElse(isConflict, false));
}

function namespaceOf(key: string): string {
  return key.slice(0, key.indexOf("/"));
}

/** Returns a function that finds the addresses of this very pod's records, not of one of its name before. */
function addressesIn(home: string, allocations: Iterable<CachedAllocation>) {
  const keyOf = (...parts: readonly unknown[]): string => parts.join("/");
  const found = new Map<string, Ip[]>();
  for (const { spec } of allocations)
    for (const { namespace, pod, ifName, uidHash } of spec.holders)
      found.getOrInsertComputed(keyOf(namespace, pod, ifName, uidHash), () => []).push(spec.ip);
  return ({ name, uid }: BackendPod, ifName: string) => found.get(keyOf(home, name, ifName, hashUid(uid))) ?? [];
}
