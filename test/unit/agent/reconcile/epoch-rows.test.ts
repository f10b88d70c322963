/**
 * Agents' writes to a registry that went back in time: real journals and registries of two nodes on one API server in
 * memory, which a copy of it replaces.
 */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LostAddresses } from "../../../../host/agent/gc/lost-addresses.ts";
import { OwnEpochRows } from "../../../../host/agent/reconcile/epoch-rows.ts";
import { OwnAllocations } from "../../../../host/agent/reconcile/own-allocations.ts";
import { ApiError, ApiUnavailable, type KubeCall } from "../../../../host/kubernetes/kube-api.ts";
import { formatIp } from "../../../../host/net/ip.ts";
import { KnownEpoch } from "../../../../host/registry/epoch/known-epoch.ts";
import type { Epoch } from "../../../../host/registry/epoch/registry-epoch.ts";
import { EPOCH_ANNOTATION, formatMark } from "../../../../host/resources/registry-epoch.ts";
import { ALLOCATIONS, MemoryApiServer, type StoredObject } from "../../../fakes/memory-api-server.ts";
import { TestClock } from "../../../world/clock.ts";
import { type ClusterNode, openClusterNode } from "../../../world/node.ts";

const NODES = "/api/v1/nodes";
const EPOCH: Epoch = {
  ...{ epoch: "e2", settled: "e1", definition: "kind", waitsFor: "", probed: "", beats: [] },
  cause: "history",
};
const MACHINE = { kind: "VirtualMachine", namespace: "shop", name: "db", uid: "vm", member: "db" };
const CONFLICT = { reason: "Conflict", since: "2026-01-01T00:00:00Z", parent: "", mac: "" };
const COOLING = { state: "Cooling", holders: [] };
const QUARANTINED = { state: "Quarantined", holders: [], quarantine: CONFLICT };
/** Longer than any cooldown. */
const COOLED_MS = 3_600_000;

let server: MemoryApiServer;
let clock: TestClock;
let one: Agent;
let two: Agent;

/** An agent, as far as a write for an epoch needs it. */
class Agent {
  readonly node: ClusterNode;
  readonly known = new KnownEpoch({ read: () => undefined, write: () => {} });
  readonly #allocations: OwnAllocations;
  readonly epochRows: OwnEpochRows;
  readonly #stop = new AbortController();
  /** Whether the pods of its rows are gone. */
  isPodGone = false;
  /** The machine that it runs on. */
  machine = "m1";
  /** Of the journal. */
  journal = { isWhole: true, isNewer: false };
  /** Number of times that it has written, and waits for other nodes. */
  waits = 0;
  /** A write that is under way. */
  writing: Promise<string> = Promise.resolve("nothing was written yet");

