import { describe, expect, it } from "vitest";
import { SWEEP_RETRY_MS } from "../../../host/agent/gc/collector.ts";
import type { ReconcileReport } from "../../../host/agent/gc/reconciler.ts";
import { RECONCILE_INTERVAL_MS, RECONCILE_TICK_MS } from "../../../host/agent/gc/reconciler.ts";
import { formatIp } from "../../../host/net/ip.ts";
import { UNKNOWN_CONTAINER } from "../../../host/registry/journal.ts";
import { UNREACHABLE } from "./collector-world.ts";
import { GRACE_MS, inWorld } from "./reconciler-world.ts";

function summary(report: ReconcileReport | undefined): string {
  const texts = (rows: ReconcileReport["adopted"]): string => rows.map(({ ip }) => formatIp(ip)).sort().join(" "); // biome-ignore format: one thought
  if (report === undefined) return "nothing";
  return `+${texts(report.adopted)} -${texts(report.released)} !${texts(report.republished)}`;
}

describe("rule 4: a comparison", () => {
  it(
    "takes in what the journal lacks, with the address and without the container",
    inWorld(async (it) => {
      it.addObject("10.0.0.1", "web");
      it.addObject("10.0.0.2", "", { state: "Cooling", holders: [] });
      expect(summary(await it.reconciler.compare())).toBe("+10.0.0.1 10.0.0.2 - !");
      expect(await it.rowOf("10.0.0.1")).toBe(`Bound uid-web ${UNKNOWN_CONTAINER}`);
      expect(await it.rowOf("10.0.0.2")).toBe("Cooling");
      expect(summary(await it.reconciler.compare())).toBe("+ - !");
    }),
  );

  it(
    "takes in nothing that only the watch still has",
    inWorld(async (it) => {
      it.addObject("10.0.0.1", "web");
      it.server.clear();
      expect(summary(await it.reconciler.compare())).toBe("+ - !");
      expect(await it.rowOf("10.0.0.1")).toBe("none");
    }),
  );

  it(
    "takes in nothing that another node has taken over meanwhile (rule 2)",
    inWorld(async (it) => {
      const seen = it.addObject("10.0.0.1", "web");
      it.server.set(seen.name, { ...seen, spec: { ...seen.spec, node: "n2" } });
      expect(summary(await it.reconciler.compare())).toBe("+ - !");
    }),
  );

  it(
    "releases what no NIC has at the second look, a grace later",
    inWorld(async (it) => {
      await it.bind("10.0.0.1", "web");
      it.addObject("10.0.0.1", "web");
      it.addObject("10.0.0.2", "web");
      expect(summary(await it.reconciler.compare())).toBe("+ - !");
      it.clockMs += GRACE_MS - 1;
      expect(summary(await it.reconciler.compare())).toBe("+ - !");
      it.clockMs += 1;
      expect(summary(await it.reconciler.compare())).toBe("+ -10.0.0.2 !");
      expect([await it.rowOf("10.0.0.1"), await it.rowOf("10.0.0.2")]).toEqual([
        "Bound uid-web c-web",
        "Cooling uid-web",
      ]);
    }),
  );

  it(
    "begins to count anew when somebody has written to the object",
    inWorld(async (it) => {
      await it.bind("10.0.0.1", "web");
      it.addObject("10.0.0.1", "web");
      const spare = it.addObject("10.0.0.2", "web");
      await it.reconciler.compare();
      it.clockMs += GRACE_MS;
      it.server.set(spare.name, { ...spare, resourceVersion: "99" });
      expect(summary(await it.reconciler.compare())).toBe("+ - !");
      it.clockMs += GRACE_MS;
      expect(summary(await it.reconciler.compare())).toBe("+ -10.0.0.2 !");
    }),
  );

  it(
    "of two addresses of one NIC that it does not know keeps both until the pod is gone",
    inWorld(async (it) => {
      it.addObject("10.0.0.1", "web");
      it.addObject("10.0.0.2", "web");
      await it.reconciler.compare();
      it.clockMs += GRACE_MS;
      expect(summary(await it.reconciler.compare())).toBe("+ - !");
      it.gonePods.add("web");
      expect(summary(await it.reconciler.compare())).toBe("+ -10.0.0.2 !");
    }),
  );

  it(
    "goes on after an object that cannot be understood",
    inWorld(async (it) => {
      const seen = it.addObject("10.0.0.1", "strange");
      it.addObject("10.0.0.2", "web");
      it.server.set(seen.name, { ...seen, spec: { ...seen.spec, holders: [] } });
      expect(summary(await it.reconciler.compare())).toBe("+10.0.0.2 - !");
      expect(it.lines[0]).toBe("warn An allocation of this node cannot be judged; it stays as it is");
    }),
  );

  it(
    "does nothing before the first list, and nothing that the API server does not confirm",
    inWorld(async (it) => {
      it.addObject("10.0.0.1", "web");
      it.isSynced = false;
      expect(summary(await it.reconciler.compare())).toBe("nothing");
      it.isSynced = true;
      it.trouble = UNREACHABLE;
      await expect(it.reconciler.compare()).rejects.toThrow("No connection");
      expect(await it.rowOf("10.0.0.1")).toBe("none");
    }),
  );
});

