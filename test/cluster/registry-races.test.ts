/**
 * The rules of docs/develop/allocation.md about races: answers that are lost, deletes under way, records that vanish,
 * an agent that ends in between, an API server that refuses.
 */

import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { ApiError, ApiUnavailable, type KubeCall } from "../../host/kubernetes/kube-api.ts";
import { RETRY_MAX_MS } from "../../host/registry/kubernetes/backlog.ts";
import { LOOK_AGAIN_MS } from "../../host/registry/kubernetes/object-sync.ts";
import { followWorld } from "../lab/cluster/followed-world.ts";
import { ALLOCATIONS } from "../lab/cluster/objects.ts";
import type { RegistryNode } from "../lab/cluster/registry-node.ts";
import { forceDelete } from "../lab/cluster/rights.ts";
import { openWorld, type World } from "../lab/cluster/world.ts";
import { until } from "../lab/waiting.ts";
import { COOLDOWN_MS, held } from "../unit/registry/registry-suite.ts";
import { claim, proposal } from "../world/subjects.ts";
import { ip } from "../world/values.ts";
import { borrowPlane } from "./borrow-plane.ts";

const FIRST = { containerId: "c-a", ifName: "eth0" };
const NAME = "10.0.0.1";

let world: World;

beforeAll(async () => {
  world = await openWorld(borrowPlane);
  // Its agents' clocks are the test's.
  await followWorld(world, { minReuseMs: 0, minConflictMs: 0 });
});

afterEach(() => world.clear());

afterAll(() => world?.stop());

/** The pod's own address, proposed again after its release. */
async function again(node: RegistryNode, options: object = {}) {
  const row = await node.registry.findAddress("", ip(NAME));
  return claim("a", [proposal(NAME, { replaces: row?.version ?? 0 })], options);
}

const lost = () => new ApiUnavailable("POST", "the connection broke");

describe("sandbox-restart: an ADD against a release", () => {
  it("sandbox-restart: withdraws one that was not sent: nothing is written", async () => {
    const node = await world.openRegistry();
    await node.registry.claim(claim("a", [proposal(NAME)]));
    await node.registry.release(FIRST);
    node.api.takeWrites();
    expect(held(await node.registry.claim(await again(node, { containerId: "next" })))).toEqual([NAME]);
    await node.pass();
    expect([await world.lines(), node.api.calls]).toEqual([[`${NAME} Bound a`], []]);
  });

  it("sandbox-restart: waits for a delete that was sent, and claims again", async () => {
    const node = await world.openRegistry();
    await node.registry.claim(claim("a", [proposal(NAME)]));
    const before = await world.allocation(NAME);
    await node.registry.release(FIRST);
    node.clockMs += COOLDOWN_MS;
    const gate = node.api.holdCall("DELETE", "before");
    const expired = node.registry.expire();
    await gate.reached;
    const add = node.registry.claim(await again(node, { containerId: "next" }));
    await until("the row is bound again", async () => {
      return (await node.registry.findAddress("", ip(NAME)))?.state === "Bound";
    });
    gate.open();
    expect(held(await add)).toEqual([NAME]);
    await expired;
    expect(await world.lines()).toEqual([`${NAME} Bound a`]);
    expect((await world.allocation(NAME))?.uid).not.toBe(before?.uid);
    expect(node.api.takeWrites()).toEqual(["POST", "DELETE", "POST"]);
  });

  it("sandbox-restart: binds an object that is shown as cooling by compare-and-swap", async () => {
    const node = await world.openRegistry({ poolSize: 256 });
    await node.registry.claim(claim("a", [proposal(NAME)]));
    await node.registry.release(FIRST);
    await node.registry.idle();
    expect(held(await node.registry.claim(await again(node)))).toEqual([NAME]);
    expect([await world.lines(), node.api.takeWrites()]).toEqual([[`${NAME} Bound a`], ["POST", "PUT", "PUT"]]);
  });

  it("sandbox-restart: is not answered when a DEL came while its address was claimed", async () => {
    const node = await world.openRegistry();
    const gate = node.api.holdCall("POST", "after");
    const add = node.registry.claim(claim("a", [proposal(NAME)]));
    add.catch(() => {});
    await gate.reached;
    await node.registry.release(FIRST);
    gate.open();
    await expect(add).rejects.toThrow('Interface "eth0" was released while its addresses were claimed');
    await node.pass();
    expect(await world.lines()).toEqual([]);
  });
});

