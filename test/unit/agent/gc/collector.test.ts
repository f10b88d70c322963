import { describe, expect } from "vitest";
import { MAX_SINGLE_POD_READS, POD_PAGE } from "../../../../host/agent/gc/live-status.ts";
import { checkAddresses } from "../../../../host/agent/ipam/check.ts";
import type { AttachRequest } from "../../../../host/cni/request.ts";
import { ApiError } from "../../../../host/kubernetes/kube-api.ts";
import { GRACE_MS, it, UNREACHABLE } from "./collector-world.ts";

describe("leak: a sweep", () => {
  it("collects the address of a pod that is gone, at the second observation and not before", async ({ world }) => {
    await world.bind("10.0.0.1", "web");
    expect((await world.collector.sweep())?.suspects).toBe(1);
    world.advance(GRACE_MS - 1);
    await world.collector.sweep();
    expect(await world.stateOf("10.0.0.1")).toBe("Bound");
    world.advance(1);
    expect((await world.collector.sweep())?.collected).toMatchObject([{ state: "Cooling", pool: "blue" }]);
    expect([await world.stateOf("10.0.0.1"), world.collector.collected]).toEqual(["Cooling", 1]);
  });

  it("waits for the pool's cooldown when that is longer", async ({ world }) => {
    await world.bind("10.0.0.1", "web", { pool: "slow" });
    await world.sweepTwice();
    expect(await world.stateOf("10.0.0.1")).toBe("Bound");
    world.advance(600_000 - GRACE_MS);
    await world.collector.sweep();
    expect(await world.stateOf("10.0.0.1")).toBe("Cooling");
  });

  it("does not ask for pods that the watch shows alive", async ({ world }) => {
    world.addPod("web");
    await world.bind("10.0.0.1", "web");
    expect(await world.collector.sweep()).toEqual({ suspects: 0, collected: [] });
    expect(world.api.calls).toEqual([]);
  });

  it("relies on the API server, not on a watch that is behind", async ({ world }) => {
    world.addPod("web");
    world.cache.clear();
    await world.bind("10.0.0.1", "web");
    await world.sweepTwice();
    expect(await world.stateOf("10.0.0.1")).toBe("Bound");
  });

  it("collects from the old pod, not from the new one of the same name", async ({ world }) => {
    world.addPod("web", { uid: "new" });
    await world.bind("10.0.0.1", "web", { owner: "old" });
    await world.bind("10.0.0.2", "web", { owner: "new", containerId: "c-new" });
    await world.sweepTwice();
    expect([await world.stateOf("10.0.0.1"), await world.stateOf("10.0.0.2")]).toEqual(["Cooling", "Bound"]);
  });

  it("reads the pod once more before it collects: the pod may be back", async ({ world }) => {
    await world.bind("10.0.0.1", "web");
    await world.collector.sweep();
    world.advance(GRACE_MS);
    world.api.calls.length = 0;
    world.api.beforeAnswer = () => {
      if (world.api.calls.length === 2) world.addPod("web");
    };
    await world.collector.sweep();
    expect([await world.stateOf("10.0.0.1"), world.api.calls.length]).toEqual(["Bound", 2]);
  });

  it("starts anew when the row was written since", async ({ world }) => {
    await world.bind("10.0.0.1", "web");
    await world.collector.sweep();
    world.advance(GRACE_MS);
    await world.bind("10.0.0.1", "web", { containerId: "c-2" });
    await world.collector.sweep();
    expect(await world.stateOf("10.0.0.1")).toBe("Bound");
  });

  it("does nothing while the watch is not synced", async ({ world }) => {
    await world.bind("10.0.0.1", "web");
    world.isSynced = false;
    expect(await world.collector.sweep()).toBeUndefined();
    expect(world.api.calls).toEqual([]);
  });

  it("collects nothing while the API server is out of reach, and keeps its observations", async ({ world }) => {
    await world.bind("10.0.0.1", "web");
    await world.collector.sweep();
    world.advance(GRACE_MS);
    world.api.trouble = UNREACHABLE;
    await expect(world.collector.sweep()).rejects.toThrow("No connection");
    expect(await world.stateOf("10.0.0.1")).toBe("Bound");
    world.api.trouble = undefined;
    await world.collector.sweep();
    expect(await world.stateOf("10.0.0.1")).toBe("Cooling");
  });

  it("collects nothing when the API server refuses the read", async ({ world }) => {
    await world.bind("10.0.0.1", "web");
    world.api.trouble = new ApiError({ status: 403, reason: "Forbidden", operation: "GET", message: "no" });
    await world.sweepTwice();
    expect(await world.stateOf("10.0.0.1")).toBe("Bound");
    expect(world.lines).toContain("warn Reading a pod was refused; its addresses stay");
  });

  it("keeps the address of a pod that cannot be decoded", async ({ world }) => {
    world.api.pods.set("web", { kind: "Pod", metadata: { namespace: "shop", name: "web", labels: "none" } });
    await world.bind("10.0.0.1", "web");
    await world.sweepTwice();
    expect(await world.stateOf("10.0.0.1")).toBe("Bound");
    expect(world.lines).toContain("warn A pod cannot be decoded; its addresses stay");
  });

  it("reads many pods with one LIST, page by page, and each by itself before it collects", async ({ world }) => {
    const live = POD_PAGE + 20;
    for (let index = 0; index < live; index++) world.addPod(`live-${index}`);
    world.cache.clear();
    const gone = MAX_SINGLE_POD_READS + 1;
    for (let index = 0; index < gone; index++) await world.bind(`10.0.0.${index + 1}`, `gone-${index}`);
    for (let index = 0; index < live; index++) await world.bind(`10.0.1.${index + 1}`, `live-${index}`);
    await world.collector.sweep();
    expect(world.api.calls).toEqual(["GET /api/v1/pods", "GET /api/v1/pods continued"]);
    world.advance(GRACE_MS);
    expect((await world.collector.sweep())?.collected).toHaveLength(gone);
    expect(world.api.calls).toHaveLength(2 + 2 + gone);
    expect(await world.stateOf(`10.0.1.${live}`)).toBe("Bound");
  });
});

