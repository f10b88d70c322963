import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import {
  COLLECTOR_TICK_MS,
  Collector,
  type CollectorSettings,
  SWEEP_FAILURES,
  SWEEP_RETRY_MS,
} from "../../../../host/agent/gc/collector.ts";
import { MAX_SINGLE_POD_READS, POD_PAGE } from "../../../../host/agent/liveness/live-status.ts";
import type { FoundNetns } from "../../../../host/agent/netns/find-netns.ts";
import { readNetnsStatus } from "../../../../host/agent/netns/pod-netns.ts";
import type { NetnsStatus } from "../../../../host/ipam/leak.ts";
import { ApiError, ApiUnavailable } from "../../../../host/kubernetes/kube-api.ts";
import { type Journal, UNKNOWN_CONTAINER } from "../../../../host/registry/journal.ts";
import type { Allocation } from "../../../../host/registry/registry.ts";
import { decodePod, type Pod } from "../../../../host/resources/pod.ts";
import { MemoryApiServer, unreachable } from "../../../fakes/memory-api-server.ts";
import { NO_AUDIT } from "../../../world/no-audit.ts";
import { openJournalNode, type TestNode } from "../../../world/node.ts";
import { until } from "../../../world/recorded-log.ts";
import { temporaryDirectory } from "../../../world/temporary-directory.ts";

const GRACE_MS = 60_000;
const INTERVAL_MS = 300_000;
const PODS = "/api/v1/namespaces/shop/pods";

interface PodShape {
  readonly uid?: string;
  readonly phase?: string;
  readonly hash?: string;
  readonly deleting?: boolean;
}

/** A collector on a node, whose watch of pods is the test's. */
class Scene {
  readonly node: TestNode<Journal>;
  readonly collector: Collector;
  readonly cache = new Map<string, Pod>();
  isSynced = true;
  isAttaching = false;
  /** The network namespace of the pod's NIC, if a journal does not say it. */
  found: FoundNetns = { kind: "absent" };
  /** Of a namespace whose path is known. Default: the kernel's answer. */
  status: NetnsStatus | undefined;
  /** Whether the orphan's NIC has lost the address. */
  fence: (row: Allocation) => Promise<boolean> = async () => true;
  settings: CollectorSettings = {
    ...{ intervalMs: INTERVAL_MS, graceMs: GRACE_MS },
    cooldowns: { defaultMs: 30_000, byPool: new Map([["slow", 600_000]]) },
  };

  constructor(node: TestNode<Journal>) {
    this.node = node;
    const { api, name, registry, log, clock } = node;
    this.collector = new Collector(
      {
        ...{ api, node: name, registry, log, audit: NO_AUDIT, fence: (row) => this.fence(row) },
        isAttaching: () => this.isAttaching,
        nics: {
          readNetnsStatus: async (nic) => (nic.netns === undefined ? "unknown" : (this.status ?? readNetnsStatus(nic))),
          findNetns: () => this.found,
        },
        pods: { isSynced: () => this.isSynced, find: (key) => this.cache.get(key) },
      },
      { settings: () => this.settings, nowMs: clock.nowMs, random: () => 0.5 },
    );
  }

  /** In the API server and in the watch. */
  addPod(name: string, { uid = `uid-${name}`, phase = "Running", hash, deleting }: PodShape = {}): Pod {
    const metadata = {
      ...{ namespace: "shop", name, uid },
      ...(hash === undefined ? {} : { annotations: { "kubernetes.io/config.hash": hash } }),
      ...(deleting ? { deletionTimestamp: "2026-11-20T00:00:00Z" } : {}),
    };
    const object = { metadata, spec: { nodeName: this.node.name }, status: { phase } };
    const pod = decodePod({ ...this.node.server.put(PODS, name, object) }, name);
    this.cache.set(`shop/${name}`, pod);
    return pod;
  }

  removePod(name: string): Pod {
    const pod = this.cache.get(`shop/${name}`) ?? expect.fail(`There was no pod ${name}`);
    this.node.server.remove(name, PODS);
    this.cache.delete(`shop/${name}`);
    return pod;
  }

  /** The pod comes back while it is asked for again. */
  returnsAtSecondRead(name: string): void {
    this.node.calls.length = 0;
    this.node.gate = async (_call, commit) => {
      if (this.node.calls.length === 2) this.addPod(name);
      return commit();
    };
  }