describe("undo: an answer that is lost", () => {
  it("undo: the name is taken by the claim's own first attempt", async () => {
    const node = await world.openRegistry();
    node.api.before = async (call) => {
      node.api.before = async () => {};
      await node.api.call(call);
    };
    expect(held(await node.registry.claim(claim("a", [proposal(NAME)])))).toEqual([NAME]);
    expect(node.api.calls).toEqual(["POST ipallocations", "POST ipallocations", `GET ipallocations/${NAME}`]);
  });

  it("undo: the name is taken by the same pod's other interface: that is another owner", async () => {
    const [one, other] = [await world.openRegistry(), await world.openRegistry()];
    await one.registry.claim(claim("a", [proposal(NAME)]));
    const outcome = await other.registry.claim(claim("a", [proposal(NAME, { ifName: "net1" })], { ifName: "net1" }));
    expect(outcome).toMatchObject({ kind: "taken" });
  });

  it("undo: a claim whose create was carried out and never answered is undone", async () => {
    const node = await world.openRegistry();
    const gate = node.api.holdCall("POST", "after");
    const add = node.registry.claim(claim("a", [proposal(NAME)]));
    gate.fail(lost());
    await expect(add).rejects.toThrow("The API server did not record the address: the connection broke");
    await node.pass(0);
    expect([await world.lines(), node.freed]).toEqual([[], [NAME]]);
  });

  it("undo: a create that is carried out only after the claim gave up is found, however late", async () => {
    const found: string[] = [];
    const node = await world.openRegistry({ onOrphan: (name) => found.push(name) });
    let late: KubeCall | undefined;
    node.api.before = async (call) => {
      node.api.before = async () => {};
      late = call;
      throw lost();
    };
    await expect(node.registry.claim(claim("a", [proposal(NAME)]))).rejects.toThrow("broke");
    await node.pass(0);
    expect([node.freed, found]).toEqual([[NAME], []]);
    await world.plane.client.create(ALLOCATIONS, late?.body ?? {});
    for (const ms of LOOK_AGAIN_MS) await node.pass(ms);
    expect([await world.lines(), found]).toEqual([[`${NAME} Bound a`], LOOK_AGAIN_MS.map(() => NAME)]);
  });

  it("undo: a claim whose caller hangs up is undone, with the object that is being created", async () => {
    const node = await world.openRegistry();
    const hangUp = new AbortController();
    const gate = node.api.holdCall("POST", "after");
    const add = node.registry.claim(claim("a", [proposal(NAME)]), hangUp.signal);
    add.catch(() => {});
    await gate.reached;
    hangUp.abort(new Error("the caller hung up"));
    await expect(add).rejects.toThrow("the caller hung up");
    gate.open();
    await until("the object is gone", async () => {
      await node.pass(Math.min(...LOOK_AGAIN_MS));
      return (await world.lines()).length === 0;
    });
    expect(await node.registry.list(undefined, 9)).toEqual([]);
  });

  it("undo: a caller that hangs up while it waits for the pod's claim ahead is let go at once", async () => {
    const node = await world.openRegistry();
    const gate = node.api.holdCall("POST", "before");
    const ahead = node.registry.claim(claim("a", [proposal(NAME)], { containerId: "" }));
    await gate.reached;
    const add = node.registry.claim(claim("a", [proposal(NAME)]), AbortSignal.abort(new Error("the caller hung up")));
    await expect(add).rejects.toThrow("the caller hung up");
    gate.open();
    expect(held(await ahead)).toEqual([NAME]);
    expect(await node.registry.findOwner("a")).toMatchObject([{ containerId: "" }]);
  });
});

describe("recreate: a record that vanished", () => {
  it("recreate: is made again at once", async () => {
    const node = await world.openRegistry();
    await node.registry.claim(claim("a", [proposal(NAME)]));
    await forceDelete(world.plane.client, NAME);
    const [row] = await node.registry.findOwner("a");
    if (row !== undefined) await node.registry.republish(row);
    expect([await world.lines(), node.lost]).toEqual([[`${NAME} Bound a`], []]);
  });

  it("recreate: an object whose name another owner has by now is reported, and nothing is deleted", async () => {
    const [node, other] = [await world.openRegistry(), await world.openRegistry()];
    await node.registry.claim(claim("a", [proposal(NAME)]));
    await forceDelete(world.plane.client, NAME);
    await other.registry.claim(claim("b", [proposal(NAME)]));
    const [row] = await node.registry.findOwner("a");
    if (row !== undefined) await node.registry.republish(row);
    expect(node.lost).toMatchObject([{ row: { owner: "a" }, by: { owner: "b" } }]);
    expect(await node.registry.findOwner("a")).toMatchObject([{ state: "Bound" }]);
    await node.registry.release(FIRST);
    await node.pass();
    expect(await world.lines()).toEqual([`${NAME} Bound b`]);
  });
});

