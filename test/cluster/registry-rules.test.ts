/**
 * The rules of docs/develop/allocation.md on the cluster's registry: registries of two nodes, one API server, and what
 * is asked of it.
 */

import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { formatIp } from "../../host/net/ip.ts";
import { UNKNOWN_CONTAINER } from "../../host/registry/journal.ts";
import { WANTED_INTERVAL_MS } from "../../host/registry/kubernetes/foreign-objects.ts";
import { LIST_MAX_ADDRESSES } from "../../host/registry/kubernetes/kubernetes-registry.ts";
import type { Allocation, ClaimOutcome } from "../../host/registry/registry.ts";
import { followWorld } from "../lab/cluster/followed-world.ts";
import { POOLS } from "../lab/cluster/objects.ts";
import type { RegistryNode } from "../lab/cluster/registry-node.ts";
import { openWorld, type World } from "../lab/cluster/world.ts";
import { bind, CONFLICT } from "../unit/registry/registry-quarantine-suite.ts";
import { COOLDOWN_MS, held, spanOfTen } from "../unit/registry/registry-suite.ts";
import { claim, proposal } from "../world/subjects.ts";
import { ip } from "../world/values.ts";
import { borrowPlane } from "./borrow-plane.ts";

const FIRST = { containerId: "c-a", ifName: "eth0" };

let world: World;

beforeAll(async () => {
  world = await openWorld(borrowPlane);
  // Its agents' clocks are the test's.
  await followWorld(world, { minReuseMs: 0, minConflictMs: 0 });
});

afterEach(() => world.clear());

afterAll(() => world?.stop());

function taken(outcome: ClaimOutcome): Allocation {
  if (outcome.kind !== "taken" || outcome.by[0] === undefined) throw new Error(`answered with ${outcome.kind}`);
  return outcome.by[0];
}

/** The address of a node that cools, as `findCooling` returns it. */
async function cooling(node: RegistryNode, address = "10.0.0.1") {
  const found = await node.registry.findCooling([spanOfTen()], 9, "blue");
  const one = found.find((each) => formatIp(each.ip) === address);
  if (one === undefined) throw new Error(`${address} does not cool`);
  return proposal(address, { replaces: one.version });
}

describe("what a pod's address costs", () => {
  it("in a large pool: one create and one delete", async () => {
    const node = await world.openRegistry({ poolSize: 257 });
    await node.registry.claim(claim("a", [proposal("10.0.0.1")]));
    expect(await world.lines()).toEqual(["10.0.0.1 Bound a"]);
    await node.registry.release(FIRST);
    await node.pass();
    expect(node.api.calls).toEqual(["POST ipallocations", "DELETE ipallocations/10.0.0.1"]);
    expect([await world.lines(), node.freed]).toEqual([[], ["10.0.0.1"]]);
  });

  it("cooling-visibility: in a pool of 256 addresses or fewer one more, which shows that it cools", async () => {
    const node = await world.openRegistry({ poolSize: 256 });
    await node.registry.claim(claim("a", [proposal("10.0.0.1")]));
    await node.registry.release(FIRST);
    await node.registry.idle();
    expect(await world.lines()).toEqual(["10.0.0.1 Cooling -"]);
    await node.pass();
    expect(node.api.takeWrites()).toEqual(["POST", "PUT", "DELETE"]);
  });

  it("an ADD after a claim ahead, and each further one of the pod, writes nothing", async () => {
    const node = await world.openRegistry();
    await node.registry.claim(claim("a", [proposal("10.0.0.1")], { containerId: "" }));
    expect(node.api.takeWrites()).toEqual(["POST"]);
    expect(held(await node.registry.claim(claim("a", [proposal("10.0.0.2")])))).toEqual(["10.0.0.1"]);
    expect(held(await node.registry.claim(claim("a", [], { containerId: "second" })))).toEqual(["10.0.0.1"]);
    expect(node.api.calls).toEqual([]);
  });

  it("an ADD that comes while its claim ahead is under way waits for it, whatever becomes of that", async () => {
    const [node, other] = [await world.openRegistry(), await world.openRegistry()];
    await other.registry.claim(claim("b", [proposal("10.0.0.3")]));
    const both = (first: string) => [
      node.registry.claim(claim("a", [proposal(first)], { containerId: "" })),
      node.registry.claim(claim("a", [proposal("10.0.0.1")])),
    ];
    const [ahead, add] = await Promise.all(both("10.0.0.3"));
    expect([ahead?.kind, add && held(add)]).toEqual(["taken", ["10.0.0.1"]]);
    expect(node.api.takeWrites()).toEqual(["POST", "POST"]);
    await node.registry.release(FIRST);
    await node.pass();
    node.api.takeWrites();
    expect((await Promise.all(both("10.0.0.2"))).map(held)).toEqual([["10.0.0.2"], ["10.0.0.2"]]);
    expect(node.api.takeWrites()).toEqual(["POST"]);
    expect(await node.registry.findAttachment(FIRST)).toHaveLength(1);
  });
});