  constructor(node: ClusterNode) {
    this.node = node;
    const { api, name, registry, log } = node;
    const own = { api, node: name, registry, log };
    this.#allocations = new OwnAllocations(
      {
        ...{ ...own, relists: () => 0, isTold: async () => true, isOfPast: () => this.journal.isWhole },
        collector: { isPodGone: async () => this.isPodGone, adopted: () => {} },
        machine: { prove: async () => undefined },
        lost: new LostAddresses({ log, events: { emit: () => {} } }),
      },
      { graceMs: () => 60_000, nodeLostMs: () => 600_000, nowMs: clock.nowMs, random: () => 0.5 },
    );
    const terms = { known: this.known, machine: () => this.machine, signal: this.#stop.signal };
    const nics = { readNetnsStatus: async () => "there" as const };
    this.epochRows = new OwnEpochRows({ ...own, ...terms, nics, allocations: this.#allocations });
  }

  static async open(name: string): Promise<Agent> {
    const node = await openClusterNode({ name, clock, server });
    const agent = new Agent(node);
    await agent.#allocations.reconciled();
    agent.mark("e1");
    return agent;
  }

  mark(value: string | undefined): void {
    const annotations = value === undefined ? {} : { [EPOCH_ANNOTATION]: value };
    server.put(NODES, this.node.name, { metadata: { annotations } });
  }

  get marked(): string | undefined {
    return Object(server.collection(NODES).get(this.node.name)?.metadata).annotations?.[EPOCH_ANNOTATION];
  }

  /** Writes as for a new epoch, and marks the Node. Returns `done`, or the error. */
  write(cause: Epoch["cause"] = "history"): Promise<string> {
    const onWritten = async (): Promise<void> => {
      this.waits++;
      this.mark(formatMark(EPOCH.epoch, false));
    };
    const whole = async (): Promise<string> => {
      await this.epochRows.write({ ...EPOCH, cause }, { ...this.journal, onWritten, isOutdated: () => false });
      this.mark(EPOCH.epoch);
      return "done";
    };
    this.writing = whole().catch(String);
    return this.writing;
  }

  async end(pod: string): Promise<void> {
    await this.node.registry.release({ containerId: `c-${pod}`, ifName: "eth0" });
    await this.node.registry.objects.idle();
  }

  /** The same, and the address is free again. */
  async free(pod: string): Promise<void> {
    await this.end(pod);
    await this.node.pass(COOLED_MS);
  }

  /** `10.0.0.1 web-0 Bound` for each row. */
  async rows(): Promise<string[]> {
    const all = await this.node.registry.list(undefined, 100);
    return all.map((row) => `${formatIp(row.ip)} ${row.owner.replace("uid-", "")} ${row.state}`);
  }

  stop(): void {
    this.#stop.abort(new Error("The agent stops"));
  }

  async close(): Promise<void> {
    this.stop();
    await this.writing;
    await this.#allocations.close();
    await this.node.close();
  }
}

/** As the API server has them. */
function holdersOf({ holders = [] }: StoredObject["spec"]): readonly { readonly podUID: string }[] {
  return Array.isArray(holders) ? holders : [];
}

/** `10.0.0.1 Bound n1 web-0` for each object. */
function objects(): string[] {
  return [...server.objects.values()].map(({ metadata, spec }) => {
    const pods = holdersOf(spec).map(({ podUID }) => podUID.replace("uid-", ""));
    return [metadata.name, spec.state, spec.node, ...pods].join(" ");
  });
}

beforeEach(async () => {
  clock = new TestClock();
  const kinds = { [ALLOCATIONS]: { apiVersion: "ipam.vendor.io/v1", kind: "IPAllocation" } };
  server = new MemoryApiServer({ serves: { ...kinds, [NODES]: { apiVersion: "v1", kind: "Node" } } });
  one = await Agent.open("n1");
  two = await Agent.open("n2");
});

afterEach(async () => {
  for (const agent of [one, two]) await agent.close();
});

/** The registry has its state before `since`. */
async function goBackBefore(since: () => Promise<unknown>): Promise<void> {
  const copy = server.snapshot();
  await since();
  server.restore(copy, [ALLOCATIONS]);
}

const moved = async (): Promise<void> => {
  await one.free("a");
  await two.node.bind("10.0.0.1", "b");
};

/** The agent's calls that match fail from now on. Returns the function that ends that. */
function fail(agent: Agent, fails: (call: KubeCall) => boolean, error: Error): () => void {
  agent.node.gate = async (call, commit) => {
    if (fails(call)) throw error;
    return commit();
  };
  return () => {
    agent.node.gate = async (_call, commit) => commit();
  };
}

const forbidden = new ApiError({ status: 403, reason: "Forbidden", operation: "the call", message: "not allowed" });

describe("a row of the journal", () => {
  it("and the registry too is read in one list, and no object by itself", async () => {
    await one.node.bind("10.0.0.1", "a");
    one.node.calls.length = 0;
    expect(await one.write()).toBe("done");
    expect(one.node.calls.filter((call) => call !== `GET ${ALLOCATIONS}`)).toEqual([]);
  });

  it("is no claim that was never answered: an unconfirmed row is left to its own claim", async () => {
    one.node.gate = async ({ method }, commit) => (method === "POST" ? new Promise(() => {}) : commit());
    void one.node.bind("10.0.0.1", "a").catch(() => {});
    await expect.poll(() => one.rows()).toEqual(["10.0.0.1 a Bound"]);
    expect([await one.write(), objects()]).toEqual(["done", []]);
  });

  it.each([1, 2, 3])("is the member's still when its pod ends before list %i of the write", async (list) => {
    await one.node.bind("10.0.0.1", "a", { workload: MACHINE });
    let left = list;
    one.node.gate = async ({ path }, commit) =>
      path === ALLOCATIONS && --left === 0 ? one.end("a").then(commit) : commit();
    expect([await one.write(), left <= 0, objects()]).toEqual(["done", true, ["10.0.0.1 Kept n1"]]);
  });
});

describe("a record that came back with the past", () => {
  it("is taken in and trusted when only the definition was made again", async () => {
    await one.node.bind("10.0.0.1", "a");
    await goBackBefore(() => one.free("a"));
    one.journal.isWhole = false;
    expect(await one.write("kind")).toBe("done");
    expect([await one.rows(), [...one.known.state.unverified]]).toEqual([["10.0.0.1 a Bound"], []]);
  });

  const DELETED = { deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: ["a/b"] };
  it.for<[string, (spec: StoredObject["spec"]) => object, metadata?: object]>([
    ["of another node", () => ({ node: "n2" })],
    [
      "of a machine that migrates, which a pod of another node has as well",
      (spec) => ({ holders: [...holdersOf(spec), { ...holdersOf(spec)[0], podUID: "uid-x", node: "n2" }] }),
    ],
    ["in quarantine", () => QUARANTINED],
    ["that is being deleted", () => ({}), DELETED],
  ])("%s is not ended", async ([, change, more]) => {
    await one.node.bind("10.0.0.1", "a", { workload: MACHINE });
    await goBackBefore(() => one.free("a"));
    const before = server.objects.get("10.0.0.1") ?? expect.fail("There is no object");
    const spec = { ...before.spec, ...change(before.spec) };
    server.put(ALLOCATIONS, "10.0.0.1", { metadata: { ...before.metadata, ...more }, spec });
    expect(await one.write()).toBe("done");
    expect(server.objects.get("10.0.0.1")?.spec).toEqual(spec);
  });

  it.for<[string, () => Promise<void>, string[]]>([
    ["gone", () => one.free("a"), []],
    ["shown as cooling", () => one.end("a"), ["10.0.0.1 Cooling n1"]],
  ])("ends the write with an error until it is %s", async ([, since, left]) => {
    await one.node.bind("10.0.0.1", "a");
    await goBackBefore(since);
    const end = fail(one, ({ method }) => method !== "GET", new ApiUnavailable("the call", "no route"));
    expect(await one.write()).toMatch(/no route|is still Bound/);
    expect([one.marked, objects()]).toEqual(["e1", ["10.0.0.1 Bound n1 a"]]);
    end();
    clock.jump(10_000);
    expect([await one.write(), objects()]).toEqual(["done", left]);
  });

  describe.each([
    ["Bound n1 a", async () => {}],
    ["nothing", () => one.free("a")],
    ["Cooling n1", () => one.end("a").then(() => server.edit("10.0.0.1", (spec) => ({ ...spec, ...COOLING })))],
  ])("in the place of a member's: %s", (_, atCopy) => {
    beforeEach(async () => {
      await one.node.bind("10.0.0.1", "a");
      await atCopy();
      await goBackBefore(async () => {
        await one.free("a");
        await one.node.bind("10.0.0.1", "b", { workload: MACHINE });
      });
    });

    const collect = async () =>
      one.node.registry.collect((await one.node.registry.list(undefined, 1))[0] ?? expect.fail("There is no row"));

    it("shows that the registry went back, and gives way as soon as that is known", async () => {
      one.node.around = () => {
        one.node.around = (_method, _args, run) => run();
        throw new Error("disk I/O error");
      };
      // The member's pod goes with the same past.
      one.node.gate = async (_call, commit) => {
        one.node.gate = async (_next, then) => then();
        await collect();
        return commit();
      };
      expect(await one.epochRows.isNewestMissing()).toBe(true);
      await expect.poll(objects).toEqual(["10.0.0.1 Kept n1"]);
    });

    it("shows that to an agent that has started since, too", async () => {
      one.node.registry.objects.forgetObjects();
      expect(await one.epochRows.isNewestMissing()).toBe(true);
    });

    it.each(["whole", "as found", "whole; the pod ends late"])("gives way with the epoch; journal: %s", async (how) => {
      const isLate = how.endsWith("late");
      fail(one, () => true, new ApiUnavailable("the call", "no route"));
      if (!isLate) await collect();
      await one.node.registry.objects.idle();
      const late = isLate ? [undefined, collect] : [];
      one.node.gate = (_call, commit) => Promise.resolve(late.shift()?.()).then(commit);
      one.journal = { isWhole: how !== "as found", isNewer: true };
      // First claims of other nodes do not wait longer.
      expect([await one.write(), objects()]).toEqual(["done", ["10.0.0.1 Kept n1"]]);
      expect(await one.epochRows.isNewestMissing()).toBe(false);
    });
  });

  it("of another machine that had this node's name is not ended", async () => {
    await one.node.bind("10.0.0.1", "a");
    server.edit("10.0.0.1", (spec) => ({ ...spec, holders: [{ ...Object(spec.holders)[0], machine: "m0" }] }));
    await goBackBefore(() => one.free("a"));
    expect([await one.write(), objects()]).toEqual(["done", ["10.0.0.1 Bound n1 a"]]);
  });

  it("stays in quarantine when its node was taken for lost and its pod is gone", async () => {
    await one.node.bind("10.0.0.1", "a");
    const quarantine = { ...CONFLICT, reason: "NodeLost" };
    server.edit("10.0.0.1", (spec) => ({ ...spec, ...QUARANTINED, quarantine }));
    one.isPodGone = true;
    expect([await one.write(), objects()]).toEqual(["done", ["10.0.0.1 Quarantined n1"]]);
  });

  it("is in quarantine again when its row is", async () => {
    const row = await one.node.bind("10.0.0.1", "a");
    const quarantine = { reason: "Conflict", mac: undefined, parent: "", nextProbeAtMs: clock.ms + COOLED_MS } as const;
    await goBackBefore(async () => {
      await one.node.registry.quarantine(row, quarantine);
      await one.node.registry.objects.idle();
    });
    expect([await one.write(), objects()]).toEqual(["done", ["10.0.0.1 Quarantined n1"]]);
  });
});

describe("a record of another node that is in the way", () => {
  beforeEach(async () => {
    await one.node.bind("10.0.0.1", "a");
    await goBackBefore(moved);
    expect(objects()).toEqual(["10.0.0.1 Bound n1 a"]);
  });

  const become = (change: object) => server.edit("10.0.0.1", (spec) => ({ ...spec, holders: [], ...change }));
  it.for<[what: string, change: () => unknown, left: string]>([
    ["final when its node has written, too", () => one.mark("e2.written"), "Bound n1 a"],
    ["final when its node has marked the epoch", () => one.mark("e2"), "Bound n1 a"],
    ["final when no agent of its node ever marked one", () => one.mark(undefined), "Bound n1 a"],
    ["final when its node is gone", () => server.remove("n1", NODES), "Bound n1 a"],
    ["taken back while it cools", () => become({ state: "Cooling" }), "Bound n2 b"],
    ["left as it is in quarantine", () => become(QUARANTINED), "Quarantined n1"],
    ["left as it is when it cannot be read", () => become({ state: "Nonsense" }), "Nonsense n1"],
  ])("is %s", async ([, change, left]) => {
    change();
    expect([await two.write(), objects()]).toEqual(["done", [`10.0.0.1 ${left}`]]);
  });

  it("is waited for until the agent stops", async () => {
    void two.write();
    await expect.poll(() => two.marked).toBe("e2.written");
    two.stop();
    expect(await two.writing).toMatch(/aborted|The agent stops/);
    expect(two.marked).toBe("e2.written");
  });
});

it("of two nodes that wait for each other both see that the other has written when neither journal is whole", async () => {
  await one.node.bind("10.0.0.1", "a");
  await two.node.bind("10.0.0.2", "b");
  await goBackBefore(async () => {
    await one.free("a");
    await two.free("b");
    await one.node.bind("10.0.0.2", "c");
    await two.node.bind("10.0.0.1", "d");
  });
  for (const agent of [one, two]) {
    agent.journal.isWhole = false;
    // The pods that the past shows have no other address on the NIC.
    void agent.write();
  }
  expect(await Promise.all([one.writing, two.writing])).toEqual(["done", "done"]);
  expect(objects().sort()).toEqual(["10.0.0.1 Bound n1 a", "10.0.0.2 Bound n2 b"]);
});

describe("a write that fails", () => {
  beforeEach(() => goBackBefore(() => one.node.bind("10.0.0.1", "a")));

  it.for<[string, Error]>([
    ["is refused", forbidden],
    ["has no answer", new ApiUnavailable("GET", "no route")],
  ])("ends with the error when the list of this node's records %s, and the next one writes all", async ([, error]) => {
    const end = fail(one, ({ method, path }) => method === "GET" && path === ALLOCATIONS, error);
    expect(await one.write()).toContain(error.message);
    end();
    expect([one.marked, objects()]).toEqual(["e1", []]);
    expect([await one.write(), objects()]).toEqual(["done", ["10.0.0.1 Bound n1 a"]]);
  });

  it("is tried again when a record could not be created: the Node is marked as written meanwhile", async () => {
    const end = fail(one, ({ method }) => method === "POST", new ApiUnavailable("POST", "no route"));
    void one.write();
    await expect.poll(() => one.marked).toBe("e2.written");
    end();
    expect([await one.writing, objects()]).toEqual(["done", ["10.0.0.1 Bound n1 a"]]);
  });

  it("ends with the error when a record cannot be read after it was written", async () => {
    server.put(ALLOCATIONS, "10.0.0.1", { spec: { ip: "10.0.0.1", state: "Nonsense" } });
    fail(one, ({ path }) => path === `${ALLOCATIONS}/10.0.0.1`, forbidden);
    expect(await one.write()).toContain("not allowed");
  });

  it("ends with the error when the other node's Node cannot be read", async () => {
    await one.write();
    server.edit("10.0.0.1", (spec) => ({
      ...spec,
      node: "n2",
      holders: [{ ...holdersOf(spec)[0], node: "n2", podUID: "uid-x" }],
    }));
    fail(one, ({ path }) => path === NODES, forbidden);
    expect(await one.write()).toContain("not allowed");
  });
});