describe("clocks-and-boots: an agent that ends in between", () => {
  it("clocks-and-boots: between create and confirmation: the pod's next ADD gets the address", async () => {
    const node = await world.openRegistry();
    const gate = node.api.holdCall("POST", "after");
    const add = node.registry.claim(claim("a", [proposal(NAME)]));
    await gate.reached;
    await node.stop();
    gate.open();
    // Row and object are there, but the journal cannot say so any more: the ADD is not answered.
    await expect(add).rejects.toThrow("The registry is closed");
    await node.start();
    expect(await node.registry.findOwner("a")).toMatchObject([{ state: "Bound", isConfirmed: false }]);
    await node.registry.expire();
    expect(await node.registry.findOwner("a")).toMatchObject([{ state: "Bound", isConfirmed: false }]);
    expect(held(await node.registry.claim(claim("a", [], { containerId: "next" })))).toEqual([NAME]);
    expect(await node.registry.findOwner("a")).toMatchObject([{ state: "Bound", isConfirmed: true }]);
    expect(await world.lines()).toEqual([`${NAME} Bound a`]);
  });

  it("clocks-and-boots: between a release and its delete: the next agent deletes", async () => {
    const node = await world.openRegistry();
    await node.registry.claim(claim("a", [proposal(NAME)]));
    await node.registry.release(FIRST);
    await node.stop();
    node.clockMs += COOLDOWN_MS;
    await node.start();
    await node.registry.expire();
    expect([await world.lines(), node.freed]).toEqual([[], [NAME]]);
  });

  it("clocks-and-boots: with its journal lost: the pod's ADD finds its own object, another pod's does not get it", async () => {
    const node = await world.openRegistry();
    await node.registry.claim(claim("a", [proposal(NAME)]));
    await node.stop();
    node.wipe();
    await node.start();
    expect(await node.registry.claim(claim("b", [proposal(NAME)]))).toMatchObject({
      kind: "taken",
      by: [{ owner: "a" }],
    });
    await node.pass();
    expect(await world.lines()).toEqual([`${NAME} Bound a`]);
    expect(held(await node.registry.claim(claim("a", [proposal(NAME)])))).toEqual([NAME]);
  });
});

describe("leak: what is known may be old", () => {
  it("leak: an object that was changed since is read again, and then deleted", async () => {
    const node = await world.openRegistry();
    await node.registry.claim(claim("a", [proposal(NAME)]));
    await world.plane.client.patch(`${ALLOCATIONS}/${NAME}`, { metadata: { annotations: { note: "by hand" } } });
    await node.registry.release(FIRST);
    await node.pass();
    expect(await world.lines()).toEqual([]);
    expect(node.api.calls.slice(1)).toEqual([
      `DELETE ipallocations/${NAME}`,
      `GET ipallocations/${NAME}`,
      `DELETE ipallocations/${NAME}`,
    ]);
  });

  it("leak: an object that is another one by now is left alone, and the address not reported as free", async () => {
    const [node, other] = [await world.openRegistry(), await world.openRegistry()];
    await node.registry.claim(claim("a", [proposal(NAME)]));
    await forceDelete(world.plane.client, NAME);
    await other.registry.claim(claim("b", [proposal(NAME)]));
    await node.registry.release(FIRST);
    await node.pass();
    expect([await world.lines(), await node.registry.list(undefined, 9)]).toEqual([[`${NAME} Bound b`], []]);
    expect(node.freed).toEqual([]);
  });
});

describe("an API server that does not do it", () => {
  const refused = new ApiError({
    status: 403,
    reason: "Forbidden",
    operation: "POST",
    message: "agents may not create",
  });

  it("refuses a claim: the reason is the answer, and nothing stays", async () => {
    const node = await world.openRegistry();
    node.api.before = async (call) => {
      if (call.method === "POST") throw refused;
    };
    await expect(node.registry.claim(claim("a", [proposal(NAME)]))).rejects.toThrow("address: agents may not create");
    await node.pass(0);
    expect([await node.registry.list(undefined, 9), node.freed]).toEqual([[], [NAME]]);
  });

  it("is away: a DEL is answered, and the object goes when it is back", async () => {
    const node = await world.openRegistry();
    await node.registry.claim(claim("a", [proposal(NAME)]));
    node.api.before = async () => {
      throw lost();
    };
    expect(await node.registry.release(FIRST)).toHaveLength(1);
    await node.pass();
    expect([await world.lines(), node.registry.size.backlog, node.freed]).toEqual([[`${NAME} Bound a`], 1, []]);
    node.api.before = async () => {};
    await node.registry.expire();
    expect(await world.lines()).toHaveLength(1);
    await node.pass(RETRY_MAX_MS);
    expect([await world.lines(), node.registry.size]).toEqual([[], { known: 0, backlog: 0 }]);
  });
});
