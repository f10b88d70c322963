/** Effects of an adoption from another IPAM on objects: a claim without a network, and its end (docs/migration.md). */
import { expect, it } from "vitest";
import type { Allocation } from "../../../../host/registry/registry.ts";
import { ALLOCATIONS, type MemoryApiServer } from "../../../fakes/memory-api-server.ts";
import { openClusterNode } from "../../../world/node.ts";
import { claim, proposal } from "../../../world/subjects.ts";

const WORKLOAD = { kind: "StatefulSet", namespace: "shop", name: "db", uid: "set", member: "db-0" };
const adoption = (workload?: typeof WORKLOAD) => ({ ...claim("a", [proposal("10.0.0.1")], { network: "" }), workload });

const statesOf = (server: MemoryApiServer): unknown[] =>
  [...server.collection(ALLOCATIONS).values()].map(({ spec }) => spec.state);

async function adopted(workload?: typeof WORKLOAD) {
  const node = await openClusterNode({ poolSize: 1_000 });
  const outcome = await node.registry.claim(adoption(workload));
  if (outcome.kind !== "bound") throw new Error(`The address is ${outcome.kind}`);
  if (workload !== undefined) await node.registry.retain(outcome.held.map((row) => ({ ...row, workload })));
  const [row] = outcome.held as readonly [Allocation];
  return { ...node, row };
}

it.each([
  ["of a pod whose addresses are not retained", undefined],
  ["of a StatefulSet's pod", WORKLOAD],
])("an adoption %s that is undone leaves no object behind", async (_what, workload) => {
  const { registry, row, server, clock } = await adopted(workload);
  expect(statesOf(server)).toEqual(["Bound"]);
  expect(await registry.renounce(row)).toMatchObject({ state: "Cooling" });
  clock.jump(3_600_000);
  await registry.expire();
  await registry.objects.idle();
  expect(statesOf(server)).toEqual([]);
  await registry.close();
});

it("an adopted address of a StatefulSet's pod is retained when the pod ends", async () => {
  const { registry, row, server } = await adopted(WORKLOAD);
  await registry.collect(row);
  await registry.objects.idle();
  expect(statesOf(server)).toEqual(["Kept"]);
  await registry.close();
});

it("an adoption that was written since is not undone", async () => {
  const { registry, row } = await adopted();
  await registry.release({ containerId: "c-a", ifName: "eth0" });
  await registry.claim({ ...adoption(), owner: "b", pod: "b", containerId: "c-b", skipOwnCooling: true });
  expect(await registry.renounce(row)).toBeUndefined();
  await registry.close();
});