  /** Two sweeps that are far enough apart. */
  async sweepTwice(): Promise<void> {
    await this.collector.sweep();
    await this.sweepLater();
  }

  /** Time passes for leaks that an earlier sweep missed. */
  async sweepLater(): Promise<void> {
    this.node.clock.jump(GRACE_MS);
    this.node.calls.length = 0;
    await this.collector.sweep();
  }

  /** The watch shows that the pod is gone. */
  async goes(name: string): Promise<void> {
    this.collector.podDeleted(this.removePod(name));
    await this.collector.idle();
  }

  /** The address 10.0.0.1 of the pod. */
  bind(pod: string, changes: Parameters<TestNode["bind"]>[2] = {}): Promise<Allocation> {
    return this.node.bind("10.0.0.1", pod, changes);
  }

  get state(): Promise<string> {
    return this.node.stateOf("10.0.0.1");
  }

  statesOf(...addresses: string[]): Promise<string[]> {
    return Promise.all(addresses.map((address) => this.node.stateOf(address)));
  }
}

const it = test.extend<{ world: Scene }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads from the pattern which other fixtures are needed
  world: async ({}, use) => {
    const serves = { [PODS]: { apiVersion: "v1", kind: "Pod", everywhere: "/api/v1/pods" } };
    const world = new Scene(await openJournalNode({ server: new MemoryApiServer({ serves }) }));
    await use(world);
    await world.collector.close();
  },
});

describe("leak: a sweep", () => {
  it("names the namespaces with the address that are not known to be the pod's", async ({ world }) => {
    world.found = { kind: "unknown", candidates: ["/run/netns/other"] };
    await world.bind("web", { containerId: UNKNOWN_CONTAINER });
    await world.collector.sweep();
    expect(world.collector.problems).toEqual([expect.stringContaining("stays there: /run/netns/other; delete")]);
    world.node.clock.jump(GRACE_MS);
    await world.collector.sweep();
    expect([await world.statesOf("10.0.0.1"), world.collector.problems]).toEqual([["Cooling"], []]);
  });

  it("keeps addresses that a machine may have inside, until the runtime has no record of it", async ({ world }) => {
    const workload = { kind: "VirtualMachine", namespace: "shop", name: "vm", uid: "v", member: "vm" } as const;
    world.fence = async () => false;
    await world.bind("vm", { containerId: UNKNOWN_CONTAINER, workload });
    world.found = { kind: "unknown", candidates: [] };
    await world.sweepTwice();
    expect(await world.statesOf("10.0.0.1")).toEqual(["Bound"]);
    world.found = { kind: "absent" };
    await world.sweepTwice();
    expect(await world.statesOf("10.0.0.1")).toEqual(["Cooling"]);
  });

  it("does not ask for pods that the watch shows alive", async ({ world }) => {
    world.collector.podChanged(world.addPod("web"));
    await world.bind("web");
    await world.collector.sweep();
    expect(world.node.calls).toEqual([]);
  });

  it("reads the pod once more before it collects: the pod may be back", async ({ world }) => {
    await world.bind("web");
    await world.collector.sweep();
    world.node.clock.jump(GRACE_MS);
    world.returnsAtSecondRead("web");
    await world.collector.sweep();
    expect([await world.state, world.node.calls.length]).toEqual(["Bound", 2]);
  });

  it("collects others when there is no answer about one, ends when there is none about a few, and a check at the first", async ({
    world,
  }) => {
    for (let last = 1; last <= 9; last++) await world.node.bind(`10.0.0.${last}`, `web-${last}`);
    await world.collector.sweep();
    const { calls } = world.node;
    world.node.gate = async (call, commit) => (calls.length > 9 ? unreachable(call, commit) : commit());
    await expect(world.sweepLater()).rejects.toThrow(ApiUnavailable);
    expect(calls.length).toBe(9 + SWEEP_FAILURES);
    await expect(world.collector.readPodsOf(await world.node.registry.list(undefined, 9))).rejects.toThrow(
      ApiUnavailable,
    );
    expect(calls.length).toBe(9 + SWEEP_FAILURES + 1);
    world.node.gate = async (call, commit) => (calls.length === 10 ? unreachable(call, commit) : commit());
    await expect(world.sweepLater()).rejects.toThrow(ApiUnavailable);
    expect(await world.statesOf("10.0.0.1", "10.0.0.2", "10.0.0.9")).toEqual(["Bound", "Cooling", "Cooling"]);
  });

  it("starts anew when the row was written since", async ({ world }) => {
    await world.bind("web");
    await world.collector.sweep();
    await world.bind("web", { containerId: "c-2" });
    await world.sweepLater();
    expect(await world.state).toBe("Bound");
  });

  it("does nothing while the watch is not synced", async ({ world }) => {
    await world.bind("web");
    world.isSynced = false;
    await world.collector.sweep();
    expect(world.node.calls).toEqual([]);
  });

  const refusal = new ApiError({ status: 403, reason: "Forbidden", operation: "GET", message: "no" });
  const refuse = ({ node }: Scene): void => {
    node.gate = () => Promise.reject(refusal);
  };
  const spoil = ({ node }: Scene) => node.server.put(PODS, "web", { metadata: { namespace: "shop", labels: "none" } });
  it.for<[what: string, change: (world: Scene) => unknown, line: string]>([
    ["that is refused", refuse, "warn Reading a pod was refused; its addresses stay"],
    ["that cannot be decoded", spoil, "warn A pod cannot be decoded; its addresses stay"],
  ])("keeps the address of a pod %s", async ([, change, line], { world }) => {
    await world.bind("web");
    change(world);
    await world.sweepTwice();
    expect([await world.state, world.node.lines.includes(line)]).toEqual(["Bound", true]);
  });

  it("reads many pods with one LIST, page by page, and each by itself before it collects", async ({ world }) => {
    const live = POD_PAGE + 20;
    for (let index = 0; index < live; index++) world.addPod(`live-${index}`);
    world.cache.clear();
    const gone = MAX_SINGLE_POD_READS + 1;
    for (let index = 0; index < gone; index++) await world.node.bind(`10.0.0.${index + 1}`, `gone-${index}`);
    for (let index = 0; index < live; index++) await world.node.bind(`10.0.1.${index + 1}`, `live-${index}`);
    await world.collector.sweep();
    expect(world.node.calls).toEqual(["GET /api/v1/pods", "GET /api/v1/pods continued"]);
    await world.sweepLater();
    expect(world.collector.collected).toBe(gone);
    expect(world.node.calls).toHaveLength(2 + gone);
    expect(await world.node.stateOf(`10.0.1.${live}`)).toBe("Bound");
  });
});

