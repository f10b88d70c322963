/**
 * Chooses the nodes to check before the next sweep: those that have just disappeared or were tainted as out of service,
 * or whose names other machines have. They are checked several times, as their pods disappear after them. Also chooses
 * the ready nodes that a sweep compares with their pods.
 */
import { BoundedMap } from "../../lib/bounded-map.ts";
import { areTwoMachines } from "../../resources/machine.ts";
import type { Node } from "../../resources/node.ts";
import type { ControllerDeps } from "../types.ts";
import type { NodeStatus } from "./plan-collection.ts";
import { nodeStatus } from "./read-status.ts";

/**
 * Ready nodes whose allocations one sweep compares with their pods; the next sweep continues with the next nodes. Their
 * agents do the same much more often.
 */
const READY_NODES_PER_SWEEP = 50;

/** First pause between checks of a lost node's addresses; each next one is twice as long: milliseconds. */
const NODE_CHECK_FIRST_MS = 1_000;

/** Longest of these pauses, after which only sweeps check the node: milliseconds. */
const NODE_CHECK_MAX_MS = 64_000;

/** Most nodes whose machines are remembered. For others, sweeps detect that another machine has the name. */
const MAX_KNOWN_MACHINES = 16_384;

export class NodeChanges {
  readonly #nowMs: () => number;
  readonly #last = new Map<string, NodeStatus>();
  /** By node, also of those that have disappeared. The one seen longest ago is dropped first. */
  readonly #machines = new BoundedMap<string, string>(MAX_KNOWN_MACHINES);
  readonly #waiting = new Map<string, { readonly pauseMs: number; readonly dueMs: number }>();
  /** The last ready node that a sweep has compared. */
  #after = "";

  constructor({ caches, clock }: Pick<ControllerDeps, "caches" | "clock">) {
    this.#nowMs = clock.nowMs;
    for (const [name, node] of caches.nodes.items) {
      this.#last.set(name, nodeStatus(node));
      if (node.machine !== undefined) this.#machines.set(name, node.machine);
    }
  }

  /** Returns "back" if the node was not ready and is now. */
  update(name: string, sighting: NodeStatus, machine?: string): "back" | undefined {
    const isOther = areTwoMachines({ machine }, { machine: this.#machines.get(name) });
    if (machine !== undefined) this.#machines.set(name, machine);
    const before = this.#last.get(name);
    if (sighting === "absent") this.#last.delete(name);
    else this.#last.set(name, sighting);
    const isBack = before !== sighting && sighting === "ready";
    if (isOther || (before !== sighting && !isBack))
      this.#waiting.set(name, { pauseMs: NODE_CHECK_FIRST_MS, dueMs: this.#nowMs() });
    else if (isBack) this.#waiting.delete(name);
    return isBack ? "back" : undefined;
  }

  due(nowMs: number): readonly string[] {
    return [...this.#waiting].flatMap(([name, { dueMs }]) => (dueMs <= nowMs ? [name] : []));
  }

  /** Schedules the next check after a pause that doubles, until the sweeps take over. */
  checked(name: string, nowMs: number): void {
    const { pauseMs } = this.#waiting.get(name) ?? { pauseMs: NODE_CHECK_MAX_MS };
    if (pauseMs >= NODE_CHECK_MAX_MS) this.#waiting.delete(name);
    else this.#waiting.set(name, { pauseMs: pauseMs * 2, dueMs: nowMs + pauseMs });
  }

  /** Returns the next few ready nodes by name, starting over at the end. */
  chooseReady(nodes: ReadonlyMap<string, Node>): ReadonlySet<string> {
    const ready = [...nodes].flatMap(([name, node]) => (nodeStatus(node) === "ready" ? [name] : [])).sort();
    const later = ready.filter((name) => name > this.#after);
    const chosen = [...later, ...ready].slice(0, Math.min(READY_NODES_PER_SWEEP, ready.length));
    this.#after = chosen.at(-1) ?? "";
    return new Set(chosen);
  }
}
