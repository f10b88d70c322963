import { describe, expect, test } from "vitest";
import { SWEEP_RETRY_MS } from "../../../../host/agent/gc/collector.ts";
import {
  ADOPTIONS_AT_ONCE,
  RECONCILE_ALL_MS,
  RECONCILE_INTERVAL_MS,
  RECONCILE_TICK_MS,
  type ReconcileReport,
  Reconciler,
} from "../../../../host/agent/gc/reconciler.ts";
import { formatIp } from "../../../../host/net/ip.ts";
import { type Journal, UNKNOWN_CONTAINER } from "../../../../host/registry/journal.ts";
import {
  allocationName,
  encodeIpAllocation,
  type IpAllocation,
  type IpAllocationSpec,
} from "../../../../host/resources/ip-allocation.ts";
import { ALLOCATIONS, unreachable } from "../../../fakes/memory-api-server.ts";
import { decodeStored, openJournalNode, type TestNode } from "../../../world/node.ts";
import { claim, proposal } from "../../../world/subjects.ts";
import { ip } from "../../../world/values.ts";

const GRACE_MS = 60_000;

/** A reconciler on a node. */
class Scene {
  readonly node: TestNode<Journal>;
  readonly reconciler: Reconciler;
  readonly republished: string[] = [];
  readonly inherited: string[] = [];
  readonly gonePods = new Set<string>();
  readonly seen: string[] = [];
  /** Addresses that it reports to the collector as taken in. */
  readonly toCheck: string[] = [];
  relists = 0;
  isTold = true;
  /** Number of times that it has asked for that. */
  questions = 0;

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
          republish: async (row) => void this.republished.push(formatIp(row.ip)),
          inherit: async (row) => void this.inherited.push(formatIp(row.ip)),
          observe: ({ name }) => void this.seen.push(name),
          forgetRetained: () => {},
        },
        relists: () => this.relists,
        isTold: async () => {
          this.questions++;
          return this.isTold;
        },
        collector: {
          isPodGone: ({ pod }) => this.isPodGone(pod),
          adopted: ({ ip }) => void this.toCheck.push(formatIp(ip)),
        },
        lost: { prune: async () => {} },
      },
      { graceMs: () => GRACE_MS, nowMs: clock.nowMs, random: () => 0.5 },
    );
  }

  isPodGone = async (pod: string): Promise<boolean> => this.gonePods.has(pod);

  /** Between the list and the read of an object. */
  afterList(change: () => void): void {
    this.node.gate = async ({ query }, commit) => {
      const answer = commit();
      if (query?.fieldSelector !== undefined) change();
      return answer;
    };
  }

  /** An object of the pod on this node. */
  addObject(address: string, pod: string, changes: Partial<IpAllocationSpec> = {}): IpAllocation {
    const node = this.node.name;
    const holders = [{ namespace: "shop", pod, podUid: `uid-${pod}`, ifName: "eth0", node }];
    const place = { ip: ip(address), addressSpace: "", prefixLength: 24, pool: "blue" };
    const spec: IpAllocationSpec = { ...place, state: "Bound", node, holders, ...changes };
    const name = allocationName(spec.ip, "");
    const object = encodeIpAllocation(spec, { name, labels: {} });
    return decodeStored(this.node.server.put(ALLOCATIONS, name, object));
  }

  /** A row of the journal, as an ADD wrote it. */
  async bind(address: string, pod: string): Promise<void> {
    await this.node.registry.confirm([await this.node.bind(address, pod)]);
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

function summary(report: ReconcileReport | undefined): string {
  const texts = (rows: ReconcileReport["adopted"]): string =>
    rows
      .map(({ ip }) => formatIp(ip))
      .sort()
      .join(" ");
  if (report === undefined) return "nothing";
  return `+${texts(report.adopted)} -${texts(report.released)} !${texts(report.republished)}`;
}

describe("undo: a reconciliation", () => {
  it("adopts what the journal lacks, with the address and without the container", async ({ world }) => {
    world.addObject("10.0.0.1", "web");
    world.addObject("10.0.0.2", "", { state: "Cooling", holders: [] });
    expect(summary(await world.reconciler.reconcile())).toBe("+10.0.0.1 10.0.0.2 - !");
    expect(world.toCheck).toContain("10.0.0.1");
    expect(await world.rowOf("10.0.0.1")).toBe(`Bound uid-web ${UNKNOWN_CONTAINER}`);
    expect(await world.rowOf("10.0.0.2")).toBe("Cooling");
    expect(summary(await world.reconciler.reconcile())).toBe("+ - !");
  });

  it("adopts nothing that is gone after the list", async ({ world }) => {
    world.addObject("10.0.0.1", "web");
    world.afterList(() => world.node.server.remove("10.0.0.1"));
    expect(summary(await world.reconciler.reconcile())).toBe("+ - !");
    expect(await world.rowOf("10.0.0.1")).toBe("none");
  });

  it("adopts nothing that another node has taken over meanwhile (node-lost)", async ({ world }) => {
    const seen = world.addObject("10.0.0.1", "web");
    world.afterList(() => world.node.server.edit(seen.name, (spec) => ({ ...spec, node: "n2" })));
    expect(summary(await world.reconciler.reconcile())).toBe("+ - !");
  });

  it("releases what no NIC has at the second observation, a grace later", async ({ world }) => {
    await world.bind("10.0.0.1", "web");
    world.addObject("10.0.0.1", "web");
    world.addObject("10.0.0.2", "web");
    expect(summary(await world.reconciler.reconcile())).toBe("+ - !");
    world.node.clock.ms += GRACE_MS - 1;
    expect(summary(await world.reconciler.reconcile())).toBe("+ - !");
    world.node.clock.ms += 1;
    expect(summary(await world.reconciler.reconcile())).toBe("+ -10.0.0.2 !");
    expect([await world.rowOf("10.0.0.1"), await world.rowOf("10.0.0.2")]).toEqual([
      "Bound uid-web c-web",
      "Cooling uid-web",
    ]);
  });

  it("gives the row of a restored journal the owner that had the address before, before ADDs are served", async ({
    world,
  }) => {
    const workload = { kind: "StatefulSet", namespace: "shop", name: "db", uid: "set", member: "db-0" };
    for (const [address, pod, owner] of [
      ["10.0.0.1", "db-0", workload],
      ["10.0.0.2", "db-1", { ...workload, isFresh: true }],
      ["10.0.0.3", "db-2", undefined],
    ] as const) {
      await world.node.registry.claim(claim(`uid-${pod}`, [proposal(address)], { pod }));
      world.addObject(address, pod, { workload: owner });
    }
    await world.bind("10.0.0.4", "db-3");
    world.addObject("10.0.0.4", "db-3", { workload });
    await world.reconciler.reconcile();
    expect(world.inherited).toEqual(["10.0.0.1"]);
  });

  it("starts to count anew when the object was written", async ({ world }) => {
    await world.bind("10.0.0.1", "web");
    world.addObject("10.0.0.1", "web");
    const spare = world.addObject("10.0.0.2", "web");
    await world.reconciler.reconcile();
    world.node.clock.ms += GRACE_MS;
    world.node.server.edit(spare.name, (spec) => spec);
    expect(summary(await world.reconciler.reconcile())).toBe("+ - !");
    world.node.clock.ms += GRACE_MS;
    expect(summary(await world.reconciler.reconcile())).toBe("+ -10.0.0.2 !");
  });

  it("keeps both of two addresses of a NIC that it does not know until the pod is gone", async ({ world }) => {
    world.addObject("10.0.0.1", "web");
    world.addObject("10.0.0.2", "web");
    await world.reconciler.reconcile();
    world.node.clock.ms += GRACE_MS;
    expect(summary(await world.reconciler.reconcile())).toBe("+ - !");
    world.gonePods.add("web");
    expect(summary(await world.reconciler.reconcile())).toBe("+ -10.0.0.2 !");
  });

  it("goes on after an object that cannot be decoded", async ({ world }) => {
    const seen = world.addObject("10.0.0.1", "strange");
    world.addObject("10.0.0.2", "web");
    world.afterList(() => world.node.server.edit(seen.name, (spec) => ({ ...spec, holders: [] })));
    expect(summary(await world.reconciler.reconcile())).toBe("+10.0.0.2 - !");
    expect(world.node.lines[0]).toBe("warn Reading an allocation of this node failed; it stays as it is");
  });

  it("goes on with other pods after a read without an answer, and fails at the end", async ({ world }) => {
    const names = Array.from({ length: 2 * ADOPTIONS_AT_ONCE }, (_, index) => `10.0.0.${index + 1}`);
    for (const name of names) world.addObject(name, `web-${name}`);
    const { gate } = world.node;
    world.node.gate = async (call, commit) => (call.path.endsWith("/10.0.0.1") ? unreachable(call, commit) : commit());
    await expect(world.reconciler.reconcile()).rejects.toThrow("No connection");
    expect(await world.rowOf("10.0.0.1")).toBe("none");
    for (const name of names.slice(1)) expect(await world.rowOf(name)).toContain("Bound");
    world.node.gate = gate;
    expect(summary(await world.reconciler.reconcile())).toBe("+10.0.0.1 - !");
  });

  it("asks no more when several reads have no answer", async ({ world }) => {
    for (let index = 1; index <= 3 * ADOPTIONS_AT_ONCE; index++) world.addObject(`10.0.0.${index}`, `web-${index}`);
    world.node.gate = async (call, commit) =>
      call.query?.fieldSelector === undefined ? unreachable(call, commit) : commit();
    await expect(world.reconciler.reconcile()).rejects.toThrow("No connection");
    const reads = world.node.calls.filter((call) => /10\.0\.0\.[0-9]+$/.test(call));
    expect(reads.length).toBeLessThan(2 * ADOPTIONS_AT_ONCE);
    expect(reads.length).toBeGreaterThanOrEqual(ADOPTIONS_AT_ONCE);
  });

  it("does nothing that the API server does not confirm", async ({ world }) => {
    world.addObject("10.0.0.1", "web");
    world.node.gate = unreachable;
    await expect(world.reconciler.reconcile()).rejects.toThrow("No connection");
    expect(await world.rowOf("10.0.0.1")).toBe("none");
  });
});

describe("recreate: a reconciliation", () => {
  it("publishes again what has vanished, and what differs", async ({ world }) => {
    await world.bind("10.0.0.1", "web");
    await world.bind("10.0.0.2", "db");
    await world.bind("10.0.0.3", "there");
    world.addObject("10.0.0.2", "other");
    world.addObject("10.0.0.3", "there");
    expect(summary(await world.reconciler.reconcile())).toBe("+ - !10.0.0.1 10.0.0.2");
    expect(world.republished).toEqual(["10.0.0.1", "10.0.0.2"]);
  });
});

describe("node-lost: a reconciliation", () => {
  it("reads the pods of several addresses at once when the node was taken for lost", async ({ world }) => {
    const numbers = Array.from({ length: 2 * ADOPTIONS_AT_ONCE }, (_, index) => index + 1);
    for (const number of numbers) {
      await world.bind(`10.0.0.${number}`, `web-${number}`);
      const pod = { namespace: "shop", pod: `web-${number}`, podUid: `uid-web-${number}` };
      const holder = { ...pod, ifName: "eth0", node: world.node.name };
      const quarantine = { reason: "NodeLost" as const, mac: "", parent: "", holder };
      world.addObject(`10.0.0.${number}`, "", { state: "Quarantined", holders: [], quarantine });
    }
    let [reading, most] = [0, 0];
    world.isPodGone = async () => {
      most = Math.max(most, ++reading);
      await new Promise(setImmediate);
      reading--;
      return false;
    };
    const { republished } = await world.reconciler.reconcile();
    expect([republished.length, most]).toEqual([2 * ADOPTIONS_AT_ONCE, ADOPTIONS_AT_ONCE]);
  });
});

describe("recreate: a notice", () => {
  it("has the named objects read, and what it finds done", async ({ world }) => {
    for (const [at, pod] of ["web", "db", "there", "other"].entries()) await world.bind(`10.0.0.${at + 1}`, pod);
    world.addObject("10.0.0.2", "another");
    world.addObject("10.0.0.3", "there");
    world.addObject("10.0.0.9", "orphan");
    const names = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.9"];
    world.reconciler.hasten(["no address", ...names]);
    await world.reconciler.reconcile();
    world.republished.length = 0;
    world.reconciler.hasten(["no address", ...names]);
    world.node.calls.length = 0;
    expect(summary(await world.reconciler.reconcileDue())).toBe("+ - !10.0.0.1 10.0.0.2");
    expect(world.node.calls).toHaveLength(4);
    expect(await world.rowOf("10.0.0.9")).toBe(`Bound uid-orphan ${UNKNOWN_CONTAINER}`);
  });

  it("is looked at again soon if the object is another's, and not at all when nothing is left to do", async ({
    world,
  }) => {
    await world.bind("10.0.0.1", "web");
    world.addObject("10.0.0.1", "web");
    await world.reconciler.reconcile();
    world.node.server.remove("10.0.0.1");
    world.reconciler.hasten(["10.0.0.1"]);
    expect(summary(await world.reconciler.reconcileDue())).toBe("+ - !10.0.0.1");
    expect([world.reconciler.isDue, await world.reconciler.reconcileDue()]).toEqual([false, undefined]);
    world.node.clock.ms += SWEEP_RETRY_MS;
    world.addObject("10.0.0.1", "web");
    expect([world.reconciler.isDue, summary(await world.reconciler.reconcileDue())]).toEqual([true, "+ - !"]);
    world.node.clock.ms += SWEEP_RETRY_MS;
    expect(world.reconciler.isDue).toBe(false);
  });

  it("is not forgotten when the API server does not answer", async ({ world }) => {
    await world.bind("10.0.0.1", "web");
    world.addObject("10.0.0.1", "web");
    await world.reconciler.reconcile();
    world.node.server.remove("10.0.0.1");
    world.reconciler.hasten(["10.0.0.1"]);
    world.node.gate = unreachable;
    await expect(world.reconciler.reconcileDue()).rejects.toThrow("No connection");
    world.node.gate = async (_call, commit) => commit();
    world.node.clock.ms += SWEEP_RETRY_MS;
    expect(summary(await world.reconciler.reconcileDue())).toBe("+ - !10.0.0.1");
  });

  it.each(["10.0.0.1", "all"])("of %s that comes while everything is compared is not lost", async (of) => {
    const world = new Scene(await openJournalNode());
    await world.bind("10.0.0.1", "web");
    world.addObject("10.0.0.1", "web");
    world.afterList(() => {
      world.node.server.remove("10.0.0.1");
      world.reconciler.hasten(of === "all" ? "all" : [of]);
      world.node.gate = async (_call, commit) => commit();
    });
    expect(summary(await world.reconciler.reconcile())).toBe("+ - !");
    expect(summary(await world.reconciler.reconcileDue())).toBe("+ - !10.0.0.1");
    await world.reconciler.close();
  });

  it("leaves an object that cannot be decoded", async ({ world }) => {
    const seen = world.addObject("10.0.0.1", "strange");
    await world.reconciler.reconcile();
    world.node.server.edit(seen.name, (spec) => ({ ...spec, holders: [] }));
    world.reconciler.hasten([seen.name]);
    expect(summary(await world.reconciler.reconcileDue())).toBe("+ - !10.0.0.1");
    expect(world.node.lines).toContain("warn Reading an allocation of this node failed; it stays as it is");
  });
});

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

  it("is also that of a new list of a watch: records may have vanished with no event, as from a backup", async ({
    world,
  }) => {
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
