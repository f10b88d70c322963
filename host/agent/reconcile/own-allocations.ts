/**
 * The allocations that name this node: compared with the journal at the start, when the controller's notices say so,
 * when a watch of this node lists anew, and from time to time (undo, recreate; docs/decisions/0035).
 */
import type { Change } from "../../kubernetes/mirror.ts";
import { NOTICE_ANNOTATION, parseNotice } from "../../resources/allocation-notice.ts";
import type { Node } from "../../resources/node.ts";
import type { LostAddresses } from "../gc/lost-addresses.ts";
import { Reconciler, type ReconcilerDeps, type ReconcilerOptions } from "./reconciler.ts";

export class OwnAllocations extends Reconciler {
  readonly #lost: LostAddresses;
  /** UID of this node's Node object as last seen. */
  #nodeUid: string | undefined;
  #notice: string | undefined;
  #notices = 0;

  /** `lost`: the receiver of the registry's `onLost` reports. */
  constructor(deps: Omit<ReconcilerDeps, "lost"> & { readonly lost: LostAddresses }, options: ReconcilerOptions) {
    super(deps, options);
    this.#lost = deps.lost;
    this.hasten("all");
  }

  /** An event of the watch on this node's Node object. */
  nodeChanged(change: Change<Node>): void {
    if (change.kind === "gone") return;
    const { uid, annotations } = change.value;
    const notice = annotations[NOTICE_ANNOTATION];
    // While there was no Node object, no notice could be given.
    if (this.#nodeUid !== undefined && (change.before === undefined || this.#nodeUid !== uid)) this.hasten("all");
    // The first list of the Node shows the last of the notices that came since all were read.
    if (this.#nodeUid === undefined && notice !== undefined && this.hasListed) this.hasten("all");
    this.#nodeUid = uid;
    if (notice === undefined || notice === this.#notice) return;
    this.#notice = notice;
    this.#notices++;
    this.hasten(parseNotice(notice));
  }

  override get problems(): readonly string[] {
    return [...super.problems, ...this.#lost.problems];
  }

  get stats(): { readonly lost: number; readonly notices: number } {
    return { lost: this.#lost.count, notices: this.#notices };
  }
}
