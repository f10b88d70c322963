/**
 * The workloads that name Subnets, as the controller follows them (docs/subnets.md).
 * Opened once per process by open-controller.ts, whether it leads or not.
 * Effects: watches; calls of the API server.
 */
import { isDeepStrictEqual } from "node:util";
import type { KubeApi, KubeObject } from "../../kubernetes/kube-api.ts";
import { keyOf } from "../../kubernetes/object-key.ts";
import { Reflector, type ReflectorOptions } from "../../kubernetes/reflector.ts";
import { Listeners } from "../../lib/listeners.ts";
import type { Log } from "../../lib/log.ts";
import type { Liveness, PoolOwners } from "../types.ts";
import { FOLLOWED_KINDS, findKind } from "./kinds.ts";
import { lookAt } from "./look.ts";
import type { AttachmentSight } from "./plan-wishes.ts";
import { isServedByBerth } from "./read-attachment.ts";
import { LIVE_PODS, readPod } from "./read-pod.ts";
import { Roster } from "./roster.ts";
import type { Tracked } from "./tracked.ts";

export interface ApplicationsOptions {
  readonly api: KubeApi;
  readonly log: Log;
  /** In [0, 1). */
  readonly random: () => number;
}

export interface OpenApplications extends PoolOwners {
  /** Resolves when every list was complete once. Rejects with the signal's reason. */
  synced(signal?: AbortSignal): Promise<void>;
  /** Sentences without their end. */
  readonly problems: readonly string[];
  close(): Promise<void>;
}

const DEFINITIONS = "/apis/k8s.cni.cncf.io/v1/network-attachment-definitions";

/** Starts to follow at once. */
export function openPoolOwners({ api, log, random }: ApplicationsOptions): OpenApplications {
  const listeners = new Listeners<void>((error) => log.error({ err: error }, "A change of workloads was not taken in"));
  const tell = (): void => listeners.tell();
  const sightOf = (name: string): AttachmentSight => {
    const isServed = definitions.items.get(name);
    return isServed === undefined ? "unknown" : isServed ? "berth" : "foreign";
  };
  const roster = new Roster(sightOf);
  const common = { api, log, random, keyOf };
  type Own = Pick<ReflectorOptions<Tracked>, "path" | "fieldSelector" | "metadataOnly"> & {
    readonly name: string;
    readonly kind: string;
    readonly read: (object: KubeObject, source: string, before: Tracked | undefined) => Tracked | undefined;
  };
  const follow = ({ kind, read, ...own }: Own): Reflector<Tracked> =>
    new Reflector<Tracked>({
      ...{ ...common, ...own },
      decode: (object, before) => keepEqual(read(object, `${kind} "${keyOf(object)}"`, before), before),
      onChange: (change) => {
        if (change.kind === "set" && change.value === change.before) return;
        roster.change(`${kind} ${change.key}`, change.before, change.kind === "set" ? change.value : undefined);
        tell();
      },
    });
  const workloads = FOLLOWED_KINDS.map(({ kind, apiVersion, plural, read }) =>
    follow({ kind, read, name: plural, path: `/apis/${apiVersion}/${plural}` }),
  );
  const pods = follow({
    ...{ kind: "Pod", read: readPod, name: "pods of other workloads", path: "/api/v1/pods" },
    ...{ fieldSelector: LIVE_PODS, metadataOnly: true },
  });
  const definitions = new Reflector<boolean>({
    ...{ ...common, name: "NetworkAttachmentDefinitions", path: DEFINITIONS, optional: true },
    decode: isServedByBerth,
    onChange: (change) => {
      if (change.kind === "set" && change.value === change.before) return;
      roster.forget();
      tell();
    },
  });
  const reflectors = [definitions, ...workloads, pods];
  for (const reflector of reflectors) reflector.start();
  /** Of a kind that is not followed: it has a pod or a ReplicaSet that names Subnets. */
  const sight = (application: Parameters<PoolOwners["look"]>[0]): Liveness => {
    if (roster.has(application)) return "lives";
    // What nobody could read may be there.
    return reflectors.every(({ isSynced, problems }) => isSynced && problems.length === 0) ? "gone" : "unknown";
  };
  return {
    demands: (settings) => roster.demands(settings),
    subscribe: (listener) => listeners.add(listener),
    look: async (application, signal) => {
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
function keepEqual(now: Tracked | undefined, before: Tracked | undefined): Tracked | undefined {
  return isDeepStrictEqual(now, before) ? before : now;
}
