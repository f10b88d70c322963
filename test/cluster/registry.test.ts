/**
 * The cluster's registry on a real API server: what only a server can show: races of nodes, its preconditions, its
 * lists of names, the rights of agents; and, in the long tests, the suites of every registry. The rules are in
 * test/unit/registry.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Registry } from "../../host/registry/registry.ts";
import { followWorld } from "../lab/cluster/followed-world.ts";
import { ALLOCATIONS, POOLS } from "../lab/cluster/objects.ts";
import type { RegistryNode } from "../lab/cluster/registry-node.ts";
import { openWorld, type World } from "../lab/cluster/world.ts";
import { describeQuarantine } from "../unit/registry/registry-quarantine-suite.ts";
import { describeRegistry, held, spanOfTen } from "../unit/registry/registry-suite.ts";
import { describeTakingBack } from "../unit/registry/registry-taking-back-suite.ts";
import { ofRun } from "../world/long-cases.ts";
import { claim, claimAndRetain, proposal } from "../world/subjects.ts";
import { ip } from "../world/values.ts";
import { borrowPlane } from "./borrow-plane.ts";

const FIRST = { containerId: "c-a", ifName: "eth0" };
const NAME = "10.0.0.1";
const WORKLOAD = { kind: "StatefulSet", namespace: "shop", name: "web", uid: "w-1", member: "web-0" };
const SMALL = { poolSize: 256 };

let world: World;

beforeAll(async () => {
  world = await openWorld(borrowPlane);
  // Its agents' clocks are the test's.
  await followWorld(world, { minReuseMs: 0, minConflictMs: 0 });
});

afterEach(() => world.clear());

afterAll(() => world?.stop());

/** The registry, whose answers come when the API server has been told. */
function flushed({ registry }: RegistryNode): Registry {
  return new Proxy<Registry>(registry, {
    get: (target, name) => {
      const found: unknown = Reflect.get(target, name);
      if (typeof found !== "function") return found;
      return (...args: unknown[]) => {
        const answer: unknown = found.apply(target, args);
        return answer instanceof Promise ? answer.finally(() => registry.idle()) : answer;
      };
    },
  });
}

for (const describeSuite of ofRun([describeRegistry, describeTakingBack, describeQuarantine], () => false))
  describeSuite("Kubernetes registry", async (test) => {
    const node = await world.openRegistry(SMALL);
    const advance = (milliseconds: number): void => {
      node.clockMs += milliseconds;
    };
    await test({ registry: flushed(node), freed: node.freed, advance, nowMs: () => node.clockMs });
  });

