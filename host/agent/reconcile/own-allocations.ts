/**
 * The allocations that name this node: compared with the journal at the start, when the controller's notices say so,
 * when a watch of this node lists anew, and from time to time (undo, recreate; docs/decisions/0035).
 */
import type { Change } from "../../kubernetes/mirror.ts";
import { NOTICE_ANNOTATION, type NoticedAllocations, parseNotice } from "../../resources/allocation-notice.ts";
import type { Node } from "../../resources/node.ts";
import type { LostAddresses } from "../gc/lost-addresses.ts";
import { type ReconcileReport, Reconciler, type ReconcilerDeps, type ReconcilerOptions } from "./reconciler.ts";

interface OwnAllocationsDeps extends Omit<ReconcilerDeps, "lost"> {
  /** The one that the registry's `onLost` reports to. */
  readonly lost: LostAddresses;
}

export class OwnAllocations {
  readonly #lost: LostAddresses;
  readonly #reconciler: Reconciler;
  /** UID of this node's Node object as last seen. */
  #nodeUid: string | undefined;
  #notice: string | undefined;
  #notices = 0;

  constructor(deps: OwnAllocationsDeps, options: ReconcilerOptions) {
    this.#lost = deps.lost;
    this.#reconciler = new Reconciler(deps, options);
    this.#reconciler.wake();
  }

  /** {@link Reconciler.reconciled} */
  reconciled(signal?: AbortSignal): Promise<void> {
    return this.#reconciler.reconciled(signal);
  }

  /** {@link Reconciler.isCompared} */
  get isCompared(): boolean {
    return this.#reconciler.isCompared;
  }

  /** {@link Reconciler.rowsLost} */
  rowsLost(): void {
    this.#reconciler.rowsLost();
  }

  /** An event of the watch on this node's Node object. */
  nodeChanged(change: Change<Node>): void {
    if (change.kind === "gone") return;
    const { uid, annotations } = change.value;
    const notice = annotations[NOTICE_ANNOTATION];
    // While there was no Node object, no notice could be given.
    if (this.#nodeUid !== undefined && (change.before === undefined || this.#nodeUid !== uid)) this.hasten("all");
    // The first list of the Node shows the last of the notices that came since all were read.
    if (this.#nodeUid === undefined && notice !== undefined && this.#reconciler.hasListed) this.hasten("all");
    this.#nodeUid = uid;
    if (notice === undefined || notice === this.#notice) return;
    this.#notice = notice;
    this.#notices++;
    this.hasten(parseNotice(notice));
  }

  /** These objects may not be what the journal says: makes a reconciliation with them due now. */
  hasten(noticed: NoticedAllocations): void {
    this.#reconciler.hasten(noticed);
  }

  /** Reconciles with all objects now. Rejects when the API server or the journal does not answer. */
  reconcile(): Promise<ReconcileReport> {
    return this.#reconciler.reconcile();
  }

  /** Sentences without a full stop. */
  get problems(): readonly string[] {
    return [...this.#reconciler.problems, ...this.#lost.problems];
  }

  get stats(): { readonly lost: number; readonly notices: number } {
    return { lost: this.#lost.count, notices: this.#notices };
  }

  close(): Promise<void> {
    return this.#reconciler.close();
  }
}
