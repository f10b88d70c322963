/**
 * The allocations that name this node: a watch reports to the registry at once when a record vanishes, and the reconciler compares them with the
 * journal at the start and every few minutes (undo, recreate; docs/decisions/0018).
 */
import type { Change } from "../../kubernetes/mirror.ts";
import { Reflector, type ReflectorStats } from "../../kubernetes/reflector.ts";
import type { ObjectChange } from "../../registry/kubernetes/object-sync.ts";
import { API_PATH } from "../../resources/fields/metadata.ts";
import { decodeIpAllocation, type IpAllocation } from "../../resources/ip-allocation.ts";
import type { LostAddresses } from "./lost-addresses.ts";
import {
  type ReconciledRegistry,
  type ReconcileReport,
  Reconciler,
  type ReconcilerDeps,
  type ReconcilerOptions,
} from "./reconciler.ts";

interface OwnAllocationsDeps extends Omit<ReconcilerDeps, "objects" | "registry" | "lost"> {
  readonly registry: ReconciledRegistry & { observe(change: ObjectChange): void };
  /** The one that the registry's `onLost` reports to. */
  readonly lost: LostAddresses;
}

export class OwnAllocations {
  readonly #lost: LostAddresses;
  readonly #reflector: Reflector<IpAllocation>;
  readonly #reconciler: Reconciler;

  constructor(deps: OwnAllocationsDeps, options: ReconcilerOptions) {
    const { api, node, registry, log } = deps;
    this.#lost = deps.lost;
    this.#reflector = new Reflector<IpAllocation>({
      api,
      log,
      random: options.random,
      name: "allocations of this node",
      path: `${API_PATH}/ipallocations`,
      fieldSelector: `spec.node=${node}`,
      decode: (object) => decodeIpAllocation(object, "API server"),
      keyOf: ({ metadata }) => String(Object(metadata).name),
      onChange: (change) => {
        registry.observe(changeOf(change));
        // This node was taken for lost, or is asked to probe another node's address.
        if (change.kind === "set" && change.value.spec.quarantine?.reason === "NodeLost") this.#reconciler.hasten();
      },
      onSynced: () => this.#reconciler.wake(),
    });
    this.#reconciler = new Reconciler({ ...deps, objects: this.#reflector }, options);
    this.#reflector.start();
  }

  /** Resolves after the first reconciliation: an ADD before that might give a pod another address than it has. Rejects with the signal's reason. */
  reconciled(signal: AbortSignal): Promise<void> {
    return this.#reconciler.reconciled(signal);
  }

  /** The journal no longer explains an object of this node: makes a reconciliation due now. */
  hasten(): void {
    this.#reconciler.hasten();
  }

  /** Reconciles now. Returns undefined before the first list; rejects when the API server or the journal does not answer. */
  reconcile(): Promise<ReconcileReport | undefined> {
    return this.#reconciler.reconcile();
  }

  /** Sentences without a full stop. */
  get problems(): readonly string[] {
    return [...this.#reflector.problems, ...this.#lost.problems];
  }

  get stats(): ReflectorStats & { readonly objects: number; readonly lost: number } {
    return { ...this.#reflector.stats, objects: this.#reflector.items.size, lost: this.#lost.count };
  }

  async close(): Promise<void> {
    await this.#reflector.close();
    await this.#reconciler.close();
  }
}

function changeOf(change: Change<IpAllocation>): ObjectChange {
  if (change.kind === "set") return { kind: "object", object: change.value };
  return { kind: "gone", name: change.key, uid: change.before.uid };
}
