import { describe, expect } from "vitest";
import { SWEEP_RETRY_MS } from "../../../host/agent/gc/collector.ts";
import type { ReconcileReport } from "../../../host/agent/gc/reconciler.ts";
import { RECONCILE_INTERVAL_MS, RECONCILE_TICK_MS } from "../../../host/agent/gc/reconciler.ts";
import { formatIp } from "../../../host/net/ip.ts";
import { UNKNOWN_CONTAINER } from "../../../host/registry/journal.ts";
import { UNREACHABLE } from "./collector-world.ts";
import { GRACE_MS, it } from "./reconciler-world.ts";

function summary(report: ReconcileReport | undefined): string {
  const texts = (rows: ReconcileReport["adopted"]): string => rows.map(({ ip }) => formatIp(ip)).sort().join(" "); // biome-ignore format: one thought
  if (report === undefined) return "nothing";
  return `+${texts(report.adopted)} -${texts(report.released)} !${texts(report.republished)}`;
}

describe("rule 4: a comparison", () => {
  it("takes in what the journal lacks, with the address and without the container", async ({ world }) => {
    world.addObject("10.0.0.1", "web");
    world.addObject("10.0.0.2", "", { state: "Cooling", holders: [] });
    expect(summary(await world.reconciler.compare())).toBe("+10.0.0.1 10.0.0.2 - !");
    expect(await world.rowOf("10.0.0.1")).toBe(`Bound uid-web ${UNKNOWN_CONTAINER}`);
    expect(await world.rowOf("10.0.0.2")).toBe("Cooling");
    expect(summary(await world.reconciler.compare())).toBe("+ - !");
  });

  it("takes in nothing that only the watch still has", async ({ world }) => {
    world.addObject("10.0.0.1", "web");
    world.server.clear();
    expect(summary(await world.reconciler.compare())).toBe("+ - !");
    expect(await world.rowOf("10.0.0.1")).toBe("none");
  });

  it("takes in nothing that another node has taken over meanwhile (rule 2)", async ({ world }) => {
    const seen = world.addObject("10.0.0.1", "web");
    world.server.set(seen.name, { ...seen, spec: { ...seen.spec, node: "n2" } });
    expect(summary(await world.reconciler.compare())).toBe("+ - !");
  });

  it("releases what no NIC has at the second look, a grace later", async ({ world }) => {
    await world.bind("10.0.0.1", "web");
    world.addObject("10.0.0.1", "web");
    world.addObject("10.0.0.2", "web");
    expect(summary(await world.reconciler.compare())).toBe("+ - !");
    world.clockMs += GRACE_MS - 1;
    expect(summary(await world.reconciler.compare())).toBe("+ - !");
    world.clockMs += 1;
    expect(summary(await world.reconciler.compare())).toBe("+ -10.0.0.2 !");
    expect([await world.rowOf("10.0.0.1"), await world.rowOf("10.0.0.2")]).toEqual([
      "Bound uid-web c-web",
      "Cooling uid-web",
    ]);
  });

  it("begins to count anew when somebody has written to the object", async ({ world }) => {
    await world.bind("10.0.0.1", "web");
    world.addObject("10.0.0.1", "web");
    const spare = world.addObject("10.0.0.2", "web");
    await world.reconciler.compare();
    world.clockMs += GRACE_MS;
    world.server.set(spare.name, { ...spare, resourceVersion: "99" });
    expect(summary(await world.reconciler.compare())).toBe("+ - !");
    world.clockMs += GRACE_MS;
    expect(summary(await world.reconciler.compare())).toBe("+ -10.0.0.2 !");
  });

  it("of two addresses of one NIC that it does not know keeps both until the pod is gone", async ({ world }) => {
    world.addObject("10.0.0.1", "web");
    world.addObject("10.0.0.2", "web");
    await world.reconciler.compare();
    world.clockMs += GRACE_MS;
    expect(summary(await world.reconciler.compare())).toBe("+ - !");
    world.gonePods.add("web");
    expect(summary(await world.reconciler.compare())).toBe("+ -10.0.0.2 !");
  });

  it("goes on after an object that cannot be understood", async ({ world }) => {
    const seen = world.addObject("10.0.0.1", "strange");
    world.addObject("10.0.0.2", "web");
    world.server.set(seen.name, { ...seen, spec: { ...seen.spec, holders: [] } });
    expect(summary(await world.reconciler.compare())).toBe("+10.0.0.2 - !");
    expect(world.lines[0]).toBe("warn An allocation of this node cannot be judged; it stays as it is");
  });

  it("does nothing before the first list, and nothing that the API server does not confirm", async ({ world }) => {
    world.addObject("10.0.0.1", "web");
    world.isSynced = false;
    expect(summary(await world.reconciler.compare())).toBe("nothing");
    world.isSynced = true;
    world.trouble = UNREACHABLE;
    await expect(world.reconciler.compare()).rejects.toThrow("No connection");
    expect(await world.rowOf("10.0.0.1")).toBe("none");
  });
});

