/**
 * The allocations that name this node: followed by a watch, so that the registry hears at once of a record that vanished, and compared with the
 * journal at the start and every few minutes (allocation rules 4 and 5; docs/decisions/0018).
 * Effects: a watch; those of the reconciler.
 */
import type { Change } from "../../kubernetes/mirror.ts";
import { Reflector, type ReflectorStats } from "../../kubernetes/reflector.ts";
import type { ObjectChange } from "../../registry/kubernetes/object-sync.ts";
import { API_PATH } from "../../resources/fields/metadata.ts";
import { allocationName, decodeIpAllocation, type IpAllocation } from "../../resources/ip-allocation.ts";
import type { LostAddresses } from "./lost-addresses.ts";
import { isObjectOf } from "./plan-reconciliation.ts";
import { type ReconciledRegistry, type ReconcileReport, Reconciler, type ReconcilerTools } from "./reconciler.ts";

export interface OwnAllocationsTools extends Omit<ReconcilerTools, "objects" | "isSynced" | "registry" | "onCompared"> {
  readonly registry: ReconciledRegistry & { observe(change: ObjectChange): void };
  /** The one that the registry's `onLost` tells. */
  readonly lost: LostAddresses;
}

export interface OwnAllocations {
  /** Resolves when journal and objects were compared once: an ADD before that might give a pod another address than it has. */
  compared(signal: AbortSignal): Promise<void>;
  /** Compares now. Rejects when the API server or the journal cannot be asked; undefined before the first list. */
  compare(): Promise<ReconcileReport | undefined>;
  /** Sentences without their end. */
  readonly problems: readonly string[];
  readonly stats: ReflectorStats & { readonly objects: number; readonly lost: number };
  close(): Promise<void>;
}

export function startOwnAllocations(tools: OwnAllocationsTools): OwnAllocations {
  const { api, node, registry, lost, log, random } = tools;
  const reflector = new Reflector<IpAllocation>({
    ...{ api, log, random, name: "allocations of this node" },
    path: `${API_PATH}/ipallocations`,
    fieldSelector: `spec.node=${node}`,
    decode: (object) => decodeIpAllocation(object, "API server"),
    keyOf: ({ metadata }) => String(Object(metadata).name),
    onChange: (change) => {
      registry.observe(changeOf(change));
      // This node was taken for lost, or is told to ask for another one's address.
      if (change.kind === "set" && change.value.spec.quarantine?.reason === "NodeLost") reconciler.hasten();
    },
    onSynced: () => void reconciler.look(),
  });
  const reconciler = new Reconciler({
    ...tools,
    objects: () => reflector.items,
    lists: () => reflector.stats.lists,
    isSynced: () => reflector.isSynced,
    onCompared: () =>
      lost.prune(registry, (row) => {
        const object = reflector.items.get(allocationName(row.ip, row.space));
        return object !== undefined && isObjectOf(row, object, node);
      }),
  });
  reflector.start();
  return {
    compared: (signal) => reconciler.awaitCompared(signal),
    compare: () => reconciler.compare(),
    get problems() {
      return [...reflector.problems, ...lost.problems];
    },
    get stats() {
      return { ...reflector.stats, objects: reflector.items.size, lost: lost.count };
    },
    close: async () => {
      await reflector.close();
      await reconciler.close();
    },
  };
}

function changeOf(change: Change<IpAllocation>): ObjectChange {
  if (change.kind === "set") return { kind: "object", object: change.value };
  return { kind: "gone", name: change.key, uid: change.before.uid };
}
