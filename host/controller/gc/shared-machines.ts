/**
 * Nodes that report one machine: clones, or a Node object that outlived its machine's former name. Their addresses
 * cannot be told apart, so none of them is free without a probe (docs/decisions/0053).
 */
import type { Events } from "../../kubernetes/events.ts";
import { listSome } from "../../lib/describe.ts";
import { compareText } from "../../lib/order.ts";
import type { Node } from "../../resources/node.ts";

/** Most nodes that a sentence names. */
const MAX_NAMED_NODES = 8;

export class SharedMachines {
  readonly #events: Pick<Events, "emit">;
  /** Names of the nodes, in order, by machine. */
  #shared: ReadonlyMap<string, readonly string[]> = new Map();

  constructor(events: Pick<Events, "emit">) {
    this.#events = events;
  }

  /** Sends each newly found node an event. */
  update(nodes: Iterable<Pick<Node, "name" | "machine">>): void {
    const before = this.#shared;
    this.#shared = findShared(nodes);
    for (const [machine, names] of this.#shared) {
      if (before.get(machine)?.join() === names.join()) continue;
      for (const name of names)
        this.#events.emit({
          regarding: { kind: "Node", apiVersion: "v1", namespace: "", name, uid: name },
          ...{ type: "Warning", reason: "MachineShared", action: "Collect", note: describe(names) },
        });
    }
  }

  /** Sentences without a full stop. */
  get problems(): readonly string[] {
    return [...this.#shared.values()].map(describe);
  }
}

function findShared(nodes: Iterable<Pick<Node, "name" | "machine">>): ReadonlyMap<string, readonly string[]> {
  const byMachine = Map.groupBy(nodes, ({ machine }) => machine);
  const named = [...byMachine].flatMap(([machine, found]) =>
    machine === undefined || found.length < 2
      ? []
      : [[machine, found.map(({ name }) => name).sort(compareText)] as const],
  );
  return new Map(named);
}

function describe(names: readonly string[]): string {
  const quoted = names.map((name) => `"${name}"`);
  return `Nodes ${listSome(quoted, MAX_NAMED_NODES)} report the same systemUUID and machineID: give each machine its own; until then their lost addresses are freed only by a probe`;
}
