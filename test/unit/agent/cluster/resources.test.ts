import { afterEach, describe, expect, it, vi } from "vitest";
import { ClusterResources } from "../../../../host/agent/cluster/resources.ts";
import { followWanted } from "../../../../host/agent/cluster/watches.ts";
import type { KubeObject } from "../../../../host/kubernetes/kube-api.ts";
import type { Change } from "../../../../host/kubernetes/mirror.ts";
import { formatPrefix } from "../../../../host/net/prefix.ts";
import type { Pod } from "../../../../host/resources/pod.ts";
import type { Snapshot } from "../../../../host/resources/snapshot.ts";
import { MemoryApiServer } from "../../../fakes/memory-api-server.ts";
import { recordLog } from "../../../world/recorded-log.ts";
import { bytesLeftPerWait } from "../../kubernetes/garbage.ts";

const POOLS = "/apis/ipam.vendor.io/v1/ippools";
const RESERVED = "/apis/ipam.vendor.io/v1/reservedips";
const PODS = "/api/v1/pods";
const CONF = "/api/v1/namespaces/kube-system/configmaps";

const berth = (kind: string, name: string, spec: object, rest: object = {}): KubeObject => ({
  ...{ apiVersion: "ipam.vendor.io/v1", kind, metadata: { name, generation: 1, resourceVersion: "1" }, spec },
  ...rest,
});
const poolOf = (name: string, subnet: string, rest: object = {}) => berth("IPPool", name, { subnet }, rest);
const podOf = (name: string): KubeObject => ({
  ...{ apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "shop", uid: name, resourceVersion: "1" } },
  spec: { nodeName: "n1" },
});
const confOf = (text: string): KubeObject => ({
  ...{ apiVersion: "v1", kind: "ConfigMap", data: { "conf.yml": text } },
  metadata: { name: "vendor-conf", namespace: "kube-system", resourceVersion: "1" },
});

const IGNORED = {
  ...{ node: "n1", configNamespace: "kube-system", log: recordLog().log, random: () => 0 },
};

let server: MemoryApiServer;
let resources: ClusterResources;
let snapshots: Snapshot[];
let pods: Change<Pod>[];
let wanted: string[];

const deliver = (path: string, object: KubeObject) => server.put(path, Object(object.metadata).name, object);
const remove = (path: string, name: string) => server.remove(name, path);

/** A cluster that has these objects, and an agent that has read them. */
async function given(lists: Record<string, KubeObject[]>): Promise<void> {
  server = new MemoryApiServer({ isOpen: true });
  [snapshots, pods, wanted] = [[], [], []];
  for (const [path, items] of Object.entries(lists)) for (const item of items) deliver(path, item);
  resources = new ClusterResources({
    ...IGNORED,
    // Its watches tell at once.
    api: server.client(undefined, (_path, tell) => tell()),
  });
  resources.watches.pods.subscribe((change) => pods.push(change));
  followWanted(resources.watches, (pool) => wanted.push(pool));
  resources.changes.add(({ snapshot }) => snapshots.push(snapshot));
  resources.start();
  await resources.known(AbortSignal.timeout(10_000));
  await expect.poll(() => server.watches, { timeout: 10_000 }).toBe(11);
  resources.flush();
}
afterEach(() => resources.close());

const signal = () => AbortSignal.timeout(10_000);
const soon = ({ changeCount }: ClusterResources) => ({ since: changeCount, withinMs: 300 });

