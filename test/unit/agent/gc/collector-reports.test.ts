import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, vi } from "vitest";
import { COLLECTOR_TICK_MS, SWEEP_RETRY_MS } from "../../../../host/agent/gc/collector.ts";
import { until } from "../recorded-log.ts";
import { type CollectorWorld, GRACE_MS, INTERVAL_MS, ipOf, it, UNREACHABLE } from "./collector-world.ts";

const HASH = "0123456789abcdef0123456789abcdef";

describe("leak: a pod that the watch reports", () => {
  it("as finished loses its address at once, without being deleted", async ({ world }) => {
    await world.bind("10.0.0.1", "job");
    world.collector.podChanged(world.addPod("job", { phase: "Succeeded" }));
    await world.collector.sweep();
    expect([await world.stateOf("10.0.0.1"), world.api.calls]).toEqual([
      "Cooling",
      ["GET /api/v1/namespaces/shop/pods/job"],
    ]);
  });

  it("as finished keeps its address when the API server contradicts", async ({ world }) => {
    await world.bind("10.0.0.1", "job");
    const pod = world.addPod("job", { phase: "Failed" });
    world.addPod("job");
    world.collector.podChanged(pod);
    await world.collector.sweep();
    expect(await world.stateOf("10.0.0.1")).toBe("Bound");
  });

  it("as running is not asked for", async ({ world }) => {
    await world.bind("10.0.0.1", "web");
    world.collector.podChanged(world.addPod("web"));
    await world.collector.sweep();
    expect(world.api.calls).toEqual([]);
  });

  it("as deleted is observed at once, and not asked for when its DEL has come", async ({ world }) => {
    world.addPod("lost");
    world.addPod("clean");
    await world.bind("10.0.0.1", "lost");
    world.collector.podDeleted(world.removePod("clean"));
    world.collector.podDeleted(world.removePod("lost"));
    const isObserved = (): boolean => world.api.calls.length === 1;
    expect(await until(isObserved)).toBe(true);
    world.advance(GRACE_MS);
    await world.collector.sweep();
    expect(await world.stateOf("10.0.0.1")).toBe("Cooling");
  });

  it("while the API server is out of reach is found by the next sweep, and so are those after it", async ({
    world,
  }) => {
    await world.bind("10.0.0.1", "job");
    await world.bind("10.0.0.2", "next");
    world.api.trouble = UNREACHABLE;
    world.collector.podChanged(world.addPod("job", { phase: "Failed" }));
    const warned = "warn Collecting leaked addresses failed; retrying";
    expect(await until(() => world.lines.includes(warned))).toBe(true);
    world.api.trouble = undefined;
    world.collector.podChanged(world.addPod("next", { phase: "Failed" }));
    await world.collector.sweep();
    expect([await world.stateOf("10.0.0.1"), await world.stateOf("10.0.0.2")]).toEqual(["Cooling", "Cooling"]);
  });
});

describe("static-pods: a static pod", () => {
  it("is known under its hash when its mirror pod is there", async ({ world }) => {
    world.addPod("etcd-n1", { uid: "mirror", hash: HASH });
    await world.bind("10.0.0.1", "etcd-n1", { owner: HASH });
    world.cache.clear();
    await world.sweepTwice();
    expect(await world.stateOf("10.0.0.1")).toBe("Bound");
    world.collector.podChanged(world.addPod("etcd-n1", { uid: "mirror", hash: HASH, phase: "Failed" }));
    await world.collector.sweep();
    expect(await world.stateOf("10.0.0.1")).toBe("Cooling");
  });

  it("without a mirror pod is collected only when its network namespace is gone", async ({ world }) => {
    const folder = mkdtempSync(join(tmpdir(), "berth-netns-"));
    const netns = join(folder, "cni-1");
    writeFileSync(netns, "");
    await world.bind("10.0.0.1", "etcd-n1", { owner: HASH, netns });
    await world.bind("10.0.0.2", "scheduler-n1", { owner: HASH.replace("0", "f") });
    await world.bind("10.0.0.3", "proxy-n1", { owner: HASH.replace("0", "e"), netns: "/nowhere/at/all" });
    await world.sweepTwice();
    const states = () => Promise.all(["10.0.0.1", "10.0.0.2", "10.0.0.3"].map((address) => world.stateOf(address)));
    expect(await states()).toEqual(["Bound", "Bound", "Bound"]);
    rmSync(netns);
    await world.sweepTwice();
    expect(await states()).toEqual(["Cooling", "Bound", "Bound"]);
    rmSync(folder, { recursive: true });
  });
});