describe("several nodes", () => {
  it("of two claims of one last address one wins, and the other learns the owner", async () => {
    const nodes = [await world.openRegistry(), await world.openRegistry()] as const;
    const outcomes = await Promise.all(
      nodes.map(({ registry }, index) => registry.claim(claim(`o${index}`, [proposal(NAME)]))),
    );
    const loser = outcomes[0]?.kind === "taken" ? 0 : 1;
    expect(held(outcomes[1 - loser] as never)).toEqual([NAME]);
    expect(outcomes[loser]).toMatchObject({ kind: "taken", by: [{ owner: `o${1 - loser}` }] });
    expect([await nodes[loser].registry.list(undefined, 9), await world.lines()]).toEqual([
      [],
      [`${NAME} Bound o${1 - loser}`],
    ]);
  });

  it("cooling-visibility: a cooling address is taken over by compare-and-swap, once, and its old node lets go", async () => {
    const [old, one, other] = [
      await world.openRegistry(SMALL),
      await world.openRegistry(),
      await world.openRegistry(),
    ] as const;
    await old.registry.claim(claim("a", [proposal(NAME)]));
    await old.registry.release(FIRST);
    await old.registry.idle();
    const take = async ({ registry }: RegistryNode, owner: string) => {
      const [found] = await registry.findCooling([spanOfTen()], 9, "blue");
      return () => registry.claim(claim(owner, [proposal(NAME, { replaces: found?.version ?? 0 })]));
    };
    const [first, second] = [await take(one, "b"), await take(other, "c")];
    expect(held(await first())).toEqual([NAME]);
    expect(await second()).toMatchObject({ kind: "taken", by: [{ owner: "b" }] });
    await old.pass();
    expect([await world.lines(), await old.registry.list(undefined, 9)]).toEqual([[`${NAME} Bound b`], []]);
    expect((await world.allocation(NAME))?.spec.node).toBe(one.name);
  });

  it("exhaustion: a list has all nodes' addresses, by name only; who finds none marks the pool as wanted", async () => {
    await world.pool("blue", { subnet: "10.0.0.0/24", ips: ["10.0.0.1-10.0.0.9"] });
    const [one, other] = [await world.openRegistry(), await world.openRegistry()];
    const proposals = [proposal(NAME), proposal("10.0.0.9", { pool: "green", ifName: "net1" })];
    await one.registry.claim(claim("a", proposals));
    await other.registry.claim(claim("b", [proposal("10.0.0.3")]));
    const listed: unknown[] = [];
    other.api.before = async ({ accept, query }) => void listed.push([accept, query?.includeObject]);
    const packed = await other.registry.listUsed({ ...spanOfTen(), last: ip("10.0.0.7").value }, ["blue"]);
    expect(listed).toEqual([["application/json;as=Table;g=meta.k8s.io;v=v1", "None"]]);
    expect([...(packed ?? [])]).toEqual([10, 0, 0, 1, 10, 0, 0, 3]);
    expect(await other.registry.findCooling([spanOfTen()], 9, "blue")).toEqual([]);
    expect(Date.parse((await world.read("ippools", "blue")).status.wanted)).not.toBeNaN();
    await world.client.delete(`${POOLS}/blue`);
  });

  it("retention: what is kept for a member is found elsewhere by one list, and no other pod gets it", async () => {
    const [node, other] = [await world.openRegistry(), await world.openRegistry()];
    const ofWeb = { pod: "web-0", workload: WORKLOAD };
    await claimAndRetain(node.registry, claim("a", [proposal(NAME)], ofWeb));
    await node.registry.release(FIRST);
    await node.pass(0);
    expect([await world.lines(), await node.registry.list(undefined, 9)]).toEqual([[`${NAME} Kept -`], []]);
    expect(await other.registry.claim(claim("x", [proposal(NAME)]))).toMatchObject({ kind: "taken" });
    const [retained] = await other.registry.findRetained(WORKLOAD);
    other.api.calls.splice(0);
    const request = claim("b", [proposal(NAME, { replaces: retained?.version ?? 0 })], ofWeb);
    expect(held(await other.registry.claim(request))).toEqual([NAME]);
    expect(other.api.calls).toEqual([`PUT ipallocations/${NAME}`]);
  });
});

describe("one node", () => {
  it("undo: a claim meets its own create, of which the answer was lost", async () => {
    const node = await world.openRegistry();
    node.api.before = async (call) => {
      node.api.before = async () => {};
      await node.api.call(call);
    };
    expect(held(await node.registry.claim(claim("a", [proposal(NAME)])))).toEqual([NAME]);
    expect(node.api.calls).toEqual(["POST ipallocations", "POST ipallocations", `GET ipallocations/${NAME}`]);
  });

  it("leak: an object that was changed since is read again, and then deleted", async () => {
    const node = await world.openRegistry();
    await node.registry.claim(claim("a", [proposal(NAME)]));
    await world.client.patch(`${ALLOCATIONS}/${NAME}`, { metadata: { annotations: { note: "by hand" } } });
    await node.registry.release(FIRST);
    await node.pass();
    expect(await world.lines()).toEqual([]);
    const path = `ipallocations/${NAME}`;
    expect(node.api.calls.slice(1)).toEqual([`DELETE ${path}`, `GET ${path}`, `DELETE ${path}`]);
  });
});