describe("retention: the pod of a workload that retains its address", () => {
  const workload = { kind: "StatefulSet", namespace: "shop", name: "web", uid: "w", member: "web" };

  it("has nothing to fence if it was never attached: its address goes at once", async ({ world }) => {
    world.fence = async () => false;
    await world.bind("web", { containerId: "", workload });
    await world.collector.sweep();
    expect(await world.state).toBe("Cooling");
  });

  it("is checked again until its NIC has settled, if that is being attached", async ({ world }) => {
    world.isAttaching = true;
    world.fence = async () => !world.isAttaching;
    world.addPod("web");
    await world.bind("web", { workload });
    await world.goes("web");
    expect(await world.state).toBe("Bound");
    world.isAttaching = false;
    // Another report makes it check all that are reported.
    world.addPod("other");
    await world.goes("other");
    expect(await world.state).toBe("Cooling");
  });

  it("keeps its address when the API server still has it, at either of two reads", async ({ world }) => {
    world.fence = async () => expect.unreachable("It lives");
    const pod = world.addPod("web");
    await world.bind("web", { workload });
    world.collector.podDeleted(pod);
    await world.collector.idle();
    world.removePod("web");
    world.returnsAtSecondRead("web");
    world.collector.podDeleted(pod);
    await world.collector.idle();
    expect([world.node.calls.length, await world.state]).toEqual([2, "Bound"]);
  });

  it("keeps the address while it is on its NIC, and no other one waits for that", async ({ world }) => {
    let troubles = 2;
    world.fence = async ({ pod }) => {
      if (pod === "web" && troubles-- > 0) throw new Error("The kernel refuses");
      return true;
    };
    for (const name of ["web", "other"]) {
      world.addPod(name);
      await world.node.bind(`10.0.0.${name.length}`, name, { workload });
    }
    for (const name of ["web", "other"]) world.collector.podDeleted(world.removePod(name));
    await world.collector.idle();
    expect(await world.statesOf("10.0.0.3", "10.0.0.5")).toEqual(["Bound", "Cooling"]);
    await expect.poll(() => world.node.stateOf("10.0.0.3"), { timeout: 10_000 }).toBe("Cooling");
    expect(world.node.lines.filter((line) => line.includes("; retrying"))).toHaveLength(1);
  });

  it("is found by a sweep, and collected at the second one where its namespace cannot be seen", async ({ world }) => {
    world.fence = async () => false;
    await world.bind("web", { workload });
    await world.collector.sweep();
    expect(await world.state).toBe("Bound");
    await world.sweepLater();
    expect(await world.state).toBe("Cooling");
    world.fence = async () => true;
    await world.node.bind("10.0.0.2", "late", { workload });
    await world.collector.sweep();
    expect(await world.node.stateOf("10.0.0.2")).toBe("Cooling");
  });
});

