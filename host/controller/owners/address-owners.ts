/**
 * The owners of retained addresses: StatefulSets, KubeVirt's machines and IPAMClaims (docs/workloads.md). The watches
 * only tell when an owner is worth checking; the check itself is a GET.
 */

import type { HeapBudget } from "../../kubernetes/heap-budget.ts";
import type { KubeApi, KubeObject } from "../../kubernetes/kube-api.ts";
import type { Change } from "../../kubernetes/mirror.ts";
import { describeObject, keyOf } from "../../kubernetes/object-key.ts";
import { ADDRESS_OWNERS, collectionPath, type Resource } from "../../kubernetes/paths.ts";
import { Reflector } from "../../kubernetes/reflector.ts";
import { Listeners } from "../../lib/listeners.ts";
import type { Log } from "../../lib/log.ts";
import type { Workload } from "../../resources/member.ts";
import { decodeStatefulSet, hasMember } from "../../resources/workloads/stateful-set.ts";
import { decodeMachine } from "../../resources/workloads/virtual-machine.ts";
import type { AddressOwners, Liveness } from "../types.ts";
import { readLiveness, requireUid } from "./liveness.ts";

/** The state that a watch keeps of an owner. */
interface AddressOwnerState {
  readonly uid: string;
  /** Differs whenever the owner retains the addresses of other members than before. */
  readonly retains: string;
}

interface AddressOwnerKind extends Resource {
  readonly kind: Workload["kind"];
  /** The API server may not know the kind. */
  readonly isOptional: boolean;
  /** Throws ConfigError. */
  readonly read: (object: KubeObject, source: string) => AddressOwnerState;
  /** Whether the live object, which has the workload's UID, retains the member's addresses. Throws ConfigError. */
  readonly retains: (object: KubeObject, workload: Workload, source: string) => boolean;
}

const byUid = (object: KubeObject, source: string): AddressOwnerState => ({
  uid: requireUid(object, source),
  retains: "",
});

const ADDRESS_OWNER_KINDS: readonly AddressOwnerKind[] = [
  {
    kind: "StatefulSet",
    ...ADDRESS_OWNERS.StatefulSet,
    isOptional: false,
    read: (object, source) => {
      const { uid, start, replicas } = decodeStatefulSet(object, source);
      return { uid, retains: `${start}+${replicas}` };
    },
    retains: (object, { name, member }, source) => hasMember(name, decodeStatefulSet(object, source), member),
  },
  {
    // A machine that is stopped retains its addresses.
    kind: "VirtualMachine",
    ...ADDRESS_OWNERS.VirtualMachine,
    isOptional: true,
    read: byUid,
    retains: () => true,
  },
  {
    // Created without a VirtualMachine: it runs once.
    kind: "VirtualMachineInstance",
    ...ADDRESS_OWNERS.VirtualMachineInstance,
    isOptional: true,
    read: (object, source) => {
      const { uid, isFinished } = decodeMachine(object, source);
      return { uid, retains: `${!isFinished}` };
    },
    retains: (object, _workload, source) => !decodeMachine(object, source).isFinished,
  },
  { kind: "IPAMClaim", ...ADDRESS_OWNERS.IPAMClaim, isOptional: true, read: byUid, retains: () => true },
];

interface AddressOwnersOptions {
  readonly api: KubeApi;
  readonly budget: HeapBudget;
  readonly log: Log;
  /** Returns a number in [0, 1). */
  readonly random: () => number;
}

export interface OpenAddressOwners extends AddressOwners {
  /**
   * Resolves when every first list is complete; changes are reported from then on. Rejects with the signal's reason.
   */
  synced(signal?: AbortSignal): Promise<void>;
  /** Sentences without a full stop. */
  readonly problems: readonly string[];
  close(): Promise<void>;
}

/** Starts to watch at once. */
export function openAddressOwners({ api, budget, log, random }: AddressOwnersOptions): OpenAddressOwners {
  const listeners = new Listeners<string>((error, uid) => {
    log.error({ err: error, uid }, "Internal error while handling a change of an address owner");
  });
  const byKind = new Map<string, Reflector<AddressOwnerState>>();
  for (const { kind, apiVersion, plural, isOptional, read } of ADDRESS_OWNER_KINDS)
    byKind.set(
      kind,
      new Reflector<AddressOwnerState>({
        api,
        log,
        random,
        keyOf,
        name: `${plural} as address owners`,
        path: collectionPath({ apiVersion, plural }),
        optional: isOptional,
        decode: (object) => read(object, describeObject(object)),
        budgeted: { budget },
        onChange: (change) => {
          const uid = findReducedOwner(change);
          if (uid !== undefined) listeners.tell(uid);
        },
      }),
    );
  const reflectors = [...byKind.values()];
  for (const reflector of reflectors) reflector.start();
  return {
    readLiveness: (workload, signal) => readOwner(api, workload, signal),
    findUid: ({ kind, namespace, name }) => byKind.get(kind)?.items.get(`${namespace}/${name}`)?.uid,
    subscribe: (listener) => listeners.add(listener),
    synced: async (signal) => void (await Promise.all(reflectors.map((reflector) => reflector.synced(signal)))),
    get problems() {
      return reflectors.flatMap(({ problems }) => problems);
    },
    close: async () => void (await Promise.all(reflectors.map((reflector) => reflector.close()))),
  };
}

/** Returns the UID of an owner that may retain less than before; undefined if it cannot. */
function findReducedOwner(change: Change<AddressOwnerState>): string | undefined {
  const { before } = change;
  if (before === undefined) return undefined;
  if (change.kind === "gone") return before.uid;
  const { uid, retains } = change.value;
  return uid === before.uid && retains === before.retains ? undefined : before.uid;
}

async function readOwner(api: KubeApi, workload: Workload, signal: AbortSignal): Promise<Liveness> {
  const resource = ADDRESS_OWNER_KINDS.find(({ kind }) => kind === workload.kind);
  if (resource === undefined || workload.namespace === "") return "unknown";
  const source = `${workload.kind} "${workload.namespace}/${workload.name}"`;
  const isAlive = (object: KubeObject) => resource.retains(object, workload, source);
  return readLiveness(api, { resource, owner: workload, isAlive, signal });
}
