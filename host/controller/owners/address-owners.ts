/**
 * What keeps addresses, as the controller asks for it: StatefulSets, KubeVirt's machines and IPAMClaims (allocation rule 8, docs/workloads.md).
 * The watches only tell when a look is worth while; the look itself is a GET (allocation rule 16).
 * Effects: watches; calls of the API server.
 */

import { ConfigError } from "../../config/config-error.ts";
import { ApiError, ApiUnavailable, type KubeApi, type KubeObject } from "../../kubernetes/kube-api.ts";
import type { Change } from "../../kubernetes/mirror.ts";
import { describeObject, keyOf } from "../../kubernetes/object-key.ts";
import { collectionPath, objectPath, type Resource } from "../../kubernetes/paths.ts";
import { Reflector } from "../../kubernetes/reflector.ts";
import { Listeners } from "../../lib/listeners.ts";
import type { Log } from "../../lib/log.ts";
import type { Workload } from "../../resources/ip-allocation.ts";
import { decodeStatefulSet, hasMember } from "../../resources/workloads/stateful-set.ts";
import { decodeMachine } from "../../resources/workloads/virtual-machine.ts";
import type { AddressOwners, Liveness } from "../types.ts";
import { requireUid } from "./uid.ts";

/** What a watch keeps of an object. */
export interface AddressOwnerState {
  readonly uid: string;
  /** Which of its members it keeps; another text is another answer. */
  readonly retains: string;
}

export interface AddressOwnerKind extends Resource {
  readonly kind: Workload["kind"];
  /** Of another project: the API server may not know it. */
  readonly isOptional: boolean;
  /** Throws ConfigError for what cannot be understood. */
  readonly read: (object: KubeObject, source: string) => AddressOwnerState;
  /** Whether the live object, whose UID is the workload's, keeps what it has for the member. Throws ConfigError. */
  readonly retains: (object: KubeObject, workload: Workload, source: string) => boolean;
}

const byUid = (object: KubeObject, source: string): AddressOwnerState => ({
  uid: requireUid(object, source),
  retains: "",
});

const ADDRESS_OWNER_KINDS: readonly AddressOwnerKind[] = [
  {
    ...{ kind: "StatefulSet", apiVersion: "apps/v1", plural: "statefulsets", isOptional: false },
    read: (object, source) => {
      const { uid, start, replicas } = decodeStatefulSet(object, source);
      return { uid, retains: `${start}+${replicas}` };
    },
    retains: (object, { name, member }, source) => hasMember(name, decodeStatefulSet(object, source), member),
  },
  {
    // One that is stopped keeps what it has.
    ...{ kind: "VirtualMachine", apiVersion: "kubevirt.io/v1", plural: "virtualmachines", isOptional: true },
    ...{ read: byUid, retains: () => true },
  },
  {
    // Made without a VirtualMachine: it runs once.
    ...{ kind: "VirtualMachineInstance", apiVersion: "kubevirt.io/v1", plural: "virtualmachineinstances" },
    isOptional: true,
    read: (object, source) => {
      const { uid, isFinished } = decodeMachine(object, source);
      return { uid, retains: `${!isFinished}` };
    },
    retains: (object, _workload, source) => !decodeMachine(object, source).isFinished,
  },
  {
    ...{ kind: "IPAMClaim", apiVersion: "k8s.cni.cncf.io/v1alpha1", plural: "ipamclaims", isOptional: true },
    ...{ read: byUid, retains: () => true },
  },
];

export interface AddressOwnersOptions {
  readonly api: KubeApi;
  readonly log: Log;
  /** In [0, 1). */
  readonly random: () => number;
}

export interface OpenAddressOwners extends AddressOwners {
  /** Resolves when every list was complete once: from then on changes are told. Rejects with the signal's reason. */
  synced(signal?: AbortSignal): Promise<void>;
  /** Sentences without their end. */
  readonly problems: readonly string[];
  close(): Promise<void>;
}

/** Starts to follow at once. */
export function openAddressOwners({ api, log, random }: AddressOwnersOptions): OpenAddressOwners {
  const listeners = new Listeners<string>((error, uid) => {
    log.error({ err: error, uid }, "News of a workload were not taken in");
  });
  const reflectors = ADDRESS_OWNER_KINDS.map(
    ({ apiVersion, plural, isOptional, read }) =>
      new Reflector<AddressOwnerState>({
        ...{
          api,
          log,
          random,
          keyOf,
          name: plural,
          path: collectionPath({ apiVersion, plural }),
          optional: isOptional,
        },
        decode: (object) => read(object, describeObject(object)),
        onChange: (change) => {
          const uid = findWorthALook(change);
          if (uid !== undefined) listeners.tell(uid);
        },
      }),
  );
  for (const reflector of reflectors) reflector.start();
  return {
    readLiveness: (workload, signal) => look(api, workload, signal),
    subscribe: (listener) => listeners.add(listener),
    synced: async (signal) => void (await Promise.all(reflectors.map((reflector) => reflector.synced(signal)))),
    get problems() {
      return reflectors.flatMap(({ problems }) => problems);
    },
    close: async () => void (await Promise.all(reflectors.map((reflector) => reflector.close()))),
  };
}

/** Of a workload that may keep less than before; undefined when it does not. */
function findWorthALook(change: Change<AddressOwnerState>): string | undefined {
  const { before } = change;
  if (before === undefined) return undefined;
  if (change.kind === "gone") return before.uid;
  const { uid, retains } = change.value;
  return uid === before.uid && retains === before.retains ? undefined : before.uid;
}

async function look(api: KubeApi, workload: Workload, signal: AbortSignal): Promise<Liveness> {
  const found = ADDRESS_OWNER_KINDS.find(({ kind }) => kind === workload.kind);
  if (found === undefined || workload.namespace === "") return "unknown";
  try {
    return sight(found, workload, await api.call({ method: "GET", path: objectPath(found, workload), signal }));
  } catch (error) {
    signal.throwIfAborted();
    // A server that does not know the kind (any more, or not yet) answers 404, too, but without a reason.
    if (error instanceof ApiError) return error.status === 404 && error.reason === "NotFound" ? "gone" : "unknown";
    if (error instanceof ApiUnavailable || error instanceof ConfigError) return "unknown";
    throw error;
  }
}

function sight({ retains }: AddressOwnerKind, workload: Workload, object: KubeObject): Liveness {
  const source = `${workload.kind} "${workload.namespace}/${workload.name}"`;
  if (requireUid(object, source) !== workload.uid) return "gone";
  return retains(object, workload, source) ? "alive" : "gone";
}