describe("retention: an address that the journal has taken in", () => {
  const workload = { kind: "StatefulSet", namespace: "shop", name: "web", uid: "u-web", member: "web-0" };

  it("is checked at once, and collected a grace later where its namespace cannot be seen", async ({ world }) => {
    world.fence = async () => false;
    const row = await world.bind("web", { workload });
    world.collector.adopted(row);
    await world.collector.idle();
    expect([world.collector.candidates, await world.state]).toEqual([1, "Bound"]);
    await world.sweepLater();
    expect(await world.state).toBe("Cooling");
  });

  it("is not asked for while the watch shows its pod alive", async ({ world }) => {
    world.addPod("web");
    const row = await world.bind("web", { workload });
    world.node.calls.length = 0;
    world.collector.adopted(row);
    await world.collector.idle();
    expect([world.node.calls, await world.state]).toEqual([[], "Bound"]);
  });
});

const HASH = "0123456789abcdef0123456789abcdef";

describe("leak: a pod that the watch reports", () => {
  it("as finished keeps its address when the API server contradicts", async ({ world }) => {
    await world.bind("job");
    const pod = world.addPod("job", { phase: "Failed" });
    world.addPod("job");
    world.collector.podChanged(pod);
    await world.collector.sweep();
    expect(await world.state).toBe("Bound");
  });

  it("as deleted is observed at once, and not asked for when its DEL has come", async ({ world }) => {
    world.addPod("lost");
    world.addPod("clean");
    await world.bind("lost");
    world.collector.podDeleted(world.removePod("clean"));
    world.collector.podDeleted(world.removePod("lost"));
    const isObserved = (): boolean => world.node.calls.length === 1;
    await until(isObserved);
    world.node.clock.jump(GRACE_MS);
    await world.collector.sweep();
    expect(await world.state).toBe("Cooling");
  });

  it("while the API server is out of reach is found later, and so are those after it", async ({ world }) => {
    await world.bind("job");
    await world.node.bind("10.0.0.2", "next");
    world.node.gate = unreachable;
    world.collector.podChanged(world.addPod("job", { phase: "Failed" }));
    const warned = "warn Collecting leaked addresses failed; retrying";
    await until(() => world.node.lines.includes(warned));
    world.node.gate = async (_call, commit) => commit();
    world.collector.podChanged(world.addPod("next", { phase: "Failed" }));
    await world.collector.sweep();
    expect(await world.statesOf("10.0.0.1", "10.0.0.2")).toEqual(["Cooling", "Cooling"]);
  });
});

describe("static-pods: a static pod", () => {
  it("is known under its hash when its mirror pod is there", async ({ world }) => {
    world.addPod("etcd-n1", { uid: "mirror", hash: HASH });
    await world.bind("etcd-n1", { owner: HASH });
    world.cache.clear();
    await world.sweepTwice();
    expect(await world.state).toBe("Bound");
    world.collector.podChanged(world.addPod("etcd-n1", { uid: "mirror", hash: HASH, phase: "Failed" }));
    await world.collector.sweep();
    expect(await world.state).toBe("Cooling");
  });

  it("without a mirror pod is collected only when its network namespace is gone", async ({ world }) => {
    const folder = temporaryDirectory("berth-netns-", onTestFinished);
    const netns = join(folder, "cni-1");
    writeFileSync(netns, "");
    await world.bind("etcd-n1", { owner: HASH, netns });
    await world.node.bind("10.0.0.2", "scheduler-n1", { owner: HASH.replace("0", "f") });
    await world.node.bind("10.0.0.3", "proxy-n1", { owner: HASH.replace("0", "e"), netns: "/nowhere/at/all" });
    await world.sweepTwice();
    const states = () => world.statesOf("10.0.0.1", "10.0.0.2", "10.0.0.3");
    expect(await states()).toEqual(["Bound", "Bound", "Bound"]);
    rmSync(netns);
    await world.sweepTwice();
    expect(await states()).toEqual(["Cooling", "Bound", "Bound"]);
  });
});