describe("rule 5: a comparison", () => {
  it(
    "publishes again what has vanished, and what says something else",
    inWorld(async (it) => {
      await it.bind("10.0.0.1", "web");
      await it.bind("10.0.0.2", "db");
      await it.bind("10.0.0.3", "there");
      it.addObject("10.0.0.2", "other");
      it.addObject("10.0.0.3", "there");
      expect(summary(await it.reconciler.compare())).toBe("+ - !10.0.0.1 10.0.0.2");
      expect(it.republished).toEqual(["10.0.0.1", "10.0.0.2"]);
    }),
  );
});

describe("the time of a comparison", () => {
  it(
    "is the start, a while after, and sooner when something was seen once",
    inWorld(async (it) => {
      const lookAfter = async (milliseconds: number): Promise<number> => {
        it.clockMs += milliseconds;
        it.calls.length = 0;
        await it.reconciler.look();
        return it.calls.length;
      };
      await it.bind("10.0.0.1", "web");
      it.addObject("10.0.0.1", "web");
      it.addObject("10.0.0.2", "web");
      expect(await lookAfter(0)).toBe(1);
      await it.reconciler.compared;
      expect(await lookAfter(GRACE_MS - 1)).toBe(0);
      expect(await lookAfter(1)).toBe(1);
      it.addObject("10.0.0.3", "web");
      expect(await lookAfter(RECONCILE_INTERVAL_MS - 1)).toBe(0);
      expect(await lookAfter(1)).toBe(1);
    }),
  );

  it(
    "is also that of a new list: the watch may have missed what is back from a backup",
    inWorld(async (it) => {
      await it.reconciler.look();
      it.addObject("10.0.0.1", "web");
      await it.reconciler.look();
      expect(it.calls).toEqual([]);
      it.lists++;
      await it.reconciler.look();
      expect(await it.rowOf("10.0.0.1")).toBe(`Bound uid-web ${UNKNOWN_CONTAINER}`);
    }),
  );

  it(
    "comes again soon after a failure, which is told once",
    inWorld(async (it) => {
      await it.reconciler.look();
      it.clockMs += RECONCILE_INTERVAL_MS;
      it.addObject("10.0.0.1", "web");
      it.trouble = UNREACHABLE;
      await it.reconciler.look();
      it.clockMs += SWEEP_RETRY_MS - 1;
      await it.reconciler.look();
      expect(it.calls).toHaveLength(1);
      it.clockMs += 1;
      await it.reconciler.look();
      expect(it.lines).toEqual(["warn Comparing the allocations of this node failed; it is tried again"]);
      it.trouble = undefined;
      it.clockMs += SWEEP_RETRY_MS;
      await it.reconciler.look();
      expect(await it.rowOf("10.0.0.1")).toBe(`Bound uid-web ${UNKNOWN_CONTAINER}`);
    }),
  );

  it(
    "comes again at once after a first one that failed: ADDs wait for it",
    inWorld(async (it) => {
      it.addObject("10.0.0.1", "web");
      it.trouble = UNREACHABLE;
      await it.reconciler.look();
      it.trouble = undefined;
      it.clockMs += RECONCILE_TICK_MS;
      await it.reconciler.look();
      await it.reconciler.compared;
      expect(await it.rowOf("10.0.0.1")).toBe(`Bound uid-web ${UNKNOWN_CONTAINER}`);
    }),
  );

  it(
    "does not come once it is closed",
    inWorld(async (it) => {
      await it.reconciler.close();
      await expect(it.reconciler.compared).rejects.toThrow("The reconciler is closed");
      await expect(it.reconciler.compare()).rejects.toThrow("The reconciler is closed");
    }),
  );
});
