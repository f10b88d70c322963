/**
 * Does what was planned, in order, or undoes what it did: the last step of observe, plan, diff, apply.
 * Called by the coordinator. Changes of others meanwhile are left alone: what is undone is what was done here.
 * Effects: those of the open namespaces and of the link remover.
 */
import { messageOf } from "../lib/describe.ts";
import { type Faults, noFaults } from "../lib/fault.ts";
import { inverseOf, inverseOfAll, type Operation } from "../plan/operation.ts";
import { formatOperation } from "../plan/text.ts";
import { applyOperation, isGone, type ListedState, type Namespaces } from "./apply-operation.ts";
import { EEXIST } from "./errno.ts";
import type { LinkRemover } from "./link-remover.ts";
import { NetlinkError } from "./netlink/error.ts";
import { linkOf } from "./netlink/link/link.ts";
import { findLink } from "./netlink/link/requests.ts";

export interface ApplyOptions {
  /** Of the namespace of the host. */
  readonly remover: LinkRemover;
  /** Asked before each operation (`kernel.apply`) and before each that is taken back (`kernel.undo`). */
  readonly faults?: Faults | undefined;
}

/** An operation failed. Everything before it was taken back, but for `leftovers`. */
export class ApplyError extends Error {
  override readonly name = "ApplyError";
  readonly operation: Operation;
  /** What could not be taken back, and why; normally none. */
  readonly leftovers: readonly string[];

  constructor(operation: Operation, text: string, cause: unknown, leftovers: readonly string[]) {
    const rest = leftovers.length === 0 ? "" : `; could not be undone: ${leftovers.join("; ")}`;
    super(`"${text}" failed: ${messageOf(cause)}${rest}`, { cause });
    this.operation = operation;
    this.leftovers = leftovers;
  }
}

/** Deletes the pair from the host's end; returns when both ends are gone. A link of that name that is no veth is none of ours. */
async function deleteVeth(name: string, namespaces: Namespaces, remover: LinkRemover): Promise<void> {
  const message = findLink(namespaces.host.route, name);
  const link = message && linkOf(message);
  if (link === undefined) return;
  if (link.kind?.kind !== "veth") throw new Error(`Link "${name}" of the host is no veth`);
  await remover.removeLink(link.index);
}

/** Everything but a veth's deletion is done when this returns. */
function apply(
  operation: Operation,
  namespaces: Namespaces,
  remover: LinkRemover,
  learned: ListedState,
): Promise<void> | undefined {
  if (operation.kind === "delete-veth") {
    learned.clear(); // others have their turn meanwhile
    return deleteVeth(operation.veth.host.name, namespaces, remover);
  }
  applyOperation(operation, namespaces, learned);
  return undefined;
}

/** An address that is to be put back may have come back with its link. */
function isBack({ kind }: Operation, error: unknown): boolean {
  return kind === "add-address" && error instanceof NetlinkError && error.errno === EEXIST;
}

/** Takes back as much as it can. Returns what it could not. */
async function undo(inverses: readonly Operation[], namespaces: Namespaces, options: ApplyOptions): Promise<string[]> {
  const { faults = noFaults, remover } = options;
  const leftovers: string[] = [];
  const learned: ListedState = new Map();
  for (const inverse of inverses) {
    try {
      faults("kernel.undo");
      const ending = apply(inverse, namespaces, remover, learned);
      if (ending !== undefined) await ending;
    } catch (error) {
      if (!isGone(error) && !isBack(inverse, error))
        leftovers.push(`"${formatOperation(inverse)}": ${messageOf(error)}`);
    }
  }
  return leftovers;
}

/** The kernel sets a link's settings one after the other, and the first may be set when the second fails. */
function inverseOfPart(operation: Operation): Operation[] {
  const isSettings = operation.kind === "set-link" || operation.kind === "set-bond";
  const inverse = isSettings ? inverseOf(operation) : undefined;
  return inverse === undefined ? [] : [inverse];
}

/** Takes back operations that were done, the last one first, as much as it can. Returns what it could not, normally nothing. */
export function undoOperations(
  operations: readonly Operation[],
  namespaces: Namespaces,
  options: ApplyOptions,
): Promise<string[]> {
  return undo(inverseOfAll(operations), namespaces, options);
}

/** Does the operations in order. Throws {@link ApplyError}, after it took back what it had done, the last one first. */
export async function applyOperations(
  operations: readonly Operation[],
  namespaces: Namespaces,
  options: ApplyOptions,
): Promise<void> {
  const { faults = noFaults, remover } = options;
  const learned: ListedState = new Map();
  for (const [index, operation] of operations.entries()) {
    let isTold = false;
    try {
      faults("kernel.apply");
      isTold = true;
      const ending = apply(operation, namespaces, remover, learned);
      if (ending !== undefined) await ending;
    } catch (error) {
      const inverses = [...(isTold ? inverseOfPart(operation) : []), ...inverseOfAll(operations.slice(0, index))];
      throw new ApplyError(operation, formatOperation(operation), error, await undo(inverses, namespaces, options));
    }
  }
}