describe("late-del: an attachment that a CNI GC nominates is collected", () => {
  it("only when its pod is gone or finished, as the API server says now", async ({ world }) => {
    const live = await world.bind("live");
    const gone = await world.node.bind("10.0.0.2", "gone");
    const done = await world.node.bind("10.0.0.3", "done");
    const mirrorless = await world.node.bind("10.0.0.4", "etcd-n1", { owner: HASH });
    world.addPod("live");
    world.addPod("done", { phase: "Succeeded", deleting: true });
    const results = await Promise.all([live, gone, done, mirrorless].map((row) => world.collector.isPodGone(row)));
    expect(results).toEqual([false, true, true, false]);
  });

  it("not when the API server is out of reach", async ({ world }) => {
    const gone = await world.node.bind("10.0.0.2", "gone");
    world.node.gate = unreachable;
    expect(await world.collector.isPodGone(gone)).toBe(false);
    expect(world.node.lines).toEqual(["info Reading the pod of an address failed; it stays"]);
  });
});

describe("the collector's timer", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
  afterEach(() => void vi.useRealTimers());

  /** Ticks at the world's time, and waits for the sweep that this may have begun. */
  async function tickAt(world: Scene, advanceMs: number): Promise<number> {
    world.node.clock.jump(advanceMs);
    world.node.calls.length = 0;
    vi.advanceTimersByTime(COLLECTOR_TICK_MS);
    // The run starts, its sweep ends, and the next run is scheduled.
    await new Promise(setImmediate);
    await world.collector.idle();
    await new Promise(setImmediate);
    return world.node.calls.length;
  }

  it("sweeps at once, then when a pod has been missed for long enough, then after the interval", async ({ world }) => {
    await world.bind("web");
    expect(await tickAt(world, 0)).toBe(1);
    expect(await tickAt(world, GRACE_MS - 1)).toBe(0);
    expect(await tickAt(world, 1)).toBe(2);
    expect(await world.state).toBe("Cooling");
    await world.node.bind("10.0.0.2", "web", { owner: "x" });
    expect(await tickAt(world, INTERVAL_MS - 1)).toBe(0);
    expect(await tickAt(world, 1)).toBe(1);
  });

  it("applies a new interval and a new grace at once", async ({ world }) => {
    await world.bind("web");
    await tickAt(world, 0);
    const cooldowns = { defaultMs: 0, byPool: new Map() };
    world.settings = { ...world.settings, intervalMs: 5_000, graceMs: 0, cooldowns };
    expect(await tickAt(world, 4_999)).toBe(0);
    expect(await tickAt(world, 1)).toBe(2);
    expect(await world.state).toBe("Cooling");
  });

  it("leaves an API server that cannot be reached alone for a while", async ({ world }) => {
    await world.bind("web");
    await tickAt(world, 0);
    world.node.gate = unreachable;
    expect(await tickAt(world, GRACE_MS)).toBe(1);
    expect(await tickAt(world, SWEEP_RETRY_MS - 1)).toBe(0);
    expect(await tickAt(world, 1)).toBe(1);
    expect(world.node.lines).toEqual(["warn Collecting leaked addresses failed; retrying"]);
  });

  it("sweeps again soon after its first sweep had no answer, not after the interval", async ({ world }) => {
    await world.bind("web");
    world.node.gate = unreachable;
    expect(await tickAt(world, 0)).toBe(1);
    world.node.gate = async (_call, commit) => commit();
    expect(await tickAt(world, SWEEP_RETRY_MS - 1)).toBe(0);
    expect(await tickAt(world, 1)).toBe(1);
    expect(world.collector.candidates).toBe(1);
    // It has ended: the pod that it has missed is next, not another sweep.
    expect(await tickAt(world, GRACE_MS - 1)).toBe(0);
  });

  it("does nothing once it is closed", async ({ world }) => {
    await world.bind("web");
    await world.collector.close();
    world.collector.podDeleted(world.addPod("web"));
    expect(await tickAt(world, INTERVAL_MS)).toBe(0);
    await expect(world.collector.sweep()).rejects.toThrow("The collector is closed");
  });
});
