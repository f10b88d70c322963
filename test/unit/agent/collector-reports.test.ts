import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { COLLECTOR_TICK_MS, SWEEP_RETRY_MS } from "../../../host/agent/gc/collector.ts";
import { type CollectorWorld, GRACE_MS, INTERVAL_MS, inWorld, ipOf, UNREACHABLE } from "./collector-world.ts";
import { until } from "./recorded-log.ts";

const HASH = "0123456789abcdef0123456789abcdef";

describe("rule 16: a pod that the watch reports", () => {
  it(
    "as finished loses its address at once, without being deleted",
    inWorld(async (it) => {
      await it.bind("10.0.0.1", "job");
      it.collector.podChanged(it.addPod("job", { phase: "Succeeded" }));
      await it.collector.sweep();
      expect([await it.stateOf("10.0.0.1"), it.api.calls]).toEqual([
        "Cooling",
        ["GET /api/v1/namespaces/shop/pods/job"],
      ]);
    }),
  );

  it(
    "as finished keeps it when the API server knows better",
    inWorld(async (it) => {
      await it.bind("10.0.0.1", "job");
      const pod = it.addPod("job", { phase: "Failed" });
      it.addPod("job");
      it.collector.podChanged(pod);
      await it.collector.sweep();
      expect(await it.stateOf("10.0.0.1")).toBe("Bound");
    }),
  );

  it(
    "as running is not asked for",
    inWorld(async (it) => {
      await it.bind("10.0.0.1", "web");
      it.collector.podChanged(it.addPod("web"));
      await it.collector.sweep();
      expect(it.api.calls).toEqual([]);
    }),
  );

  it(
    "as deleted is observed at once, and not asked for when its DEL has come",
    inWorld(async (it) => {
      it.addPod("lost");
      it.addPod("clean");
      await it.bind("10.0.0.1", "lost");
      it.collector.podDeleted(it.removePod("clean"));
      it.collector.podDeleted(it.removePod("lost"));
      const isObserved = (): boolean => it.api.calls.length === 1;
      expect(await until(isObserved)).toBe(true);
      it.advance(GRACE_MS);
      await it.collector.sweep();
      expect(await it.stateOf("10.0.0.1")).toBe("Cooling");
    }),
  );

  it(
    "while the API server is out of reach is found by the next sweep, and so are those after it",
    inWorld(async (it) => {
      await it.bind("10.0.0.1", "job");
      await it.bind("10.0.0.2", "next");
      it.api.trouble = UNREACHABLE;
      it.collector.podChanged(it.addPod("job", { phase: "Failed" }));
      const warned = "warn Looking for lost addresses failed; it is tried again";
      expect(await until(() => it.lines.includes(warned))).toBe(true);
      it.api.trouble = undefined;
      it.collector.podChanged(it.addPod("next", { phase: "Failed" }));
      await it.collector.sweep();
      expect([await it.stateOf("10.0.0.1"), await it.stateOf("10.0.0.2")]).toEqual(["Cooling", "Cooling"]);
    }),
  );
});

describe("rule 9: a static pod", () => {
  it(
    "is known under its hash when its mirror pod is there",
    inWorld(async (it) => {
      it.addPod("etcd-n1", { uid: "mirror", hash: HASH });
      await it.bind("10.0.0.1", "etcd-n1", { owner: HASH });
      it.cache.clear();
      await it.sweepTwice();
      expect(await it.stateOf("10.0.0.1")).toBe("Bound");
      it.collector.podChanged(it.addPod("etcd-n1", { uid: "mirror", hash: HASH, phase: "Failed" }));
      await it.collector.sweep();
      expect(await it.stateOf("10.0.0.1")).toBe("Cooling");
    }),
  );

  it(
    "without a mirror pod is collected only when its network namespace is gone",
    inWorld(async (it) => {
      const folder = mkdtempSync(join(tmpdir(), "berth-netns-"));
      const netns = join(folder, "cni-1");
      writeFileSync(netns, "");
      await it.bind("10.0.0.1", "etcd-n1", { owner: HASH, netns });
      await it.bind("10.0.0.2", "scheduler-n1", { owner: HASH.replace("0", "f") });
      await it.bind("10.0.0.3", "proxy-n1", { owner: HASH.replace("0", "e"), netns: "/nowhere/at/all" });
      await it.sweepTwice();
      const states = () => Promise.all(["10.0.0.1", "10.0.0.2", "10.0.0.3"].map((address) => it.stateOf(address)));
      expect(await states()).toEqual(["Bound", "Bound", "Bound"]);
      rmSync(netns);
      await it.sweepTwice();
      expect(await states()).toEqual(["Cooling", "Bound", "Bound"]);
      rmSync(folder, { recursive: true });
    }),
  );
});