describe("two nodes", () => {
  it("of two claims of one last address one wins, and the other learns the owner", async () => {
    const [one, other] = [await world.openRegistry(), await world.openRegistry()];
    const outcomes = await Promise.all([
      one.registry.claim(claim("a", [proposal("10.0.0.1")])),
      other.registry.claim(claim("b", [proposal("10.0.0.1")])),
    ]);
    expect(outcomes.map(({ kind }) => kind).sort()).toEqual(["bound", "taken"]);
    const loser = outcomes[0]?.kind === "taken" ? one : other;
    expect(await loser.registry.list(undefined, 9)).toEqual([]);
    expect(await world.lines()).toHaveLength(1);
  });

  it("all or nothing: what was created beside a taken address is deleted again", async () => {
    const [one, other] = [await world.openRegistry(), await world.openRegistry()];
    await one.registry.claim(claim("a", [proposal("10.0.0.2")]));
    const both = [proposal("10.0.0.1"), proposal("10.0.0.2", { ifName: "net1" })];
    expect(taken(await other.registry.claim(claim("b", both)))).toMatchObject({ owner: "a", state: "Bound" });
    expect(await world.lines()).toEqual(["10.0.0.2 Bound a"]);
    // The other one is not free: the first node has it.
    expect([await other.registry.list(undefined, 9), other.freed]).toEqual([[], ["10.0.0.1"]]);
  });

  it("node-lost: an address whose node was lost is not handed out, and that node's agent frees it", async () => {
    const [lost, other] = [await world.openRegistry(), await world.openRegistry()];
    await lost.registry.claim(claim("a", [proposal("10.0.0.1")]));
    await lost.stop();
    const spec = { state: "Quarantined", holders: [], quarantine: { reason: "NodeLost" } };
    await world.plane.client.patch("/apis/ipam.vendor.io/v1/ipallocations/10.0.0.1", { spec });
    expect(taken(await other.registry.claim(claim("b", [proposal("10.0.0.1")])))).toMatchObject({
      state: "Quarantined",
    });
    expect(await other.registry.findCooling([spanOfTen()], 9, "blue")).toEqual([]);
    await lost.start("boot-2");
    await lost.pass();
    expect(await world.lines()).toEqual([]);
  });

  it("node-lost: a pod that lived on while its node was cut off gets its record back", async () => {
    const node = await world.openRegistry();
    const row = await bind(node.registry, claim("a", [proposal("10.0.0.1")]));
    const spec = { state: "Quarantined", holders: [], quarantine: { reason: "NodeLost" } };
    await world.plane.client.patch("/apis/ipam.vendor.io/v1/ipallocations/10.0.0.1", { spec });
    await node.registry.republish(row);
    expect([await world.lines(), node.lost]).toEqual([["10.0.0.1 Bound a"], []]);
  });
});

