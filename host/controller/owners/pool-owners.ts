/** The workloads that name Subnets (docs/subnets.md), as the controller follows them. */
import { isDeepStrictEqual } from "node:util";
import { type KubeApi, type KubeObject, METADATA } from "../../kubernetes/kube-api.ts";
import { type Change, valueAfter } from "../../kubernetes/mirror.ts";
import { keyOf } from "../../kubernetes/object-key.ts";
import { collectionPath, NETWORK_DEFINITIONS, PODS } from "../../kubernetes/paths.ts";
import type { Reflector, ReflectorOptions } from "../../kubernetes/reflector.ts";
import { Listeners } from "../../lib/listeners.ts";
import type { Log } from "../../lib/log.ts";
import type { ObjectBudget } from "../../lib/object-budget.ts";
import type { PoolOwner } from "../../resources/fields/subnet-pool.ts";
import { followObjects } from "../follow-objects.ts";
import type { Liveness, PoolOwners, WatchedPods } from "../types.ts";
import { readLiveness } from "./liveness.ts";
import { isServedByBerth, type NetworkProvider } from "./plan-nic-requests.ts";
import { findKind, LIVE_PODS, POOL_OWNER_KINDS, readPod } from "./pool-owner-kinds.ts";
import { readSuccession } from "./read-succession.ts";
import { SeenPods } from "./seen-pods.ts";
import { type TrackedObject, withoutTemplate } from "./tracked-object.ts";
import { TrackedOwners } from "./tracked-owners.ts";

interface PoolOwnersOptions {
  readonly api: KubeApi;
  readonly budget: ObjectBudget;
  readonly log: Log;
  readonly random: () => number;
}

export interface OpenPoolOwners extends PoolOwners {
  readonly pods: WatchedPods;
  /** Resolves when every first list is complete. Rejects with the signal's reason. */
  synced(signal?: AbortSignal): Promise<void>;
  /** Sentences without a full stop. */
  readonly problems: readonly string[];
  close(): Promise<void>;
}

interface Followed extends Pick<ReflectorOptions<TrackedObject>, "path" | "fieldSelector" | "metadataOnly"> {
  readonly name: string;
  readonly kind: string;
  readonly read: (object: KubeObject, source: string, before: TrackedObject | undefined) => TrackedObject | undefined;
}

/** Starts to watch at once. */
export function openPoolOwners({ api, budget, log, random }: PoolOwnersOptions): OpenPoolOwners {
  const listeners = new Listeners<void>((error) =>
    log.error({ err: error }, "Internal error while handling a change of a workload"),
  );
  const providerOf = (name: string): NetworkProvider => {
    const isServed = definitions.items.get(name);
    return isServed === undefined ? "unknown" : isServed ? "berth" : "foreign";
  };
  const owners = new TrackedOwners(providerOf);
  const ending = new Map<string, Set<string>>();
  const noteEnding = (key: string, isEnding: boolean): void => {
    const [namespace = "", name = ""] = key.split("/");
    const names = ending.get(namespace) ?? new Set();
    if (isEnding) ending.set(namespace, names.add(name));
    else if (names.delete(name) && names.size === 0) ending.delete(namespace);
  };
  const from = { api, log, random };
  const follow = ({ kind, read, ...own }: Followed): Reflector<TrackedObject> => {
    const onChange = (change?: Change<TrackedObject>): void => {
      if (change === undefined || isSame(change)) return;
      const now = valueAfter(change);
      if (now?.isEnding !== change.before?.isEnding) noteEnding(change.key, now?.isEnding === true);
      owners.update(`${kind} ${change.key}`, change.before, now);
      listeners.tell();
    };
    return followObjects(from, onChange, {
      ...own,
      decode: (object, before) => keepEqual(read(object, `${kind} "${keyOf(object)}"`, before), before),
      budgeted: { budget, reduce: withoutTemplate },
    });
  };
  const workloads = POOL_OWNER_KINDS.map(({ kind, apiVersion, plural, read }) =>
    follow({ kind, read, name: plural, path: collectionPath({ apiVersion, plural }) }),
  );
  const seen = new SeenPods(() => pods);
  const pods = follow({
    kind: "Pod",
    read: (object, source) => {
      seen.note(object);
      return readPod(object, source);
    },
    name: "pods of other workloads",
    path: collectionPath(PODS),
    fieldSelector: LIVE_PODS,
    metadataOnly: true,
  });
  const onDefinition = (change?: Change<boolean>): void => {
    if (change === undefined || isSame(change)) return;
    owners.invalidate();
    listeners.tell();
  };
  const definitions = followObjects(from, onDefinition, {
    ...{ name: "NetworkAttachmentDefinitions", path: collectionPath(NETWORK_DEFINITIONS) },
    ...{ optional: true, decode: isServedByBerth, budgeted: { budget } },
  });
  const reflectors = [definitions, ...workloads, pods];
  /** A workload of a kind that is not followed is alive while a pod or ReplicaSet of it names Subnets. */
  const findLiveness = (application: PoolOwner): Liveness => {
    if (owners.has(application)) return "alive";
    // Its objects may exist in a collection that cannot be read.
    return reflectors.every(({ isSynced, problems }) => isSynced && problems.length === 0) ? "gone" : "unknown";
  };
  const readOwn: PoolOwners["readLiveness"] = async (application, signal) => {
    const resource = findKind(application);
    if (resource === undefined) return findLiveness(application);
    const { kind, isOver } = resource;
    const { namespace, name } = application;
    const own =
      isOver === undefined
        ? { accept: METADATA }
        : { isAlive: (object: KubeObject) => !isOver(object, `${kind} "${namespace}/${name}"`) };
    return readLiveness(api, { resource, owner: application, signal, ...own });
  };
  return {
    pods: seen,
    ending,
    demands: (settings) => owners.demands(settings),
    subscribe: (listener) => listeners.add(listener),
    readLiveness: readOwn,
    readSuccession: (application, allocations, signal) =>
      readSuccession({ api, application, allocations, readLiveness: readOwn, signal }),
    synced: async (signal) => void (await Promise.all(reflectors.map((reflector) => reflector.synced(signal)))),
    get problems() {
      return reflectors.flatMap(({ problems }) => problems);
    },
    close: async () => void (await Promise.all(reflectors.map((reflector) => reflector.close()))),
  };
}

const isSame = <T>(change: Change<T>): boolean => change.kind === "set" && change.value === change.before;

/** Returns `before` if nothing relevant has changed, so that its planned demands stay valid. */
function keepEqual(now: TrackedObject | undefined, before: TrackedObject | undefined): TrackedObject | undefined {
  return isDeepStrictEqual(now, before) ? before : now;
}
