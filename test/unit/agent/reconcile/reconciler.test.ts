import { describe, expect, test } from "vitest";
import { SWEEP_RETRY_MS } from "../../../../host/agent/gc/collector.ts";
import {
  ADOPTIONS_AT_ONCE,
  RECONCILE_ALL_MS,
  RECONCILE_INTERVAL_MS,
  RECONCILE_TICK_MS,
  Reconciler,
} from "../../../../host/agent/reconcile/reconciler.ts";
import { type Journal, UNKNOWN_CONTAINER } from "../../../../host/registry/journal.ts";
import {
  encodeIpAllocation,
  type IpAllocation,
  type IpAllocationSpec,
} from "../../../../host/resources/ip-allocation.ts";
import { ALLOCATIONS, unreachable } from "../../../fakes/memory-api-server.ts";
import { decodeStored, openJournalNode, type TestNode } from "../../../world/node.ts";
import { ipAllocation } from "../../../world/subjects.ts";
import { ip } from "../../../world/values.ts";

const GRACE_MS = 60_000;

/** A reconciler on a node. */
class Scene {
  readonly node: TestNode<Journal>;
  readonly reconciler: Reconciler;
  relists = 0;
  isTold = true;
  /** Number of times that it has asked for that. */
  questions = 0;

  machine: string | undefined;
  republished = 0;

  constructor(node: TestNode<Journal>) {
    this.node = node;
    const { api, name, log, registry, clock } = node;
    this.reconciler = new Reconciler(
      {
        ...{ api, node: name, log },
        registry: {
          list: (after, limit) => registry.list(after, limit),
          findAddress: (space, address) => registry.findAddress(space, address),
          findOwner: (owner) => registry.findOwner(owner),
          adopt: (adoption) => registry.adopt(adoption),
          ...{
            republish: async () => void this.republished++,
            objects: { observe: () => {}, forgetRetained: () => {}, sync: async () => {} },
          },
        },
        relists: () => this.relists,
        isTold: async () => {
          this.questions++;
          return this.isTold;
        },
        collector: { isPodGone: () => this.isPodGone(), adopted: () => {} },
        ...{ lost: { prune: async () => {} }, machine: { prove: async () => this.machine } },
      },
      { graceMs: () => GRACE_MS, nodeLostMs: () => 10 * GRACE_MS, nowMs: clock.nowMs, random: () => 0.5 },
    );
  }

  isPodGone = async (): Promise<boolean> => false;

