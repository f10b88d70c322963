import { expect, it } from "vitest";
import { Probers } from "../../../../host/controller/gc/probers.ts";
import type { Caches } from "../../../../host/controller/types.ts";
import type { IpAllocation } from "../../../../host/resources/ip-allocation.ts";
import { decodeNode, type Node } from "../../../../host/resources/node.ts";
import { allocation, pool } from "../conditions/judged.ts";

const LOST = "n1";

/** `n2`: is ready; `n2?`: is not. */
const nodeOf = (text: string): [string, Node] => {
  const name = text.replace("?", "");
  const conditions = [{ type: "Ready", status: text.endsWith("?") ? "Unknown" : "True" }];
  const nodeInfo = { machineID: name, systemUUID: "" };
  return [name, decodeNode({ metadata: { name }, status: { conditions, nodeInfo } }, name)];
};

/** `n2 blue`: a pod of the node has an address of the pool; `n2 blue asked`: the node probes one of n1. */
const allocationOf = (text: string, index: number): [string, IpAllocation] => {
  const [node = "", from = "", isAsked] = text.split(" ");
  const holder = { namespace: "shop", pod: "web", podUid: "u", ifName: "eth0", node: isAsked ? LOST : node };
  const quarantine = { reason: "NodeLost", mac: "", parent: "", holder } as const;
  const state = isAsked ? "Quarantined" : "Bound";
  const spec = isAsked ? { node, holders: [], quarantine } : { node, holders: [holder] };
  const value = allocation(`10.6.0.${index + 1}`, from, state, spec);
  return [value.name, value];
};

const POOLS = { blue: "10.6.0.0/24", twin: "10.6.0.0/24", green: "10.7.0.0/24" };

function open(nodes: string, allocations: readonly string[]): Probers {
  const caches = {
    nodes: { items: new Map(nodes.split(" ").map(nodeOf)) },
    allocations: { items: new Map(allocations.map(allocationOf)) },
    pools: { items: new Map(Object.entries(POOLS).map(([name, subnet]) => [name, pool(name, { subnet })])) },
  };
  return new Probers(caches as unknown as Caches);
}

it.each<[what: string, nodes: string, allocations: readonly string[], except: readonly string[], chosen?: string]>([
  ["attaches from the pool", "n1? n2 n3", ["n2 green", "n3 blue"], [], "n3"],
  ["attaches from its subnet, if none does from the pool", "n1? n2 n3", ["n2 green", "n3 twin"], [], "n3"],
  ["attaches from the pool before one that does from its subnet", "n1? n2 n3", ["n2 twin", "n3 blue"], [], "n3"],
  ["is the first by name", "n1? n2 n3", ["n3 blue", "n2 blue"], [], "n2"],
  ["has been asked least", "n1? n2 n3", ["n2 blue", "n3 blue", "n2 green asked"], [], "n3"],
  ["was not asked before", "n1? n2 n3", ["n2 blue", "n3 blue"], ["n2"], "n3"],
  ["is ready", "n1? n2? n3", ["n2 blue", "n3 blue"], [], "n3"],
  ["is there", "n1? n3", ["n2 blue", "n3 blue"], [], "n3"],
  ["is the lost one, which is back", "n1 n2", ["n2 blue"], [], "n1"],
  ["is another one when the lost one has been asked", "n1 n2", ["n2 blue"], ["n1"], "n2"],
  ["is none where none attaches", "n1? n2", ["n2 green"], []],
  ["is none when all were asked", "n1? n2", ["n1 blue", "n2 blue"], ["n2"]],
])("conflict: the node that probes %s", (_what, nodes, allocations, except, chosen) => {
  const lost = { node: LOST };
  expect(open(nodes, allocations).choose({ pool: "blue", lost, except: new Set(except) })).toBe(chosen);
});

it.each<[what: string, nodes: string, machine: string | undefined, chosen: string | undefined, isReplaced: boolean]>([
  ["the lost machine is back", "n1 n2", nodeOf("n1")[1].machine, "n1", false],
  ["the lost machine is of an older writer", "n1 n2", undefined, "n1", false],
  ["another machine has its name", "n1 n2", "other", "n2", true],
  ["another machine has its name, and is not ready", "n1? n2", "other", "n2", false],
  ["another machine has its name, and no other node attaches", "n1", "other", undefined, true],
])("node-lost: the node that probes when %s", (_what, nodes, machine, chosen, isReplaced) => {
  const probers = open(nodes, ["n1 blue", "n2 blue"]);
  const lost = { node: LOST, machine };
  expect(probers.choose({ pool: "blue", lost, except: new Set() })).toBe(chosen);
  expect(probers.isReplaced(lost)).toBe(isReplaced);
});