describe("retention: the pod of a workload that retains its address", () => {
  const workload = { kind: "StatefulSet", namespace: "shop", name: "web", uid: "w", member: "web" };

  it("is fenced as soon as the watch says that it is gone, and its address goes at once", async ({ world }) => {
    const fenced: string[] = [];
    world.fence = async ({ owner }) => fenced.push(owner) > 0;
    world.addPod("web");
    await world.bind("10.0.0.1", "web", { workload });
    world.addPod("plain");
    await world.bind("10.0.0.2", "plain");
    for (const name of ["web", "plain"]) world.collector.podDeleted(world.removePod(name));
    await world.collector.idle();
    expect([fenced, await world.stateOf("10.0.0.1"), await world.stateOf("10.0.0.2")]).toEqual([
      ["uid-web"],
      "Cooling",
      "Bound",
    ]);
  });

  it("fails its CHECK then, and its late DEL finds nothing", async ({ world }) => {
    world.addPod("web");
    await world.bind("10.0.0.1", "web", { workload });
    world.collector.podDeleted(world.removePod("web"));
    await world.collector.idle();
    const attachment = { containerId: "c-web", ifName: "eth0", network: "lab" };
    const request = { ...attachment, netConf: { name: "lab" } } as unknown as AttachRequest;
    const check = checkAddresses({ registry: world.journal, catalogue: { snapshot: { pools: new Map() } } }, request);
    await expect(check).rejects.toMatchObject({ code: 3 });
    expect(await world.journal.release(attachment)).toEqual([]);
  });

  it("keeps its address when the API server still has it, at either of two reads", async ({ world }) => {
    world.fence = async () => expect.unreachable("It lives");
    const pod = world.addPod("web");
    await world.bind("10.0.0.1", "web", { workload });
    world.collector.podDeleted(pod);
    await world.collector.idle();
    world.removePod("web");
    world.api.calls.length = 0;
    world.api.beforeAnswer = () => {
      if (world.api.calls.length === 2) world.addPod("web");
    };
    world.collector.podDeleted(pod);
    await world.collector.idle();
    expect([world.api.calls.length, await world.stateOf("10.0.0.1")]).toEqual([2, "Bound"]);
  });

  it("keeps the address while it is on its NIC, and is checked until it is not; others do not wait for it", async ({
    world,
  }) => {
    let troubles = 2;
    world.fence = async ({ pod }) => {
      if (pod === "web" && troubles-- > 0) throw new Error("The kernel refuses");
      return true;
    };
    for (const name of ["web", "other"]) {
      world.addPod(name);
      await world.bind(`10.0.0.${name.length}`, name, { workload });
    }
    for (const name of ["web", "other"]) world.collector.podDeleted(world.removePod(name));
    await world.collector.idle();
    expect([await world.stateOf("10.0.0.3"), await world.stateOf("10.0.0.5")]).toEqual(["Bound", "Cooling"]);
    await expect.poll(() => world.stateOf("10.0.0.3"), { timeout: 10_000 }).toBe("Cooling");
    expect(world.lines.filter((line) => line.includes("; retrying"))).toHaveLength(1);
  });

  it("is not checked while the API server is out of reach or the watch is behind, but afterwards", async ({
    world,
  }) => {
    const fenced: string[] = [];
    world.fence = async ({ owner }) => fenced.push(owner) > 0;
    world.addPod("web");
    await world.bind("10.0.0.1", "web", { workload });
    world.api.trouble = UNREACHABLE;
    const pod = world.removePod("web");
    world.collector.podDeleted(pod);
    await world.collector.idle();
    world.isSynced = false;
    world.api.trouble = undefined;
    world.collector.podDeleted(pod);
    await world.collector.idle();
    expect(fenced).toEqual([]);
    world.isSynced = true;
    await expect.poll(() => world.stateOf("10.0.0.1"), { timeout: 10_000 }).toBe("Cooling");
    expect(fenced).toEqual(["uid-web"]);
  });

  it("is found by a sweep when the agent was away, and is collected at the second observation where its namespace cannot be seen", async ({
    world,
  }) => {
    world.fence = async () => false;
    await world.bind("10.0.0.1", "web", { workload });
    await world.collector.sweep();
    expect(await world.stateOf("10.0.0.1")).toBe("Bound");
    world.advance(GRACE_MS);
    await world.collector.sweep();
    expect(await world.stateOf("10.0.0.1")).toBe("Cooling");
    world.fence = async () => true;
    await world.bind("10.0.0.2", "late", { workload });
    await world.collector.sweep();
    expect(await world.stateOf("10.0.0.2")).toBe("Cooling");
  });
});
