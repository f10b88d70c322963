/**
 * What keeps addresses, as the controller asks for it: StatefulSets, KubeVirt's machines and IPAMClaims (allocation rule 8, docs/workloads.md).
 * The watches only tell when a look is worth while; the look itself is a GET (allocation rule 16).
 * Opened once per process by open-controller.ts, whether it leads or not.
 * Effects: watches; calls of the API server.
 */
import { ConfigError } from "../../config/config-error.ts";
import { ApiError, ApiUnavailable, type KubeApi, type KubeObject } from "../../kubernetes/kube-api.ts";
import { describeObject, keyOf } from "../../kubernetes/object-key.ts";
import { type Change, Reflector } from "../../kubernetes/reflector.ts";
import { Listeners } from "../../lib/listeners.ts";
import type { Log } from "../../lib/log.ts";
import type { Workload } from "../../resources/ip-allocation.ts";
import type { Liveness, Workloads } from "../types.ts";
import { ADDRESS_OWNER_KINDS, type AddressOwnerEvents, type AddressOwnerKind } from "./kinds.ts";
import { requireUid } from "./uid.ts";

export interface WorkloadsOptions {
  readonly api: KubeApi;
  readonly log: Log;
  /** In [0, 1). */
  readonly random: () => number;
}

export interface OpenWorkloads extends Workloads {
  /** Resolves when every list was complete once: from then on changes are told. Rejects with the signal's reason. */
  synced(signal?: AbortSignal): Promise<void>;
  /** Sentences without their end. */
  readonly problems: readonly string[];
  close(): Promise<void>;
}

/** Starts to follow at once. */
export function openAddressOwners({ api, log, random }: WorkloadsOptions): OpenWorkloads {
  const listeners = new Listeners<string>((error, uid) => {
    log.error({ err: error, uid }, "News of a workload were not taken in");
  });
  const reflectors = ADDRESS_OWNER_KINDS.map(
    ({ group, plural, isOptional, read }) =>
      new Reflector<AddressOwnerEvents>({
        ...{ api, log, random, keyOf, name: plural, path: `${group}/${plural}`, optional: isOptional },
        decode: (object) => read(object, describeObject(object)),
        onChange: (change) => {
          const uid = findWorthALook(change);
          if (uid !== undefined) listeners.tell(uid);
        },
      }),
  );
  for (const reflector of reflectors) reflector.start();
  return {
    look: (workload, signal) => look(api, workload, signal),
    subscribe: (listener) => listeners.add(listener),
    synced: async (signal) => void (await Promise.all(reflectors.map((reflector) => reflector.synced(signal)))),
    get problems() {
      return reflectors.flatMap(({ problems }) => problems);
    },
    close: async () => void (await Promise.all(reflectors.map((reflector) => reflector.close()))),
  };
}

/** Of a workload that may keep less than before; undefined when it does not. */
function findWorthALook(change: Change<AddressOwnerEvents>): string | undefined {
  const { before } = change;
  if (before === undefined) return undefined;
  if (change.kind === "gone") return before.uid;
  const { uid, keeps } = change.value;
  return uid === before.uid && keeps === before.keeps ? undefined : before.uid;
}

async function look(api: KubeApi, workload: Workload, signal: AbortSignal): Promise<Liveness> {
  const found = ADDRESS_OWNER_KINDS.find(({ kind }) => kind === workload.kind);
  if (found === undefined || workload.namespace === "") return "unknown";
  try {
    return sight(found, workload, await api.call({ method: "GET", path: pathOf(found, workload), signal }));
  } catch (error) {
    signal.throwIfAborted();
    // A server that does not know the kind (any more, or not yet) answers 404, too, but without a reason.
    if (error instanceof ApiError) return error.status === 404 && error.reason === "NotFound" ? "gone" : "unknown";
    if (error instanceof ApiUnavailable || error instanceof ConfigError) return "unknown";
    throw error;
  }
}

function sight({ keeps }: AddressOwnerKind, workload: Workload, object: KubeObject): Liveness {
  const source = `${workload.kind} "${workload.namespace}/${workload.name}"`;
  if (requireUid(object, source) !== workload.uid) return "gone";
  return keeps(object, workload, source) ? "lives" : "gone";
}

function pathOf({ group, plural }: AddressOwnerKind, { namespace, name }: Workload): string {
  return `${group}/namespaces/${encodeURIComponent(namespace)}/${plural}/${encodeURIComponent(name)}`;
}
