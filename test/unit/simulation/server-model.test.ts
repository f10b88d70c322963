import { describe, expect, it } from "vitest";
import { ALLOCATIONS, MemoryApiServer } from "../../fakes/memory-api-server.ts";
import { Backlog, kindOf, ServerModel, WATCH_MS } from "../../simulation/scale/server-model.ts";

describe("the simulated API server's load", () => {
  it("makes new work wait for what came before, on all processors", () => {
    const backlog = new Backlog(2);
    expect(backlog.add(100, 0)).toBe(0);
    expect(backlog.add(10, 0)).toBe(50);
    expect(backlog.add(10, 30)).toBe(25);
    expect(backlog.add(10, 100)).toBe(0);
    expect(backlog.usedMs).toBe(130);
  });
  it("charges an event of a kind that all agents watch for each, and one that no agent watches, or each its own by an index, not", () => {
    const model = new ServerModel(1);
    model.agents = 500;
    model.written("/api/v1/namespaces/shop/pods", 0);
    expect(model.processors.usedMs).toBeCloseTo(0);
    model.written(ALLOCATIONS, 0);
    expect(model.processors.usedMs).toBeCloseTo(0);
    model.written("/apis/ipam.vendor.io/v1/ippools", 0);
    expect(model.processors.usedMs).toBeCloseTo(500 * WATCH_MS);
    expect(model.deliveries).toBe(502);
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
