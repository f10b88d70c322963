/**
 * The workloads that name Subnets, as the controller follows them (docs/subnets.md).
 * Effects: watches; calls of the API server.
 */

import { isDeepStrictEqual } from "node:util";
import type { KubeApi, KubeObject } from "../../kubernetes/kube-api.ts";
import { keyOf } from "../../kubernetes/object-key.ts";
import { collectionPath, NETWORK_DEFINITIONS, PODS } from "../../kubernetes/paths.ts";
import { Reflector, type ReflectorOptions } from "../../kubernetes/reflector.ts";
import { Listeners } from "../../lib/listeners.ts";
import type { Log } from "../../lib/log.ts";
import type { Liveness, PoolOwners } from "../types.ts";
import { lookAt } from "./liveness.ts";
import { isServedByBerth, type NetworkProvider } from "./plan-nic-requests.ts";
import { findKind, LIVE_PODS, POOL_OWNER_KINDS, readPod } from "./pool-owner-kinds.ts";
import type { TrackedObject } from "./tracked-object.ts";
import { TrackedOwners } from "./tracked-owners.ts";

export interface PoolOwnersOptions {
  readonly api: KubeApi;
  readonly log: Log;
  /** In [0, 1). */
  readonly random: () => number;
}

export interface OpenPoolOwners extends PoolOwners {
  /** Resolves when every list was complete once. Rejects with the signal's reason. */
  synced(signal?: AbortSignal): Promise<void>;
  /** Sentences without their end. */
  readonly problems: readonly string[];
  close(): Promise<void>;
}

/** Starts to follow at once. */
export function openPoolOwners({ api, log, random }: PoolOwnersOptions): OpenPoolOwners {
  const listeners = new Listeners<void>((error) => log.error({ err: error }, "A change of workloads was not taken in"));
  const tell = (): void => listeners.tell();
  const sightOf = (name: string): NetworkProvider => {
    const isServed = definitions.items.get(name);
    return isServed === undefined ? "unknown" : isServed ? "berth" : "foreign";
  };
  const roster = new TrackedOwners(sightOf);
  const common = { api, log, random, keyOf };
  type Own = Pick<ReflectorOptions<TrackedObject>, "path" | "fieldSelector" | "metadataOnly"> & {
    readonly name: string;
    readonly kind: string;
    readonly read: (object: KubeObject, source: string, before: TrackedObject | undefined) => TrackedObject | undefined;
  };
  const follow = ({ kind, read, ...own }: Own): Reflector<TrackedObject> =>
    new Reflector<TrackedObject>({
      ...{ ...common, ...own },
      decode: (object, before) => keepEqual(read(object, `${kind} "${keyOf(object)}"`, before), before),
      onChange: (change) => {
        if (change.kind === "set" && change.value === change.before) return;
        roster.update(`${kind} ${change.key}`, change.before, change.kind === "set" ? change.value : undefined);
        tell();
      },
    });
  const workloads = POOL_OWNER_KINDS.map(({ kind, apiVersion, plural, read }) =>
    follow({ kind, read, name: plural, path: collectionPath({ apiVersion, plural }) }),
  );
  const pods = follow({
    ...{ kind: "Pod", read: readPod, name: "pods of other workloads", path: collectionPath(PODS) },
    ...{ fieldSelector: LIVE_PODS, metadataOnly: true },
  });
  const definitions = new Reflector<boolean>({
    ...{ ...common, name: "NetworkAttachmentDefinitions", path: collectionPath(NETWORK_DEFINITIONS), optional: true },
    decode: isServedByBerth,
    onChange: (change) => {
      if (change.kind === "set" && change.value === change.before) return;
      roster.invalidate();
      tell();
    },
  });
  const reflectors = [definitions, ...workloads, pods];
  for (const reflector of reflectors) reflector.start();
  /** Of a kind that is not followed: it has a pod or a ReplicaSet that names Subnets. */
  const sight = (application: Parameters<PoolOwners["readLiveness"]>[0]): Liveness => {
    if (roster.has(application)) return "alive";
    // What nobody could read may be there.
    return reflectors.every(({ isSynced, problems }) => isSynced && problems.length === 0) ? "gone" : "unknown";
  };
  return {
    demands: (settings) => roster.demands(settings),
    subscribe: (listener) => listeners.add(listener),
    readLiveness: async (application, signal) => {
      const kind = findKind(application);
      return kind === undefined ? sight(application) : lookAt(api, kind, application, signal);
    },
    synced: async (signal) => void (await Promise.all(reflectors.map((reflector) => reflector.synced(signal)))),
    get problems() {
      return reflectors.flatMap(({ problems }) => problems);
    },
    close: async () => void (await Promise.all(reflectors.map((reflector) => reflector.close()))),
  };
}

/** Most changes of an object are none here: what was planned for it stays. */
function keepEqual(now: TrackedObject | undefined, before: TrackedObject | undefined): TrackedObject | undefined {
  return isDeepStrictEqual(now, before) ? before : now;
}
