import { afterEach, describe, expect, it, vi } from "vitest";
import { type OpenCaches, openCaches } from "../../../host/controller/caches.ts";
import { openLog } from "../../../host/lib/log.ts";
import { type Gate, HeldCalls, MemoryApiServer } from "../../fakes/memory-api-server.ts";
import { until } from "../../world/recorded-log.ts";

const POOLS = "/apis/ipam.vendor.io/v1/ippools";
const pool = (subnet: string) => ({
  ...{ apiVersion: "ipam.vendor.io/v1", kind: "IPPool", metadata: { generation: 3, finalizers: ["a/b"] } },
  spec: { subnet, ips: [subnet.replace("0/24", "10")] },
});

const opened: OpenCaches[] = [];
afterEach(async () => {
  for (const caches of opened.splice(0)) await caches.close();
});

const newCluster = () => new MemoryApiServer({ isOpen: true });

function open(cluster: MemoryApiServer, gate?: Gate): OpenCaches {
  const log = openLog("test", "silent");
  const api = cluster.client(gate, (_path, deliver) => deliver());
  const caches = openCaches({ api, configNamespace: "net", log, random: () => 0.5 });
  opened.push(caches);
  return caches;
}

describe("the controller's caches", () => {
  it("are complete when every list is", async () => {
    const held = new HeldCalls("/api/v1/nodes", POOLS);
    const caches = open(newCluster(), held.gate);
    const isSynced = vi.fn();
    const synced = caches.synced().then(isSynced);
    await until(() => caches.unread.length === 2, "all but two are read");
    expect([caches.unread, isSynced.mock.calls]).toEqual([["pools", "nodes"], []]);
    held.release();
    await synced;
    expect(caches.unread).toEqual([]);
  });

  it("reject waiting callers when they are closed, and with the caller's own reason", async () => {
    const caches = open(newCluster(), new HeldCalls(POOLS).gate);
    const waiting = caches.synced();
    await expect(caches.synced(AbortSignal.abort(new Error("Too late")))).rejects.toThrow("Too late");
    const expected = expect(waiting).rejects.toThrow("The reflector of IPPools was closed");
    await caches.close();
    await expected;
  });

  it("notify each listener in order, whatever another one throws, and none that has left", async () => {
    const cluster = newCluster();
    const caches = open(cluster);
    await caches.synced();
    await until(() => cluster.watches === 12, "all is watched");
    const changes: string[] = [];
    const first = ({ kind, key }: { readonly kind: string; readonly key: string }) => changes.push(`1 ${kind} ${key}`);
    const leave = caches.pools.subscribe(first);
    caches.pools.subscribe(() => {
      throw new Error("a bug");
    });
    caches.pools.subscribe(({ key }) => {
      changes.push(`3 ${key} ${caches.pools.items.has(key)}`);
      if (key === "b") leave();
    });
    cluster.put(POOLS, "a", pool("10.0.0.0/24"));
    cluster.put(POOLS, "b", pool("10.0.1.0/24"));
    cluster.remove("a", POOLS);
    expect(changes).toEqual(["1 set a", "3 a true", "1 set b", "3 b true", "3 a false"]);
    // One listener may listen twice, and each leaves alone.
    const leaves = [caches.pools.subscribe(first), caches.pools.subscribe(first)];
    for (const _ of [1, 2]) leaves[0]?.();
    cluster.put(POOLS, "c", pool("10.0.2.0/24"));
    expect(changes.slice(5)).toEqual(["3 c true", "1 set c"]);
  });

  it("name objects that cannot be decoded, and follow the settings of their namespace", async () => {
    const cluster = newCluster();
    const MAPS = "/api/v1/namespaces/net/configmaps";
    const data = { "conf.yml": "enableIPv6: false\n" };
    cluster.put(MAPS, "vendor-conf", { apiVersion: "v1", kind: "ConfigMap", data });
    cluster.put("/apis/ipam.vendor.io/v1/ipallocations", "10.0.0.1", { kind: "IPAllocation", spec: {} });
    const caches = open(cluster);
    await caches.synced();
    expect([...caches.vendorConf.items.values()][0]?.conf.enableIPv6).toBe(false);
    expect(caches.problems.join()).toContain("Of IPAllocations, 10.0.0.1 cannot be used");
    expect(caches.allocations.problems).toEqual(caches.problems);
    expect(caches.stats.pools).toMatchObject({ lists: 1, objects: 0 });
  });
});
