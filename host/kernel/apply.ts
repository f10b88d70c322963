/**
 * Applies planned operations in order, or undoes them: the last step of observe, plan, diff, apply. It undoes only its
 * own changes, not those of other processes meanwhile.
 * Effects: those of the open namespaces and of the link remover.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../lib/describe.ts";
import { type Faults, noFaults } from "../lib/fault.ts";
import { invariant } from "../lib/invariant.ts";
import { tryOr } from "../lib/try-or.ts";
import { inverseOf, inverseOfAll, type Operation, type Veth } from "../plan/operation.ts";
import { formatOperation } from "../plan/text.ts";
import { applyOperation, isGone, type ListedState, type Namespaces } from "./apply-operation.ts";
import { EEXIST } from "./errno.ts";
import type { LinkRemover } from "./link-remover.ts";
import { NetlinkError } from "./netlink/error.ts";
import { isInactive, readLink } from "./netlink/link/requests.ts";
import { type Failure, Pipeline } from "./pipeline.ts";

type LinkDeleter = Pick<LinkRemover, "removeLink">;

export interface ApplyOptions {
  /** Deletes links of the host's namespace. Default: no plan of the caller deletes a veth. */
  readonly remover?: LinkDeleter | undefined;
  /** Called before each operation (`kernel.apply`) and before each inverse (`kernel.undo`). */
  readonly faults?: Faults | undefined;
}

/** An operation failed. All operations before it were undone, except for `leftovers`. */
export class ApplyError extends Error {
  override readonly name = "ApplyError";
  readonly operation: Operation;
  /** The operations that could not be undone, with the reasons; normally none. */
  readonly leftovers: readonly string[];

  constructor(operation: Operation, text: string, cause: unknown, leftovers: readonly string[]) {
    const rest = leftovers.length === 0 ? "" : `; could not be undone: ${leftovers.join("; ")}`;
    super(`"${text}" failed: ${messageOf(cause)}${rest}`, { cause });
    this.operation = operation;
    this.leftovers = leftovers;
  }
}

/** Deletes the pair from the host's end; resolves when the remover is done. Throws for a link that is no veth. */
async function deleteVeth(name: string, namespaces: Namespaces, remover: LinkDeleter | undefined): Promise<void> {
  const link = readLink(namespaces.host.route, name);
  if (link === undefined) return;
  if (link.kind?.kind !== "veth") throw new Error(`Link "${name}" on the host is not a veth; it was not deleted`);
  invariant(remover !== undefined, "A plan that deletes a veth needs the link remover");
  await remover.removeLink(link.index);
}

/** Applies the operation. Everything except for a veth's deletion is done when this returns. */
function apply(
  operation: Operation,
  namespaces: Namespaces,
  remover: LinkDeleter | undefined,
  listed: ListedState,
): Promise<void> | undefined {
  if (operation.kind === "delete-veth") {
    listed.clear(); // other requests run meanwhile
    return deleteVeth(operation.veth.host.name, namespaces, remover);
  }
  applyOperation(operation, namespaces, listed);
  return undefined;
}

/** Returns whether the address to restore came back with its link. */
function isBack({ kind }: Operation, error: unknown): boolean {
  return kind === "add-address" && error instanceof NetlinkError && error.errno === EEXIST;
}

/** Applies as many inverses as possible. Returns those that failed, with the reasons. */
async function undo(inverses: readonly Operation[], namespaces: Namespaces, options: ApplyOptions): Promise<string[]> {
  const { faults = noFaults, remover } = options;
  const leftovers: string[] = [];
  const listed: ListedState = new Map();
  for (const inverse of inverses) {
    try {
      faults("kernel.undo");
      const ending = apply(inverse, namespaces, remover, listed);
      if (ending !== undefined) await ending;
    } catch (error) {
      if (!isGone(error) && !isBack(inverse, error))
        leftovers.push(`"${formatOperation(inverse)}": ${messageOf(error)}`);
    }
  }
  return leftovers;
}

/**
 * Returns the inverse of a failed operation that may have had effects: the kernel applies a link's settings one by one,
 * and may have set the first when the second fails.
 */
function inverseOfFailure({ operation, effect }: Failure): Operation[] {
  const isSettings = operation.kind === "set-link" || operation.kind === "set-bond";
  const hasEffect = effect === "unknown" || (effect === "part" && isSettings);
  const inverse = hasEffect ? inverseOf(operation) : undefined;
  return inverse === undefined ? [] : [inverse];
}

/** Undoes as many operations as possible, the last one first. Returns those that failed, with the reasons. */
export function undoOperations(
  operations: readonly Operation[],
  namespaces: Namespaces,
  options: ApplyOptions = {},
): Promise<string[]> {
  return undo(inverseOfAll(operations), namespaces, options);
}

/**
 * Applies one operation behind those of the pipeline, or adds it to them. Does nothing if one of those has failed,
 * which shows only here. Everything except for a veth's deletion is done when this returns.
 */
function advance(
  operation: Operation,
  pipeline: Pipeline,
  namespaces: Namespaces,
  options: ApplyOptions,
  listed: ListedState,
): Promise<void> | undefined {
  if (pipeline.add(operation)) {
    listed.clear();
    return undefined;
  }
  pipeline.flush();
  if (pipeline.failures.length > 0) return undefined;
  const ending = apply(operation, namespaces, options.remover, listed);
  const { kind } = operation;
  if (ending !== undefined || kind === "add-device" || kind === "delete-device") pipeline.forget();
  if (ending === undefined) pipeline.applied.push(operation);
  return ending?.then(() => void pipeline.applied.push(operation));
}

/** Interval at which to look whether a new pair transmits, and longest time to wait for it: milliseconds. */
const LOOK_MS = 1;
const MAX_ACTIVATION_MS = 1_000;

/** Resolves when the host's end of a new pair transmits. The pod's end came up last and does so already. */
async function activate({ host: { name } }: Veth, { host }: Namespaces): Promise<void> {
  const endMs = performance.now() + MAX_ACTIVATION_MS;
  while (tryOr(() => isInactive(host.route, name), false) && performance.now() < endMs) await sleep(LOOK_MS);
}

/** Applies the operations in order. If one fails, undoes the earlier ones in reverse and throws {@link ApplyError}. */
export async function applyOperations(
  operations: readonly Operation[],
  namespaces: Namespaces,
  options: ApplyOptions = {},
): Promise<void> {
  const { faults = noFaults } = options;
  const listed: ListedState = new Map();
  const pipeline = new Pipeline(namespaces);
  const { applied, failures } = pipeline;
  for (const operation of operations) {
    let effect: Failure["effect"] = "none";
    try {
      faults("kernel.apply");
      effect = "part";
      const ending = advance(operation, pipeline, namespaces, options, listed);
      if (ending !== undefined) await ending;
    } catch (error) {
      pipeline.flush(); // a failure of an operation before this one comes first
      failures.push({ operation, error, effect });
    }
    if (failures.length > 0) break;
  }
  pipeline.flush();
  const [first] = failures;
  if (first === undefined) {
    for (const operation of applied) if (operation.kind === "add-veth") await activate(operation.veth, namespaces);
    return;
  }
  const leftovers = await undo([...failures.flatMap(inverseOfFailure), ...inverseOfAll(applied)], namespaces, options);
  throw new ApplyError(first.operation, formatOperation(first.operation), first.error, leftovers);
}
