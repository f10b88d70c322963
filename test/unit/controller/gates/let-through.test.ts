import { expect, it } from "vitest";
import { hashUid } from "../../../../host/controller/cached-allocation.ts";
import { LetThroughPods } from "../../../../host/controller/gates/let-through.ts";
import { allocationSpec } from "../../../lab/cluster/objects.ts";

const POD = { namespace: "shop", name: "web-0", uid: "u1" };

function allocation(uid: string, pool: string) {
  const holder = { namespace: "shop", pod: "web-0", ifName: "eth0", node: "n1", uidHash: hashUid(uid) };
  return { name: "10.6.0.1", deleting: false, spec: { ...allocationSpec("10.6.0.1", { pool }), holders: [holder] } };
}

it("a pod that was let through counts until it has its addresses", () => {
  const pods = new LetThroughPods();
  pods.add(POD, ["blue", "blue", "six"], 0);
  expect([pods.has("u1"), pods.waitingFor("blue"), pods.waitingFor("six")]).toEqual([true, 2, 1]);
  pods.gave(allocation("earlier", "blue"));
  expect(pods.waitingFor("blue")).toBe(2);
  pods.gave(allocation("u1", "blue"));
  expect(pods.waitingFor("blue")).toBe(1);
  // It found room elsewhere.
  pods.gave(allocation("u1", "green"));
  pods.gave(allocation("u1", "six"));
  expect([pods.has("u1"), pods.waitingFor("blue"), pods.waitingFor("six")]).toEqual([false, 0, 0]);
});

it("one that may be gone is asked for every ten seconds", () => {
  const pods = new LetThroughPods();
  expect(pods.dueIn(0)).toBeUndefined();
  pods.add(POD, ["blue"], 1_000);
  expect([pods.takeDue(10_999), pods.dueIn(10_999)]).toEqual([[], 1]);
  expect(pods.takeDue(11_000)).toMatchObject([POD]);
  expect(pods.dueIn(11_000)).toBe(10_000);
  pods.remove(POD);
  expect([pods.has("u1"), pods.dueIn(11_000)]).toEqual([false, undefined]);
});

it("the next pod of its name is another", () => {
  const pods = new LetThroughPods();
  pods.add(POD, ["blue"], 0);
  pods.add({ ...POD, uid: "u2" }, ["blue"], 0);
  pods.remove(POD);
  pods.gave(allocation("u2", "blue"));
  expect(pods.waitingFor("blue")).toBe(0);
});

it("a pod that takes of no pool is not counted", () => {
  const pods = new LetThroughPods();
  pods.add(POD, [], 0);
  expect(pods.has("u1")).toBe(false);
});