describe("what no sweep touches", () => {
  it("unattached: an address that was never attached, and one of no pod", async ({ world }) => {
    await world.bind("10.0.0.1", "web", { containerId: "" });
    await world.bind("10.0.0.2", "web", { owner: "c-9", containerId: "c-9", namespace: "", pod: "" });
    expect(await world.collector.sweep()).toEqual({ suspects: 0, collected: [] });
    await world.sweepTwice();
    expect([await world.stateOf("10.0.0.1"), await world.stateOf("10.0.0.2")]).toEqual(["Bound", "Bound"]);
  });

  it("Kept and Quarantined", async ({ world }) => {
    const adoption = {
      space: "",
      prefixLength: 24,
      pool: "blue",
      owner: "",
      ifName: "",
      namespace: "shop",
      pod: "x",
    };
    await world.journal.adopt({ ...adoption, ip: ipOf("10.0.0.1"), state: "Kept" });
    await world.journal.adopt({ ...adoption, ip: ipOf("10.0.0.2"), state: "Quarantined" });
    await world.sweepTwice();
    expect([await world.stateOf("10.0.0.1"), await world.stateOf("10.0.0.2")]).toEqual(["Kept", "Quarantined"]);
  });
});

describe("late-del: what a CNI GC nominates is collected", () => {
  it("only when its pod is gone or finished, as the API server says now", async ({ world }) => {
    const live = await world.bind("10.0.0.1", "live");
    const gone = await world.bind("10.0.0.2", "gone");
    const done = await world.bind("10.0.0.3", "done");
    const mirrorless = await world.bind("10.0.0.4", "etcd-n1", { owner: HASH });
    world.addPod("live");
    world.addPod("done", { phase: "Succeeded", deleting: true });
    const verdicts = await Promise.all([live, gone, done, mirrorless].map((row) => world.collector.isPodGone(row)));
    expect(verdicts).toEqual([false, true, true, false]);
  });

  it("not when the API server is out of reach", async ({ world }) => {
    const gone = await world.bind("10.0.0.2", "gone");
    world.api.trouble = UNREACHABLE;
    expect(await world.collector.isPodGone(gone)).toBe(false);
    expect(world.lines).toEqual(["info Reading the pod of an address failed; it stays"]);
  });
});

describe("the collector's timer", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
  afterEach(() => void vi.useRealTimers());

  /** Ticks at the world's time, and waits for the sweep that this may have begun. */
  async function tickAt(world: CollectorWorld, advanceMs: number): Promise<number> {
    world.advance(advanceMs);
    world.api.calls.length = 0;
    vi.advanceTimersByTime(COLLECTOR_TICK_MS);
    // The run starts, its sweep ends, and the next run is scheduled.
    await new Promise(setImmediate);
    await world.collector.idle();
    await new Promise(setImmediate);
    return world.api.calls.length;
  }

  it("sweeps at once, then when a pod has been missed for long enough, then after the interval", async ({ world }) => {
    await world.bind("10.0.0.1", "web");
    expect(await tickAt(world, 0)).toBe(1);
    expect(await tickAt(world, GRACE_MS - 1)).toBe(0);
    expect(await tickAt(world, 1)).toBe(2);
    expect(await world.stateOf("10.0.0.1")).toBe("Cooling");
    await world.bind("10.0.0.2", "web", { owner: "x" });
    expect(await tickAt(world, INTERVAL_MS - 1)).toBe(0);
    expect(await tickAt(world, 1)).toBe(1);
  });

  it("applies a new interval and a new grace at once", async ({ world }) => {
    await world.bind("10.0.0.1", "web");
    await tickAt(world, 0);
    world.settings = {
      ...world.settings,
      intervalMs: 5_000,
      graceMs: 0,
      cooldowns: { defaultMs: 0, byPool: new Map() },
    };
    expect(await tickAt(world, 4_999)).toBe(0);
    expect(await tickAt(world, 1)).toBe(2);
    expect(await world.stateOf("10.0.0.1")).toBe("Cooling");
  });

  it("leaves an API server that cannot be reached alone for a while", async ({ world }) => {
    await world.bind("10.0.0.1", "web");
    await tickAt(world, 0);
    world.api.trouble = UNREACHABLE;
    expect(await tickAt(world, GRACE_MS)).toBe(1);
    expect(await tickAt(world, SWEEP_RETRY_MS - 1)).toBe(0);
    expect(await tickAt(world, 1)).toBe(1);
    expect(world.lines).toEqual(["warn Collecting leaked addresses failed; retrying"]);
  });

  it("does nothing once it is closed", async ({ world }) => {
    await world.bind("10.0.0.1", "web");
    await world.collector.close();
    world.collector.podDeleted(world.addPod("web"));
    expect(await tickAt(world, INTERVAL_MS)).toBe(0);
    await expect(world.collector.sweep()).rejects.toThrow("The collector is closed");
  });
});
