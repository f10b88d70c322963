/** The follower of histories on a real API server and a real etcd: the checker gets what was written, in its order. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { ALLOCATIONS, allocationObject, allocationSpec } from "../lab/cluster/objects.ts";
import { openWorld, type World } from "../lab/cluster/world.ts";
import { attachmentOf, followHistory, type History } from "../lab/history/follow.ts";
import type { KubeClient } from "../lab/kube-client.ts";
import { borrowPlane } from "./borrow-plane.ts";

let world: World;
let agent: KubeClient;
let history: History;

beforeAll(async () => {
  world = await openWorld(borrowPlane);
  agent = await world.openClient("n1");
  await create("10.6.0.9", "before");
  history = await followHistory(world.plane.etcdUrl, { minReuseMs: 2_000 });
});
afterAll(async () => {
  history?.close();
  await world?.stop();
});

function create(address: string, podUid: string): Promise<unknown> {
  const holders = [{ namespace: "shop", pod: podUid, podUid, ifName: "eth0", node: "n1" }];
  return agent.create(
    `${ALLOCATIONS}?fieldManager=berth-agent`,
    allocationObject(allocationSpec(address, { holders })),
  );
}

const remove = (address: string): Promise<unknown> => agent.delete(`${ALLOCATIONS}/${address}`);

it("a life that keeps the rules is checked write by write", async () => {
  expect([...history.checker.objects.keys()]).toEqual(["10.6.0.9"]);
  const nic = attachmentOf("10.6.0.21", "a");
  for (let round = 0; round < 10; round++) {
    await create("10.6.0.21", "a");
    await history.attached(nic);
    history.leaving(nic);
    await remove("10.6.0.21");
  }
  await history.caughtUp();
  expect([history.checker.writes, history.checker.breaches]).toEqual([20, []]);
});

it("an object that is replaced while its pod lives is found, and an ADD that is answered before its object", async () => {
  await create("10.6.0.22", "a");
  await history.attached(attachmentOf("10.6.0.22", "a"));
  await remove("10.6.0.22");
  await create("10.6.0.22", "a");
  await history.caughtUp();
  await history.attached(attachmentOf("10.6.0.23", "a"));
  expect(history.checker.breaches).toEqual([
    expect.stringMatching(/^revision \d+, 10\.6\.0\.22: absent while eth0 of a lives with it$/),
    "10.6.0.23: absent when eth0 of a was answered",
  ]);
});
