/** Addresses that outlive their pods (retention), on the cluster's registry. */

import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Allocation, ClaimOutcome } from "../../host/registry/registry.ts";
import { followWorld } from "../lab/cluster/followed-world.ts";
import { openWorld, type World } from "../lab/cluster/world.ts";
import { held } from "../unit/registry/registry-suite.ts";
import { claim, claimAndRetain, proposal } from "../world/subjects.ts";
import { borrowPlane } from "./borrow-plane.ts";

const FIRST = { containerId: "c-a", ifName: "eth0" };
const NAME = "10.0.0.1";
const WORKLOAD = { kind: "StatefulSet", namespace: "shop", name: "web", uid: "w-1", member: "web-0" };

let world: World;

beforeAll(async () => {
  world = await openWorld(borrowPlane);
  // Its agents' clocks are the test's.
  await followWorld(world, { minReuseMs: 0, minConflictMs: 0 });
});

afterEach(() => world.clear());

afterAll(() => world?.stop());

function created(outcome: ClaimOutcome): readonly Allocation[] {
  if (outcome.kind !== "bound") throw new Error(`answered with ${outcome.kind}`);
  return outcome.created;
}

describe("retention: an identity that moves", () => {
  const ofWeb = (owner: string, options: object = {}) =>
    claim(owner, [proposal(NAME)], { pod: "web-0", workload: WORKLOAD, ...options });

  it("retention: a released address is kept, the row goes, and the next pod of the member takes it over", async () => {
    const [node, other] = [await world.openRegistry(), await world.openRegistry()];
    await claimAndRetain(node.registry, ofWeb("a"));
    await node.registry.release(FIRST);
    await node.pass(0);
    expect([await world.lines(), await node.registry.list(undefined, 9)]).toEqual([[`${NAME} Kept -`], []]);
    expect(await other.registry.claim(claim("x", [proposal(NAME)]))).toMatchObject({ kind: "taken" });
    const stranger = { pod: "web-1", workload: { ...WORKLOAD, member: "web-1" } };
    expect(await other.registry.claim(ofWeb("y", stranger))).toMatchObject({ kind: "taken" });
    const outcome = await other.registry.claim(ofWeb("b"));
    expect([held(outcome), outcome.kind === "bound" && outcome.added]).toEqual([[NAME], []]);
    expect(await world.lines()).toEqual([`${NAME} Bound b`]);
  });

  it("retention: a pod elsewhere finds by one list what is kept for it, and gets it", async () => {
    const [node, other] = [await world.openRegistry(), await world.openRegistry()];
    await claimAndRetain(node.registry, ofWeb("a"));
    await node.registry.release(FIRST);
    await node.pass(0);
    expect(await other.registry.findRetained({ ...WORKLOAD, member: "web-1" })).toEqual([]);
    const [retained] = await other.registry.findRetained(WORKLOAD);
    expect([retained?.state, other.api.calls]).toEqual(["Kept", ["GET ipallocations", "GET ipallocations"]]);
    other.api.calls.splice(0);
    const request = claim("b", [proposal(NAME, { replaces: retained?.version ?? 0 })], {
      pod: "web-0",
      workload: WORKLOAD,
    });
    expect(held(await other.registry.claim(request))).toEqual([NAME]);
    expect(other.api.calls).toEqual([`PUT ipallocations/${NAME}`]);
  });

  it("retention: what a pod was answered with has no number to other nodes until it is retained, and one to its own", async () => {
    const [node, other] = [await world.openRegistry(), await world.openRegistry()];
    await claimAndRetain(node.registry, ofWeb("a"));
    const numbersOf = async ({ registry }: typeof node) =>
      (await registry.findRetained(WORKLOAD)).map(({ state, claim }) => `${state} ${claim?.number}`);
    expect([await numbersOf(node), await numbersOf(other)]).toEqual([["Bound 1"], ["Bound 0"]]);
    await node.registry.release(FIRST);
    expect(await numbersOf(node)).toEqual(["Bound 1"]);
    await node.pass(0);
    expect([await numbersOf(node), await numbersOf(other)]).toEqual([["Kept 1"], ["Kept 1"]]);
  });

  it("retention: the live pod of the name takes it from the one before, whose late release is dropped", async () => {
    const asked: string[] = [];
    const isLivePod = async (namespace: string, pod: string, uid: string) => {
      asked.push(`${namespace}/${pod}/${uid}`);
      return uid === "b";
    };
    const [node, other] = [await world.openRegistry(), await world.openRegistry({ isLivePod })];
    await node.registry.claim(ofWeb("a"));
    expect(await other.registry.claim(ofWeb("c"))).toMatchObject({ kind: "taken" });
    expect(held(await other.registry.claim(ofWeb("b")))).toEqual([NAME]);
    expect(asked).toEqual(["shop/web-0/c", "shop/web-0/b"]);
    await node.registry.release(FIRST);
    await node.pass();
    expect([await world.lines(), node.lost]).toEqual([[`${NAME} Bound b`], []]);
    expect(await node.registry.list(undefined, 9)).toEqual([]);
  });

  it("retention: what was new to the member is not kept when its claim is undone, what was kept is", async () => {
    const node = await world.openRegistry();
    await node.registry.undo(created(await node.registry.claim(ofWeb("a"))));
    await node.pass(0);
    expect(await world.lines()).toEqual([]);
    await claimAndRetain(node.registry, ofWeb("a"));
    await node.registry.release(FIRST);
    await node.pass(0);
    await node.registry.undo(created(await node.registry.claim(ofWeb("b"))));
    await node.pass(0);
    expect(await world.lines()).toEqual([`${NAME} Kept -`]);
  });

  it("retention: what was claimed ahead and gives way to an address that is asked for is not kept", async () => {
    const node = await world.openRegistry();
    await node.registry.claim(ofWeb("a", { containerId: "" }));
    const asked = proposal("10.0.0.2", { requested: true });
    await node.registry.claim(claim("a", [asked], { pod: "web-0", workload: WORKLOAD }));
    await node.pass();
    expect(await world.lines()).toEqual(["10.0.0.2 Bound a"]);
  });

  it("retention: what its member cannot have any more cools", async () => {
    const [node, other] = [await world.openRegistry(), await world.openRegistry()];
    await claimAndRetain(node.registry, ofWeb("a"));
    await node.registry.release(FIRST);
    await node.pass(0);
    const retained = await other.registry.findRetained(WORKLOAD);
    await other.registry.releaseRetained(retained);
    await other.registry.releaseRetained(retained);
    expect(await world.lines()).toEqual([`${NAME} Cooling -`]);
    await other.pass();
    expect(await world.lines()).toEqual([]);
  });
});