  /** An object of the pod on this node. */
  addObject(address: string, pod: string, changes: Partial<IpAllocationSpec> = {}): IpAllocation {
    const { name, spec } = ipAllocation(address, { holders: [this.#holder(pod)], ...changes });
    return decodeStored(this.node.server.put(ALLOCATIONS, name, encodeIpAllocation(spec)));
  }

  #holder = (pod: string, machine?: string) => {
    const holder = { namespace: "shop", pod, podUid: `uid-${pod}`, ifName: "eth0", node: this.node.name };
    return machine === undefined ? holder : { ...holder, machine };
  };

  /** An object that says that the node was lost with the pod, on that machine. */
  addLost(address: string, pod: string, machine?: string): IpAllocation {
    const quarantine = { reason: "NodeLost" as const, mac: "", parent: "", holder: this.#holder(pod, machine) };
    return this.addObject(address, "", { state: "Quarantined", holders: [], quarantine });
  }

  /** A row of the journal, as an ADD wrote it. */
  async bind(address: string, pod: string): Promise<void> {
    const row = await this.node.bind(address, pod);
    await this.node.registry.record([{ ...row, isConfirmed: true }]);
  }

  async rowOf(address: string): Promise<string> {
    const row = await this.node.registry.findAddress("", ip(address));
    return row === undefined ? "none" : `${row.state} ${row.owner} ${row.containerId}`.trimEnd();
  }
}

const it = test.extend<{ world: Scene }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads from the pattern which other fixtures are needed
  world: async ({}, use) => {
    const world = new Scene(await openJournalNode());
    await use(world);
    await world.reconciler.close();
  },
});

describe("a reconciliation", () => {
  it("undo: asks no more when several reads have no answer", async ({ world }) => {
    for (let index = 1; index <= 3 * ADOPTIONS_AT_ONCE; index++) world.addObject(`10.0.0.${index}`, `web-${index}`);
    world.node.gate = async (call, commit) =>
      call.query?.fieldSelector === undefined ? unreachable(call, commit) : commit();
    await expect(world.reconciler.reconcile()).rejects.toThrow("No connection");
    const reads = world.node.calls.filter((call) => /10\.0\.0\.[0-9]+$/.test(call));
    expect(reads.length).toBeLessThan(2 * ADOPTIONS_AT_ONCE);
    expect(reads.length).toBeGreaterThanOrEqual(ADOPTIONS_AT_ONCE);
  });

  it("node-lost: reads the pods of several addresses at once when the node was taken for lost", async ({ world }) => {
    const numbers = Array.from({ length: 2 * ADOPTIONS_AT_ONCE }, (_, index) => index + 1);
    for (const number of numbers) {
      await world.bind(`10.0.0.${number}`, `web-${number}`);
      world.addLost(`10.0.0.${number}`, `web-${number}`);
    }
    let [reading, most] = [0, 0];
    world.isPodGone = async () => {
      most = Math.max(most, ++reading);
      await new Promise(setImmediate);
      reading--;
      return false;
    };
    await world.reconciler.reconcile();
    expect([world.republished, most]).toEqual([2 * ADOPTIONS_AT_ONCE, ADOPTIONS_AT_ONCE]);
  });
});

it("node-lost: an address that this machine lost is released after a grace, another one's probed after nodeLost", async ({
  world,
}) => {
  world.machine = "new";
  world.isPodGone = async () => true;
  world.addLost("10.0.0.1", "web", "new");
  world.addLost("10.0.0.2", "db", "old");
  const states = async () => {
    await world.reconciler.reconcileDue();
    const rows = await Promise.all([world.rowOf("10.0.0.1"), world.rowOf("10.0.0.2")]);
    return rows.map((row) => row.split(" ")[0]);
  };
  expect(await states()).toEqual(["none", "none"]);
  world.node.clock.jump(GRACE_MS);
  expect(await states()).toEqual(["Cooling", "none"]);
  world.node.clock.jump(9 * GRACE_MS - 1);
  expect(await states()).toEqual(["Cooling", "none"]);
  world.node.clock.jump(1);
  expect(await states()).toEqual(["Cooling", "Quarantined"]);
});

it.for(["an observed", "a new"])(
  "node-lost: %s object is decided about when a claim of it was undone",
  async (kind, { world }) => {
    const { clock, registry } = world.node;
    world.isPodGone = async () => true;
    world.addLost("10.0.0.1", "web");
    if (kind === "an observed") await world.reconciler.reconcileDue();
    const row = await world.node.bind("10.0.0.1", "next");
    world.reconciler.hasten(["10.0.0.1"]);
    await world.reconciler.reconcileDue();
    await registry.forget({ ...row, version: row.version });
    for (let passes = 0; passes < 2; passes++) {
      clock.jump(GRACE_MS);
      await world.reconciler.reconcileDue();
    }
    expect(await world.rowOf("10.0.0.1")).toBe("Cooling uid-web");
  },
);

describe("the time of a reconciliation", () => {
  /** Does the work of the reconciler's worker at each check. */
  async function reconcileIfDue({ reconciler }: Scene): Promise<void> {
    if (reconciler.isDue) await reconciler.reconcileDue();
  }

  it("is the start, a first observation, and an hour; sooner if no controller sends notices", async ({ world }) => {
    const reconcileAfter = async (milliseconds: number): Promise<number> => {
      world.node.clock.ms += milliseconds;
      world.node.calls.length = 0;
      await reconcileIfDue(world);
      return world.node.calls.length;
    };
    await world.bind("10.0.0.1", "web");
    world.addObject("10.0.0.1", "web");
    world.addObject("10.0.0.2", "web");
    expect(await reconcileAfter(0), "a list and a read").toBe(2);
    await world.reconciler.reconciled();
    expect(await reconcileAfter(GRACE_MS - 1)).toBe(0);
    expect(await reconcileAfter(1), "a read, and a read before the release").toBe(2);
    expect(await reconcileAfter(RECONCILE_INTERVAL_MS)).toBe(0);
    world.isTold = false;
    expect(await reconcileAfter(RECONCILE_INTERVAL_MS - 1)).toBe(0);
    expect(await reconcileAfter(1)).toBe(1);
    world.isTold = true;
    expect(await reconcileAfter(RECONCILE_ALL_MS - 1)).toBe(0);
    expect(await reconcileAfter(1)).toBe(1);
  });

  it("is also that of a new list of a watch: records may have vanished with no event", async ({ world }) => {
    await reconcileIfDue(world);
    world.addObject("10.0.0.1", "web");
    world.node.calls.length = 0;
    await reconcileIfDue(world);
    expect(world.node.calls).toEqual([]);
    world.relists++;
    await reconcileIfDue(world);
    expect(await world.rowOf("10.0.0.1")).toBe(`Bound uid-web ${UNKNOWN_CONTAINER}`);
  });

  it("comes again soon after a failure", async ({ world }) => {
    await reconcileIfDue(world);
    world.node.clock.ms += RECONCILE_ALL_MS;
    world.node.calls.length = 0;
    world.addObject("10.0.0.1", "web");
    world.node.gate = unreachable;
    await expect(reconcileIfDue(world)).rejects.toThrow("No connection");
    world.node.clock.ms += SWEEP_RETRY_MS - 1;
    await reconcileIfDue(world);
    expect(world.node.calls).toHaveLength(1);
    world.node.clock.ms += 1;
    await expect(reconcileIfDue(world)).rejects.toThrow("No connection");
    world.node.gate = async (_call, commit) => commit();
    world.node.clock.ms += SWEEP_RETRY_MS;
    await reconcileIfDue(world);
    expect(await world.rowOf("10.0.0.1")).toBe(`Bound uid-web ${UNKNOWN_CONTAINER}`);
  });

  it("comes again at once after a first one that failed: ADDs wait for it", async ({ world }) => {
    world.addObject("10.0.0.1", "web");
    world.node.gate = unreachable;
    await expect(reconcileIfDue(world)).rejects.toThrow("No connection");
    world.node.gate = async (_call, commit) => commit();
    world.node.clock.ms += RECONCILE_TICK_MS;
    await reconcileIfDue(world);
    await world.reconciler.reconciled();
    expect(await world.rowOf("10.0.0.1")).toBe(`Bound uid-web ${UNKNOWN_CONTAINER}`);
    expect(world.questions).toBe(1);
  });

  it("does not come once it is closed", async ({ world }) => {
    await world.reconciler.close();
    await expect(world.reconciler.reconciled()).rejects.toThrow("The reconciler is closed");
    await expect(world.reconciler.reconcile()).rejects.toThrow("The reconciler is closed");
  });
});
