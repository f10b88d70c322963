import { expect, it } from "vitest";
import { NodeChanges } from "../../../../host/controller/gc/node-changes.ts";
import type { NodeStatus } from "../../../../host/controller/gc/plan-collection.ts";
import type { Caches } from "../../../../host/controller/types.ts";
import { decodeNode } from "../../../../host/resources/node.ts";

type Seen = readonly [status: NodeStatus, machine?: string];

it.each<[what: string, sequence: readonly Seen[], changes: readonly string[], isDue: boolean]>([
  ["that stays as it is", [["ready", "m1"]], [""], false],
  ["that is not ready", [["notReady", "m1"]], [""], true],
  ["that is ready again", (["notReady", "ready"] as const).map((each) => [each, "m1"]), ["", "back"], false],
  ["that is deleted and created again around its machine", [["absent"], ["ready", "m1"]], ["", "back"], false],
  ["that is deleted and created again for another machine", [["absent"], ["ready", "m2"]], ["", "back"], true],
  ["that another machine takes over", [["ready", "m2"]], [""], true],
  ["that says nothing for a while", [["ready"], ["ready", "m1"]], ["", ""], false],
])("a node %s", (_what, sequence, changes, isDue) => {
  const status = { conditions: [{ type: "Ready", status: "True" }] };
  const node = { ...decodeNode({ metadata: { name: "n1" }, status }, ""), machine: "m1" };
  const caches = { nodes: { items: new Map([["n1", node]]) } } as unknown as Caches;
  const nodes = new NodeChanges({ caches, clock: { nowMs: () => 0 } as never });
  expect(sequence.map(([seen, machine]) => nodes.update("n1", seen, machine) ?? "")).toEqual(changes);
  expect(nodes.due(0)).toEqual(isDue ? ["n1"] : []);
});
