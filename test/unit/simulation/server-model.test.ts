import { describe, expect, it } from "vitest";
import { ALLOCATIONS, MemoryApiServer } from "../../fakes/memory-api-server.ts";
import type { Calibration } from "../../simulation/scale/calibration.ts";
import { Backlog, kindOf, ServerModel } from "../../simulation/scale/server-model.ts";

const REQUESTS = ["create", "get", "update", "delete"].flatMap((verb) =>
  ["ipallocations", "pods"].map((kind) => ({
    kind: `${verb} ${kind}`,
    ...{ atOnce: 1, count: 1, p50Ms: 2, p99Ms: 2, perSecond: 1, serverCpuMs: 4 },
  })),
);

const fanOutOf = (kind: string, watchers: number, cpuMs: number) => ({
  ...{ kind, watchers, delayP50Ms: 0, delayP99Ms: 0, burstWritesPerSecond: 1, burstEventsPerSecond: 1 },
  ...{ bytesPerWatcherAndWrite: 0, idleCpuShare: 0, serverRssMib: 0, cpuMsPerWrite: cpuMs, burstCpuMsPerWrite: cpuMs },
});

const CALIBRATION: Calibration = {
  ...{ machine: "", versions: {}, loadAverage: "", serverRssMib: 0, controller: undefined },
  bytes: { ippools: 500 },
  requests: REQUESTS,
  fanOut: [
    fanOutOf("ipallocations", 0, 1),
    fanOutOf("ipallocations", 1_000, 2),
    fanOutOf("ippools", 0, 1),
    fanOutOf("ippools", 1_000, 11),
  ],
};

describe("the simulated API server's load", () => {
  it("makes new work wait for what came before, on all processors", () => {
    const backlog = new Backlog(2);
    expect(backlog.add(100, 0)).toBe(0);
    expect(backlog.add(10, 0)).toBe(50);
    expect(backlog.add(10, 30)).toBe(25);
    expect(backlog.waitMs(100)).toBe(0);
    expect(backlog.usedMs).toBe(120);
  });
  it("charges an event of a kind that all agents watch for each, and one that no agent watches, or each its own by an index, not", () => {
    const model = new ServerModel({ calibration: CALIBRATION, processors: 1 });
    model.agents = 500;
    model.written("/api/v1/namespaces/shop/pods", 0);
    expect(model.processors.usedMs).toBeCloseTo(0);
    model.written(ALLOCATIONS, 0);
    expect(model.processors.usedMs).toBeCloseTo(0);
    model.written("/apis/ipam.vendor.io/v1/ippools", 0);
    expect(model.processors.usedMs).toBeCloseTo(5);
    expect(model.deliveries.get("ippools")).toBe(500);
  });
  it.each([
    ["/api/v1/namespaces/shop/pods/web-0", "pods"],
    ["/api/v1/namespaces", "namespaces"],
    ["/apis/ipam.vendor.io/v1/ippools/blue/status", "ippools"],
  ])("knows the kind of %s", (path, kind) => {
    expect(kindOf({ path })).toBe(kind);
  });
});

describe("a restored server", () => {
  it("has the objects of the copy, gives its versions again, and refuses watches from before the copy", async () => {
    const server = new MemoryApiServer();
    server.put(ALLOCATIONS, "10.6.0.0", { spec: {} });
    server.put(ALLOCATIONS, "10.6.0.1", { spec: {} });
    const copy = server.snapshot();
    server.put(ALLOCATIONS, "10.6.0.2", { spec: {} });
    server.remove("10.6.0.1");
    server.restore(copy);
    expect([...server.objects.keys()]).toEqual(["10.6.0.0", "10.6.0.1"]);
    const next = Number(server.put(ALLOCATIONS, "10.6.0.3", { spec: {} }).metadata.resourceVersion);
    expect(next).toBeGreaterThan(Number(server.objects.get("10.6.0.1")?.metadata.resourceVersion));
    const watch = { path: ALLOCATIONS, query: { resourceVersion: "1" }, onEvent: () => {} };
    await expect(server.client().watch({ ...watch, signal: new AbortController().signal })).rejects.toMatchObject({
      status: 410,
    });
  });
});