describe("what no sweep touches", () => {
  it(
    "rule 17: an address that was never attached, and one of no pod",
    inWorld(async (it) => {
      await it.bind("10.0.0.1", "web", { containerId: "" });
      await it.bind("10.0.0.2", "web", { owner: "c-9", containerId: "c-9", namespace: "", pod: "" });
      expect(await it.collector.sweep()).toEqual({ suspects: 0, collected: [] });
      await it.sweepTwice();
      expect([await it.stateOf("10.0.0.1"), await it.stateOf("10.0.0.2")]).toEqual(["Bound", "Bound"]);
    }),
  );

  it(
    "Kept and Quarantined",
    inWorld(async (it) => {
      const adoption = {
        space: "",
        prefixLength: 24,
        pool: "blue",
        owner: "",
        ifName: "",
        namespace: "shop",
        pod: "x",
      };
      await it.journal.adopt({ ...adoption, ip: ipOf("10.0.0.1"), state: "Kept" });
      await it.journal.adopt({ ...adoption, ip: ipOf("10.0.0.2"), state: "Quarantined" });
      await it.sweepTwice();
      expect([await it.stateOf("10.0.0.1"), await it.stateOf("10.0.0.2")]).toEqual(["Kept", "Quarantined"]);
    }),
  );
});

describe("rule 1: what CNI GC nominates goes", () => {
  it(
    "only when its pod is gone or finished, asked now",
    inWorld(async (it) => {
      const live = await it.bind("10.0.0.1", "live");
      const gone = await it.bind("10.0.0.2", "gone");
      const done = await it.bind("10.0.0.3", "done");
      const mirrorless = await it.bind("10.0.0.4", "etcd-n1", { owner: HASH });
      it.addPod("live");
      it.addPod("done", { phase: "Succeeded", deleting: true });
      const verdicts = await Promise.all([live, gone, done, mirrorless].map((row) => it.collector.isPodGone(row)));
      expect(verdicts).toEqual([false, true, true, false]);
    }),
  );

  it(
    "not when the API server is out of reach",
    inWorld(async (it) => {
      const gone = await it.bind("10.0.0.2", "gone");
      it.api.trouble = UNREACHABLE;
      expect(await it.collector.isPodGone(gone)).toBe(false);
      expect(it.lines).toEqual(["info The pod of an address could not be asked for"]);
    }),
  );
});

describe("the collector's timer", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] }));
  afterEach(() => void vi.useRealTimers());

  /** Ticks at the world's time, and waits for the sweep that this may have begun. */
  async function tickAt(it: CollectorWorld, advanceMs: number): Promise<number> {
    it.advance(advanceMs);
    it.api.calls.length = 0;
    vi.advanceTimersByTime(COLLECTOR_TICK_MS);
    await it.collector.settled();
    return it.api.calls.length;
  }

  it(
    "sweeps at once, then when the missing has been missed for long enough, then after the interval",
    inWorld(async (it) => {
      await it.bind("10.0.0.1", "web");
      expect(await tickAt(it, 0)).toBe(1);
      expect(await tickAt(it, GRACE_MS - 1)).toBe(0);
      expect(await tickAt(it, 1)).toBe(2);
      expect(await it.stateOf("10.0.0.1")).toBe("Cooling");
      await it.bind("10.0.0.2", "web", { owner: "x" });
      expect(await tickAt(it, INTERVAL_MS - 1)).toBe(0);
      expect(await tickAt(it, 1)).toBe(1);
    }),
  );

  it(
    "takes a new interval and a new grace at once",
    inWorld(async (it) => {
      await it.bind("10.0.0.1", "web");
      await tickAt(it, 0);
      it.settings = { ...it.settings, intervalMs: 5_000, graceMs: 0, cooldowns: { defaultMs: 0, byPool: new Map() } };
      expect(await tickAt(it, 4_999)).toBe(0);
      expect(await tickAt(it, 1)).toBe(2);
      expect(await it.stateOf("10.0.0.1")).toBe("Cooling");
    }),
  );

  it(
    "leaves an API server that cannot be reached alone for a while",
    inWorld(async (it) => {
      await it.bind("10.0.0.1", "web");
      await tickAt(it, 0);
      it.api.trouble = UNREACHABLE;
      expect(await tickAt(it, GRACE_MS)).toBe(1);
      expect(await tickAt(it, SWEEP_RETRY_MS - 1)).toBe(0);
      expect(await tickAt(it, 1)).toBe(1);
      expect(it.lines).toEqual(["warn Looking for lost addresses failed; it is tried again"]);
    }),
  );

  it(
    "does nothing once it is closed",
    inWorld(async (it) => {
      await it.bind("10.0.0.1", "web");
      await it.collector.close();
      it.collector.podDeleted(it.addPod("web"));
      expect(await tickAt(it, INTERVAL_MS)).toBe(0);
      await expect(it.collector.sweep()).rejects.toThrow("The collector is closed");
    }),
  );
});
