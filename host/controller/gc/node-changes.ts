/**
 * Which nodes are worth a look before the next sweep: those that have just gone or were said to be out of service, a few times, as their pods
 * go after them; and which of the others a sweep compares with their pods.
 */
import type { Node } from "../../resources/node.ts";
import type { ControllerDeps } from "../types.ts";
import type { NodeStatus } from "./plan-collection.ts";
import { nodeStatus } from "./read-status.ts";

/** Nodes that are ready of which a sweep compares the allocations with the pods. The next sweep goes on with the next ones: their agents do the same much more often. @limit */
export const READY_NODES_PER_SWEEP = 50;

/** The first pause before the addresses of a node that has just gone are looked at again: milliseconds. Each pause is twice the one before. @limit */
export const NODE_CHECK_FIRST_MS = 1_000;

/** Where that pause stops growing, and from where on the sweeps do: milliseconds. @limit */
export const NODE_CHECK_MAX_MS = 64_000;

interface Waiting {
  readonly pauseMs: number;
  readonly dueMs: number;
}

export class NodeChanges {
  readonly #nowMs: () => number;
  readonly #last = new Map<string, NodeStatus>();
  readonly #waiting = new Map<string, Waiting>();
  /** Where the next sweep goes on among those that are ready. */
  #after = "";

  constructor({ caches, clock }: Pick<ControllerDeps, "caches" | "clock">) {
    this.#nowMs = clock.nowMs;
    for (const [name, node] of caches.nodes.items) this.#last.set(name, nodeStatus(node));
  }

  /** "back": it was not ready, and is now. */
  update(name: string, sighting: NodeStatus): "back" | undefined {
    const before = this.#last.get(name);
    if (sighting === "absent") this.#last.delete(name);
    else this.#last.set(name, sighting);
    if (before === sighting) return undefined;
    if (sighting === "ready") {
      this.#waiting.delete(name);
      return "back";
    }
    this.#waiting.set(name, { pauseMs: NODE_CHECK_FIRST_MS, dueMs: this.#nowMs() });
    return undefined;
  }

  due(nowMs: number): readonly string[] {
    return [...this.#waiting].flatMap(([name, { dueMs }]) => (dueMs <= nowMs ? [name] : []));
  }

  /** Again after a pause that doubles, until the sweeps do. */
  checked(name: string, nowMs: number): void {
    const { pauseMs } = this.#waiting.get(name) ?? { pauseMs: NODE_CHECK_MAX_MS };
    if (pauseMs >= NODE_CHECK_MAX_MS) this.#waiting.delete(name);
    else this.#waiting.set(name, { pauseMs: pauseMs * 2, dueMs: nowMs + pauseMs });
  }

  /** The next few nodes that are ready, in the order of their names and round. */
  chooseReady(nodes: ReadonlyMap<string, Node>): ReadonlySet<string> {
    const ready = [...nodes].flatMap(([name, node]) => (nodeStatus(node) === "ready" ? [name] : [])).sort();
    const later = ready.filter((name) => name > this.#after);
    const chosen = [...later, ...ready].slice(0, Math.min(READY_NODES_PER_SWEEP, ready.length));
    this.#after = chosen.at(-1) ?? "";
    return new Set(chosen);
  }
}