describe("rule 5: a comparison", () => {
  it("publishes again what has vanished, and what says something else", async ({ world }) => {
    await world.bind("10.0.0.1", "web");
    await world.bind("10.0.0.2", "db");
    await world.bind("10.0.0.3", "there");
    world.addObject("10.0.0.2", "other");
    world.addObject("10.0.0.3", "there");
    expect(summary(await world.reconciler.compare())).toBe("+ - !10.0.0.1 10.0.0.2");
    expect(world.republished).toEqual(["10.0.0.1", "10.0.0.2"]);
  });
});

describe("the time of a comparison", () => {
  it("is the start, a while after, and sooner when something was seen once", async ({ world }) => {
    const lookAfter = async (milliseconds: number): Promise<number> => {
      world.clockMs += milliseconds;
      world.calls.length = 0;
      await world.reconciler.look();
      return world.calls.length;
    };
    await world.bind("10.0.0.1", "web");
    world.addObject("10.0.0.1", "web");
    world.addObject("10.0.0.2", "web");
    expect(await lookAfter(0)).toBe(1);
    await world.reconciler.compared;
    expect(await lookAfter(GRACE_MS - 1)).toBe(0);
    expect(await lookAfter(1)).toBe(1);
    world.addObject("10.0.0.3", "web");
    expect(await lookAfter(RECONCILE_INTERVAL_MS - 1)).toBe(0);
    expect(await lookAfter(1)).toBe(1);
  });

  it("is also that of a new list: the watch may have missed what is back from a backup", async ({ world }) => {
    await world.reconciler.look();
    world.addObject("10.0.0.1", "web");
    await world.reconciler.look();
    expect(world.calls).toEqual([]);
    world.lists++;
    await world.reconciler.look();
    expect(await world.rowOf("10.0.0.1")).toBe(`Bound uid-web ${UNKNOWN_CONTAINER}`);
  });

  it("comes again soon after a failure, which is told once", async ({ world }) => {
    await world.reconciler.look();
    world.clockMs += RECONCILE_INTERVAL_MS;
    world.addObject("10.0.0.1", "web");
    world.trouble = UNREACHABLE;
    await world.reconciler.look();
    world.clockMs += SWEEP_RETRY_MS - 1;
    await world.reconciler.look();
    expect(world.calls).toHaveLength(1);
    world.clockMs += 1;
    await world.reconciler.look();
    expect(world.lines).toEqual(["warn Comparing the allocations of this node failed; it is tried again"]);
    world.trouble = undefined;
    world.clockMs += SWEEP_RETRY_MS;
    await world.reconciler.look();
    expect(await world.rowOf("10.0.0.1")).toBe(`Bound uid-web ${UNKNOWN_CONTAINER}`);
  });

  it("comes again at once after a first one that failed: ADDs wait for it", async ({ world }) => {
    world.addObject("10.0.0.1", "web");
    world.trouble = UNREACHABLE;
    await world.reconciler.look();
    world.trouble = undefined;
    world.clockMs += RECONCILE_TICK_MS;
    await world.reconciler.look();
    await world.reconciler.compared;
    expect(await world.rowOf("10.0.0.1")).toBe(`Bound uid-web ${UNKNOWN_CONTAINER}`);
  });

  it("does not come once it is closed", async ({ world }) => {
    await world.reconciler.close();
    await expect(world.reconciler.compared).rejects.toThrow("The reconciler is closed");
    await expect(world.reconciler.compare()).rejects.toThrow("The reconciler is closed");
  });
});