describe("late-del: whose container it is", () => {
  it("late-del: a DEL of a container that is not recorded releases nothing, not even addresses that were never attached", async () => {
    const node = await world.openRegistry();
    await node.registry.claim(claim("a", [proposal("10.0.0.1")]));
    await node.stop();
    node.wipe();
    await node.start();
    const adoption = { ...proposal("10.0.0.1"), state: "Bound" as const, owner: "a", namespace: "shop", pod: "a" };
    expect(await node.registry.adopt(adoption)).toMatchObject({ containerId: UNKNOWN_CONTAINER });
    expect(await node.registry.release(FIRST)).toEqual([]);
    await node.pass();
    expect(await world.lines()).toEqual(["10.0.0.1 Bound a"]);
  });

  it("late-del: GC only nominates: what goes, goes because its pod is gone", async () => {
    const gone = new Set<string>();
    const node = await world.openRegistry({ isPodGone: async ({ owner }) => gone.has(owner) });
    await node.registry.claim(claim("a", [proposal("10.0.0.1")]));
    await node.registry.claim(claim("b", [proposal("10.0.0.2")]));
    node.clockMs += 1;
    gone.add("b");
    const released = await node.registry.releaseOthers("net", [], node.clockMs);
    expect(released.map(({ owner }) => owner)).toEqual(["b"]);
    await node.pass();
    expect(await world.lines()).toEqual(["10.0.0.1 Bound a"]);
  });
});

describe("cooling-visibility: what cools", () => {
  it("cooling-visibility: of a large pool is shown from 80 % on, or when the pool is marked as wanted", async () => {
    let share = 0.79;
    const node = await world.openRegistry({ usedShare: () => share });
    for (const owner of ["a", "b"]) {
      await node.registry.claim(claim(owner, [proposal(owner === "a" ? "10.0.0.1" : "10.0.0.2")]));
    }
    await node.registry.release(FIRST);
    await node.registry.idle();
    expect(await world.lines()).toEqual(["10.0.0.1 Bound a", "10.0.0.2 Bound b"]);
    share = 0.8;
    await node.registry.release({ containerId: "c-b", ifName: "eth0" });
    await node.registry.idle();
    expect(await world.lines()).toEqual(["10.0.0.1 Bound a", "10.0.0.2 Cooling -"]);
    share = 0;
    await node.registry.publishCooling("blue");
    await node.registry.idle();
    expect(await world.lines()).toEqual(["10.0.0.1 Cooling -", "10.0.0.2 Cooling -"]);
  });

  it("cooling-visibility: is as old as this node has seen it, whatever the clocks of others say", async () => {
    const [one, other] = [await world.openRegistry({ poolSize: 256 }), await world.openRegistry({ poolSize: 256 })];
    other.clockMs = 86_400_000;
    await one.registry.claim(claim("a", [proposal("10.0.0.1")]));
    await one.registry.release(FIRST);
    await one.registry.idle();
    const [first] = await other.registry.findCooling([spanOfTen()], 9, "blue");
    other.clockMs += 2_000;
    const [second] = await other.registry.findCooling([spanOfTen()], 9, "blue");
    expect([first?.sinceMs, second?.sinceMs]).toEqual([86_400_000, 86_400_000]);
  });

  it("cooling-visibility: another node takes it over by compare-and-swap, once, and its old node lets go", async () => {
    const nodes = [
      await world.openRegistry({ poolSize: 256 }),
      await world.openRegistry(),
      await world.openRegistry(),
    ] as const;
    const [old, one, other] = nodes;
    await old.registry.claim(claim("a", [proposal("10.0.0.1")]));
    await old.registry.release(FIRST);
    await old.registry.idle();
    const requests = [await cooling(one), await cooling(other)] as const;
    expect(held(await one.registry.claim(claim("b", [requests[0]])))).toEqual(["10.0.0.1"]);
    expect(taken(await other.registry.claim(claim("c", [requests[1]])))).toMatchObject({ owner: "b" });
    await old.pass();
    expect([await world.lines(), await old.registry.list(undefined, 9)]).toEqual([["10.0.0.1 Bound b"], []]);
    expect((await world.allocation("10.0.0.1"))?.spec.node).toBe(one.name);
  });

  it("cooling-visibility: what was taken over from another node and is undone cools again", async () => {
    const [old, one] = [await world.openRegistry({ poolSize: 256 }), await world.openRegistry({ poolSize: 256 })];
    await old.registry.claim(claim("a", [proposal("10.0.0.1")]));
    await old.registry.release(FIRST);
    await old.registry.idle();
    const outcome = await one.registry.claim(claim("b", [await cooling(one)]));
    if (outcome.kind === "bound") await one.registry.undo(outcome.created);
    await one.pass(COOLDOWN_MS - 1);
    expect(await world.lines()).toEqual(["10.0.0.1 Cooling -"]);
    await one.pass(1);
    expect(await world.lines()).toEqual([]);
  });

  it("cooling-visibility: an ADD that finds none marks the pool as wanted, at most once in a while", async () => {
    await world.pool("blue", { subnet: "10.0.0.0/24", ips: ["10.0.0.1-10.0.0.9"] });
    const node = await world.openRegistry();
    const wanted = async () => (await world.plane.client.get(`${POOLS}/blue`)).status?.wanted;
    expect(await node.registry.findCooling([spanOfTen()], 9, "blue")).toEqual([]);
    expect(Date.parse(await wanted())).not.toBeNaN();
    await node.registry.markWanted("blue");
    node.clockMs += WANTED_INTERVAL_MS;
    await node.registry.markWanted("blue");
    expect(node.api.takeWrites()).toEqual(["PATCH", "PATCH"]);
  });
});

