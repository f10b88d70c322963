import { describe, expect } from "vitest";
import { SWEEP_RETRY_MS } from "../../../../host/agent/gc/collector.ts";
import type { ReconcileReport } from "../../../../host/agent/gc/reconciler.ts";
import { RECONCILE_INTERVAL_MS, RECONCILE_TICK_MS } from "../../../../host/agent/gc/reconciler.ts";
import { formatIp } from "../../../../host/net/ip.ts";
import { UNKNOWN_CONTAINER } from "../../../../host/registry/journal.ts";
import { UNREACHABLE } from "./collector-world.ts";
import { GRACE_MS, it, type ReconcilerWorld } from "./reconciler-world.ts";

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
    expect(await world.rowOf("10.0.0.1")).toBe(`Bound uid-web ${UNKNOWN_CONTAINER}`);
    expect(await world.rowOf("10.0.0.2")).toBe("Cooling");
    expect(summary(await world.reconciler.reconcile())).toBe("+ - !");
  });

  it("adopts nothing that only the watch still has", async ({ world }) => {
    world.addObject("10.0.0.1", "web");
    world.server.clear();
    expect(summary(await world.reconciler.reconcile())).toBe("+ - !");
    expect(await world.rowOf("10.0.0.1")).toBe("none");
  });

  it("adopts nothing that another node has taken over meanwhile (node-lost)", async ({ world }) => {
    const seen = world.addObject("10.0.0.1", "web");
    world.server.set(seen.name, { ...seen, spec: { ...seen.spec, node: "n2" } });
    expect(summary(await world.reconciler.reconcile())).toBe("+ - !");
  });

  it("releases what no NIC has at the second observation, a grace later", async ({ world }) => {
    await world.bind("10.0.0.1", "web");
    world.addObject("10.0.0.1", "web");
    world.addObject("10.0.0.2", "web");
    expect(summary(await world.reconciler.reconcile())).toBe("+ - !");
    world.clockMs += GRACE_MS - 1;
    expect(summary(await world.reconciler.reconcile())).toBe("+ - !");
    world.clockMs += 1;
    expect(summary(await world.reconciler.reconcile())).toBe("+ -10.0.0.2 !");
    expect([await world.rowOf("10.0.0.1"), await world.rowOf("10.0.0.2")]).toEqual([
      "Bound uid-web c-web",
      "Cooling uid-web",
    ]);
  });

  it("starts to count anew when the object was written", async ({ world }) => {
    await world.bind("10.0.0.1", "web");
    world.addObject("10.0.0.1", "web");
    const spare = world.addObject("10.0.0.2", "web");
    await world.reconciler.reconcile();
    world.clockMs += GRACE_MS;
    world.server.set(spare.name, { ...spare, resourceVersion: "99" });
    expect(summary(await world.reconciler.reconcile())).toBe("+ - !");
    world.clockMs += GRACE_MS;
    expect(summary(await world.reconciler.reconcile())).toBe("+ -10.0.0.2 !");
  });

  it("keeps both of two addresses of a NIC that it does not know until the pod is gone", async ({ world }) => {
    world.addObject("10.0.0.1", "web");
    world.addObject("10.0.0.2", "web");
    await world.reconciler.reconcile();
    world.clockMs += GRACE_MS;
    expect(summary(await world.reconciler.reconcile())).toBe("+ - !");
    world.gonePods.add("web");
    expect(summary(await world.reconciler.reconcile())).toBe("+ -10.0.0.2 !");
  });

  it("goes on after an object that cannot be decoded", async ({ world }) => {
    const seen = world.addObject("10.0.0.1", "strange");
    world.addObject("10.0.0.2", "web");
    world.server.set(seen.name, { ...seen, spec: { ...seen.spec, holders: [] } });
    expect(summary(await world.reconciler.reconcile())).toBe("+10.0.0.2 - !");
    expect(world.lines[0]).toBe("warn Reading an allocation of this node failed; it stays as it is");
  });

  it("does nothing before the first list, and nothing that the API server does not confirm", async ({ world }) => {
    world.addObject("10.0.0.1", "web");
    world.isSynced = false;
    expect(summary(await world.reconciler.reconcile())).toBe("nothing");
    world.isSynced = true;
    world.trouble = UNREACHABLE;
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

describe("the time of a reconciliation", () => {
  /** What the reconciler's worker does at each check. */
  async function reconcileIfDue({ reconciler }: ReconcilerWorld): Promise<void> {
    if (reconciler.isDue) await reconciler.reconcile();
  }

  it("is the start, the interval, and sooner after a first observation", async ({ world }) => {
    const reconcileAfter = async (milliseconds: number): Promise<number> => {
      world.clockMs += milliseconds;
      world.calls.length = 0;
      await reconcileIfDue(world);
      return world.calls.length;
    };
    await world.bind("10.0.0.1", "web");
    world.addObject("10.0.0.1", "web");
    world.addObject("10.0.0.2", "web");
    expect(await reconcileAfter(0)).toBe(1);
    await world.reconciler.reconciled();
    expect(await reconcileAfter(GRACE_MS - 1)).toBe(0);
    expect(await reconcileAfter(1)).toBe(1);
    world.addObject("10.0.0.3", "web");
    expect(await reconcileAfter(RECONCILE_INTERVAL_MS - 1)).toBe(0);
    expect(await reconcileAfter(1)).toBe(1);
  });

  it("is also that of a new list: the watch may have missed what is back from a backup", async ({ world }) => {
    await reconcileIfDue(world);
    world.addObject("10.0.0.1", "web");
    await reconcileIfDue(world);
    expect(world.calls).toEqual([]);
    world.lists++;
    await reconcileIfDue(world);
    expect(await world.rowOf("10.0.0.1")).toBe(`Bound uid-web ${UNKNOWN_CONTAINER}`);
  });

  it("comes again soon after a failure", async ({ world }) => {
    await reconcileIfDue(world);
    world.clockMs += RECONCILE_INTERVAL_MS;
    world.addObject("10.0.0.1", "web");
    world.trouble = UNREACHABLE;
    await expect(reconcileIfDue(world)).rejects.toThrow("No connection");
    world.clockMs += SWEEP_RETRY_MS - 1;
    await reconcileIfDue(world);
    expect(world.calls).toHaveLength(1);
    world.clockMs += 1;
    await expect(reconcileIfDue(world)).rejects.toThrow("No connection");
    world.trouble = undefined;
    world.clockMs += SWEEP_RETRY_MS;
    await reconcileIfDue(world);
    expect(await world.rowOf("10.0.0.1")).toBe(`Bound uid-web ${UNKNOWN_CONTAINER}`);
  });

  it("comes again at once after a first one that failed: ADDs wait for it", async ({ world }) => {
    world.addObject("10.0.0.1", "web");
    world.trouble = UNREACHABLE;
    await expect(reconcileIfDue(world)).rejects.toThrow("No connection");
    world.trouble = undefined;
    world.clockMs += RECONCILE_TICK_MS;
    await reconcileIfDue(world);
    await world.reconciler.reconciled();
    expect(await world.rowOf("10.0.0.1")).toBe(`Bound uid-web ${UNKNOWN_CONTAINER}`);
  });

  it("does not come once it is closed", async ({ world }) => {
    await world.reconciler.close();
    await expect(world.reconciler.reconciled()).rejects.toThrow("The reconciler is closed");
    await expect(world.reconciler.reconcile()).rejects.toThrow("The reconciler is closed");
  });
});