describe("the resources of a cluster", () => {
  it("are incomplete before the first lists, and name the missing ones", () => {
    resources = new ClusterResources({ ...IGNORED, api: new MemoryApiServer({ isOpen: true }).client() });
    expect(resources.state.complete).toBe(false);
    const kinds =
      "pools reserved coordinators namespaces attachments vendorConf node epoch allocationKind reservedKind";
    expect(resources.unread).toEqual([...kinds.split(" "), "pods"]);
  });

  it("a burst of pools is one snapshot; a question right after sees it", async () => {
    await given({});
    const before = snapshots.length;
    for (let net = 0; net < 50; net++) deliver(POOLS, poolOf(`p${net}`, `10.${net}.0.0/24`));
    expect(await resources.changed(signal(), soon(resources))).toBe(true);
    expect([snapshots.length - before, resources.state.snapshot.pools.size]).toEqual([1, 50]);
    await expect.poll(() => resources.changed(signal(), soon(resources)), { timeout: 10_000 }).toBe(false);
    expect(snapshots.length - before).toBe(1);
  });

  it("of pools that do not fit together the older one counts, so that a new one stops no pod", async () => {
    const born = (name: string, year: number) => ({
      metadata: { name, uid: name, resourceVersion: "1", creationTimestamp: `${year}-01-01T00:00:00Z` },
    });
    const old = poolOf("old", "10.1.0.0/24", born("old", 2025));
    await given({ [POOLS]: [old] });
    deliver(POOLS, poolOf("a", "10.1.0.0/16", born("a", 2026)));
    resources.flush();
    const { pools, refused } = resources.state.snapshot;
    expect([[...pools.keys()], [...refused.keys()]]).toEqual([["old"], ["a"]]);
  });

  it("a wait for a change that never comes leaves nothing behind", async () => {
    await given({});
    await expect.poll(() => resources.changed(signal(), soon(resources)), { timeout: 10_000 }).toBe(false);
    expect(await bytesLeftPerWait((signal) => resources.changed(signal, soon(resources)))).toBe(0);
  });

  it("a pod is in the snapshot at once, and makes no new one: 1,000 pools cost it nothing", async () => {
    const pools = Array.from({ length: 1_000 }, (_, net) => poolOf(`p${net}`, `10.${net >> 8}.${net & 255}.0/24`));
    await given({ [POOLS]: pools });
    const { snapshot } = resources.state;
    const count = snapshots.length;
    for (let index = 0; index < 100; index++) deliver(PODS, podOf(`web-${index}`));
    expect([snapshot.pods.size, pods.length]).toEqual([100, 100]);
    remove(PODS, "web-0");
    expect(snapshot.pods.has("shop/web-0")).toBe(false);
    resources.flush();
    expect(snapshots.length).toBe(count);
    expect(resources.state.snapshot).toBe(snapshot);
  });

  it("cooling-visibility: a pool that is wanted is told of, and is no other pool for that", async () => {
    await given({ [POOLS]: [poolOf("blue", "10.1.0.0/24")] });
    const count = snapshots.length;
    deliver(POOLS, poolOf("blue", "10.1.0.0/24", { status: { wanted: "2026-11-20T04:00:00Z" } }));
    deliver(POOLS, poolOf("blue", "10.1.0.0/24", { status: { wanted: "2026-11-20T04:00:00Z", total: 3 } }));
    expect(wanted).toEqual(["blue"]);
    resources.flush();
    expect(snapshots.length).toBe(count);
  });

  it("a generated pool that lacks addresses is another one when the reason comes, changes and goes, and for no other condition", async () => {
    await given({ [POOLS]: [poolOf("blue", "10.1.0.0/24")] });
    const lackOf = () => resources.state.snapshot.pools.get("blue")?.shortfall;
    const told = (type: string, status: string, message: string): number => {
      const before = snapshots.length;
      const conditions = [{ type, status, message }];
      deliver(POOLS, poolOf("blue", "10.1.0.0/24", { status: { conditions } }));
      resources.flush();
      return snapshots.length - before;
    };
    expect([told("Supplied", "False", "full"), lackOf()]).toEqual([1, "full"]);
    expect([told("Supplied", "False", "gone"), lackOf()]).toEqual([1, "gone"]);
    expect([told("Supplied", "False", "gone"), lackOf()]).toEqual([0, "gone"]);
    expect([told("Supplied", "True", "all"), lackOf()]).toEqual([1, undefined]);
    expect([told("Overlap", "True", "others"), lackOf()]).toEqual([0, undefined]);
  });

  it("an ADD that has waited too long for the comparison is told so, unless its caller hangs up in that moment", async () => {
    await given({});
    const tooLong = vi.spyOn(AbortSignal, "timeout").mockReturnValue(AbortSignal.abort());
    const never = (bounded: AbortSignal): Promise<void> => Promise.reject(bounded.reason);
    const waiting = resources.within(new AbortController().signal, never, () => "a reason");
    const caller = new AbortController();
    const hangUp = (bounded: AbortSignal) => never(bounded).finally(() => caller.abort(new Error("it hung up")));
    await expect(resources.within(caller.signal, hangUp, () => "a reason")).rejects.toThrow("it hung up");
    tooLong.mockRestore();
    await expect(waiting).rejects.toMatchObject({
      code: 50,
      message: "The agent has not received the allocations of this node from the API server within 20 s: a reason",
    });
  });

  it("an address that is free again is a change, and so is a change before the wait", async () => {
    await given({});
    const [since, count] = [resources.changeCount, snapshots.length];
    const waiting = resources.changed(signal(), { since, withinMs: 2_000 });
    resources.notify();
    expect(await waiting).toBe(true);
    expect(await resources.changed(signal(), { since, withinMs: 0 })).toBe(true);
    expect(await resources.changed(signal(), { since: resources.changeCount, withinMs: 0 })).toBe(false);
    expect(snapshots.length).toBe(count);
  });

  it("a pool that was deleted and recreated between two reads is another pool", async () => {
    const made = (uid: string, subnet: string) =>
      poolOf("blue", subnet, { metadata: { name: "blue", uid, generation: 1, resourceVersion: "1" } });
    await given({ [POOLS]: [made("uid-1", "10.1.0.0/24")] });
    deliver(POOLS, made("uid-2", "10.2.0.0/24"));
    resources.flush();
    const subnets = [...resources.state.snapshot.pools.values()].map(({ spec }) => formatPrefix(spec.subnet));
    expect(subnets).toEqual(["10.2.0.0/24"]);
  });

  it("a pool that cannot be used is refused by name, and stops nothing", async () => {
    await given({ [POOLS]: [poolOf("odd", "10.1.0.7/24"), poolOf("blue", "10.2.0.0/24")] });
    const { snapshot, complete } = resources.state;
    expect([complete, [...snapshot.pools.keys()]]).toEqual([true, ["blue"]]);
    expect(snapshot.refused.get("odd")).toMatch(/^cannot be used: field "spec.subnet"/);
    expect(snapshot.problems).toEqual([expect.stringMatching(/^IPPool "odd" cannot be used: /)]);
  });

  it("a reserved address that was never understood stops every ADD, one that becomes bad keeps its last content", async () => {
    await given({ [RESERVED]: [berth("ReservedIP", "r", { ips: ["10.1.0.300"] })] });
    expect(resources.state.complete).toBe(false);
    expect(resources.state.problems.join()).toContain("10.1.0.300");
    deliver(RESERVED, berth("ReservedIP", "r", { ips: ["10.1.0.3"] }));
    expect(resources.state.complete).toBe(true);
    deliver(RESERVED, berth("ReservedIP", "r", { ips: ["x"] }));
    resources.flush();
    expect(resources.state.complete).toBe(true);
    expect(resources.state.snapshot.reserved).toHaveLength(1);
  });

  it("vendor-conf: the last good one holds, also without one", async () => {
    await given({ [CONF]: [confOf("allocationCooldown: 7s")] });
    const cooldownMs = () => {
      resources.flush();
      return resources.state.snapshot.vendorConf.allocationCooldownMs;
    };
    expect(cooldownMs()).toBe(7_000);
    deliver(CONF, confOf("allocationCooldown: soon"));
    expect([cooldownMs(), resources.state.complete]).toEqual([7_000, true]);
    expect(resources.state.problems.join()).toContain("allocationCooldown");
    remove(CONF, "vendor-conf");
    expect([cooldownMs(), resources.state.problems]).toEqual([
      7_000,
      [expect.stringContaining("vendor-conf is missing")],
    ]);
    deliver(CONF, confOf("{}"));
    expect([cooldownMs(), resources.state.problems]).toEqual([30_000, []]);
  });
});