describe("exhaustion: near full", () => {
  it("exhaustion: a list has all nodes' addresses, by name only, and those of this node", async () => {
    const [one, other] = [await world.openRegistry(), await world.openRegistry()];
    await one.registry.claim(
      claim("a", [proposal("10.0.0.1"), proposal("10.0.0.9", { pool: "green", ifName: "net1" })]),
    );
    await other.registry.claim(claim("b", [proposal("10.0.0.3")]));
    const span = { ...spanOfTen(), last: ip("10.0.0.7").value };
    const listed: unknown[] = [];
    other.api.before = async ({ accept, query }) => void listed.push([accept, query?.includeObject]);
    const packed = await other.registry.listUsed(span, ["blue"]);
    expect(listed).toEqual([["application/json;as=Table;g=meta.k8s.io;v=v1", "None"]]);
    expect([...(packed ?? [])]).toEqual([10, 0, 0, 1, 10, 0, 0, 3]);
    expect([...(await other.registry.readUsed(span))]).toEqual([10, 0, 0, 3]);
  });

  it("exhaustion: surveys at once share a list, but none shares one that began before it", async () => {
    const node = await world.openRegistry();
    const gate = Promise.withResolvers<void>();
    node.api.before = () => gate.promise;
    const first = node.registry.listUsed(spanOfTen(), ["blue"]);
    const later = [node.registry.listUsed(spanOfTen(), ["blue"]), node.registry.listUsed(spanOfTen(), ["blue"])];
    gate.resolve();
    await Promise.all([first, ...later]);
    expect(node.api.calls).toEqual(["GET ipallocations", "GET ipallocations"]);
  });

  it("exhaustion: pools of more addresses than a list may have are not surveyed", async () => {
    const node = await world.openRegistry({ poolSize: LIST_MAX_ADDRESSES + 1 });
    expect(await node.registry.listUsed(spanOfTen(), ["blue"])).toBeUndefined();
    expect(node.api.calls).toEqual([]);
  });
});

describe("conflict: quarantine", () => {
  it("conflict: is written behind the conflict, survives the DEL, and its end frees the address", async () => {
    const node = await world.openRegistry({ poolSize: 256 });
    const found = await node.registry.quarantine(
      await bind(node.registry, claim("a", [proposal("10.0.0.1")])),
      CONFLICT,
    );
    await node.registry.release(FIRST);
    await node.pass();
    const object = await world.allocation("10.0.0.1");
    const quarantine = { reason: "Conflict", mac: CONFLICT.mac, parent: CONFLICT.parent };
    expect(object?.spec).toMatchObject({ state: "Quarantined", holders: [], quarantine, node: node.name });
    if (found !== undefined) await node.registry.endQuarantine(found);
    await node.registry.idle();
    expect([await world.lines(), node.freed]).toEqual([[], ["10.0.0.1"]]);
  });

  it("conflict: a node that goes down before it is written writes it when it is back", async () => {
    const node = await world.openRegistry();
    const bound = await bind(node.registry, claim("a", [proposal("10.0.0.1")]));
    node.api.before = async () => {
      throw new Error("the node is going down");
    };
    await node.registry.quarantine(bound, CONFLICT);
    await node.stop();
    node.api.before = async () => {};
    await node.start();
    await node.registry.expire();
    expect(await world.lines()).toEqual(["10.0.0.1 Quarantined -"]);
  });
});
