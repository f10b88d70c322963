import { describe, expect, it } from "vitest";
import { MAX_SINGLE_POD_READS, POD_PAGE } from "../../../host/agent/gc/live-pods.ts";
import { checkAddresses } from "../../../host/agent/ipam/check.ts";
import type { AttachRequest } from "../../../host/cni/request.ts";
import { ApiError } from "../../../host/kubernetes/kube-api.ts";
import { GRACE_MS, inWorld, UNREACHABLE } from "./collector-world.ts";

describe("rule 16: a sweep", () => {
  it(
    "collects the address of a pod that is gone, at the second observation and not before",
    inWorld(async (it) => {
      await it.bind("10.0.0.1", "web");
      expect((await it.collector.sweep())?.suspects).toBe(1);
      it.advance(GRACE_MS - 1);
      await it.collector.sweep();
      expect(await it.stateOf("10.0.0.1")).toBe("Bound");
      it.advance(1);
      expect((await it.collector.sweep())?.collected).toMatchObject([{ state: "Cooling", pool: "blue" }]);
      expect([await it.stateOf("10.0.0.1"), it.collector.collected]).toEqual(["Cooling", 1]);
    }),
  );

  it(
    "waits for the pool's cooldown when that is longer",
    inWorld(async (it) => {
      await it.bind("10.0.0.1", "web", { pool: "slow" });
      await it.sweepTwice();
      expect(await it.stateOf("10.0.0.1")).toBe("Bound");
      it.advance(600_000 - GRACE_MS);
      await it.collector.sweep();
      expect(await it.stateOf("10.0.0.1")).toBe("Cooling");
    }),
  );

  it(
    "asks nobody about pods that the watch shows alive",
    inWorld(async (it) => {
      it.addPod("web");
      await it.bind("10.0.0.1", "web");
      expect(await it.collector.sweep()).toEqual({ suspects: 0, collected: [] });
      expect(it.api.calls).toEqual([]);
    }),
  );

  it(
    "believes the API server, not a watch that is behind",
    inWorld(async (it) => {
      it.addPod("web");
      it.cache.clear();
      await it.bind("10.0.0.1", "web");
      await it.sweepTwice();
      expect(await it.stateOf("10.0.0.1")).toBe("Bound");
    }),
  );

  it(
    "collects for the old pod, not for the one that was made anew under the same name",
    inWorld(async (it) => {
      it.addPod("web", { uid: "new" });
      await it.bind("10.0.0.1", "web", { owner: "old" });
      await it.bind("10.0.0.2", "web", { owner: "new", containerId: "c-new" });
      await it.sweepTwice();
      expect([await it.stateOf("10.0.0.1"), await it.stateOf("10.0.0.2")]).toEqual(["Cooling", "Bound"]);
    }),
  );

  it(
    "asks once more before it takes an address: the pod may be back",
    inWorld(async (it) => {
      await it.bind("10.0.0.1", "web");
      await it.collector.sweep();
      it.advance(GRACE_MS);
      it.api.calls.length = 0;
      it.api.beforeAnswer = () => {
        if (it.api.calls.length === 2) it.addPod("web");
      };
      await it.collector.sweep();
      expect([await it.stateOf("10.0.0.1"), it.api.calls.length]).toEqual(["Bound", 2]);
    }),
  );

  it(
    "starts anew when somebody has written to the row since",
    inWorld(async (it) => {
      await it.bind("10.0.0.1", "web");
      await it.collector.sweep();
      it.advance(GRACE_MS);
      await it.bind("10.0.0.1", "web", { containerId: "c-2" });
      await it.collector.sweep();
      expect(await it.stateOf("10.0.0.1")).toBe("Bound");
    }),
  );

  it(
    "does nothing while the watch is not synced",
    inWorld(async (it) => {
      await it.bind("10.0.0.1", "web");
      it.isSynced = false;
      expect(await it.collector.sweep()).toBeUndefined();
      expect(it.api.calls).toEqual([]);
    }),
  );

  it(
    "takes nothing while the API server is out of reach, and goes on from what it had seen",
    inWorld(async (it) => {
      await it.bind("10.0.0.1", "web");
      await it.collector.sweep();
      it.advance(GRACE_MS);
      it.api.trouble = UNREACHABLE;
      await expect(it.collector.sweep()).rejects.toThrow("No connection");
      expect(await it.stateOf("10.0.0.1")).toBe("Bound");
      it.api.trouble = undefined;
      await it.collector.sweep();
      expect(await it.stateOf("10.0.0.1")).toBe("Cooling");
    }),
  );

  it(
    "takes nothing when the API server refuses to tell",
    inWorld(async (it) => {
      await it.bind("10.0.0.1", "web");
      it.api.trouble = new ApiError({ status: 403, reason: "Forbidden", operation: "GET", message: "no" });
      await it.sweepTwice();
      expect(await it.stateOf("10.0.0.1")).toBe("Bound");
      expect(it.lines).toContain("warn A pod cannot be read; its addresses stay");
    }),
  );

  it(
    "leaves the address of a pod that cannot be understood",
    inWorld(async (it) => {
      it.api.pods.set("web", { kind: "Pod", metadata: { namespace: "shop", name: "web", labels: "none" } });
      await it.bind("10.0.0.1", "web");
      await it.sweepTwice();
      expect(await it.stateOf("10.0.0.1")).toBe("Bound");
      expect(it.lines).toContain("warn A pod cannot be understood; its addresses stay");
    }),
  );

  it(
    "reads many pods with one LIST, page by page, and asks for each by itself before it takes an address",
    inWorld(async (it) => {
      const live = POD_PAGE + 20;
      for (let index = 0; index < live; index++) it.addPod(`live-${index}`);
      it.cache.clear();
      const gone = MAX_SINGLE_POD_READS + 1;
      for (let index = 0; index < gone; index++) await it.bind(`10.0.0.${index + 1}`, `gone-${index}`);
      for (let index = 0; index < live; index++) await it.bind(`10.0.1.${index + 1}`, `live-${index}`);
      await it.collector.sweep();
      expect(it.api.calls).toEqual(["GET /api/v1/pods", "GET /api/v1/pods continued"]);
      it.advance(GRACE_MS);
      expect((await it.collector.sweep())?.collected).toHaveLength(gone);
      expect(it.api.calls).toHaveLength(2 + 2 + gone);
      expect(await it.stateOf(`10.0.1.${live}`)).toBe("Bound");
    }),
  );
});

describe("rule 8: the pod of a workload that keeps its address", () => {
  const workload = { kind: "StatefulSet", namespace: "shop", name: "web", uid: "w", member: "web" };

  it(
    "is fenced as soon as the watch says that it is gone, and its address goes at once",
    inWorld(async (it) => {
      const fenced: string[] = [];
      it.fence = async ({ owner }) => fenced.push(owner) > 0;
      it.addPod("web");
      await it.bind("10.0.0.1", "web", { workload });
      it.addPod("plain");
      await it.bind("10.0.0.2", "plain");
      for (const name of ["web", "plain"]) it.collector.podDeleted(it.removePod(name));
      await it.collector.settled();
      expect([fenced, await it.stateOf("10.0.0.1"), await it.stateOf("10.0.0.2")]).toEqual([["uid-web"], "Cooling", "Bound"]); // biome-ignore format: one thought
    }),
  );

  it(
    "fails its CHECK then, and its late DEL finds nothing",
    inWorld(async (it) => {
      it.addPod("web");
      await it.bind("10.0.0.1", "web", { workload });
      it.collector.podDeleted(it.removePod("web"));
      await it.collector.settled();
      const attachment = { containerId: "c-web", ifName: "eth0", network: "lab" };
      const request = { ...attachment, netConf: { name: "lab" } } as unknown as AttachRequest;
      const check = checkAddresses({ registry: it.journal, catalogue: { snapshot: { pools: new Map() } } }, request);
      await expect(check).rejects.toMatchObject({ code: 3 });
      expect(await it.journal.release(attachment)).toEqual([]);
    }),
  );

  it(
    "is left alone when the API server still has it, at either of two looks",
    inWorld(async (it) => {
      it.fence = async () => expect.unreachable("It lives");
      const pod = it.addPod("web");
      await it.bind("10.0.0.1", "web", { workload });
      it.collector.podDeleted(pod);
      await it.collector.settled();
      it.removePod("web");
      it.api.calls.length = 0;
      it.api.beforeAnswer = () => {
        if (it.api.calls.length === 2) it.addPod("web");
      };
      it.collector.podDeleted(pod);
      await it.collector.settled();
      expect([it.api.calls.length, await it.stateOf("10.0.0.1")]).toEqual([2, "Bound"]);
    }),
  );

  it(
    "keeps the address while it is on its NIC, and is looked at again until it is not; others do not wait for it",
    inWorld(async (it) => {
      let troubles = 2;
      it.fence = async ({ pod }) => {
        if (pod === "web" && troubles-- > 0) throw new Error("The kernel refuses");
        return true;
      };
      for (const name of ["web", "other"]) {
        it.addPod(name);
        await it.bind(`10.0.0.${name.length}`, name, { workload });
      }
      for (const name of ["web", "other"]) it.collector.podDeleted(it.removePod(name));
      await it.collector.settled();
      expect([await it.stateOf("10.0.0.3"), await it.stateOf("10.0.0.5")]).toEqual(["Bound", "Cooling"]);
      await expect.poll(() => it.stateOf("10.0.0.3"), { timeout: 10_000 }).toBe("Cooling");
      expect(it.lines.filter((line) => line.includes("it is tried again"))).toHaveLength(1);
    }),
  );

  it(
    "is not judged while the API server is out of reach or the watch is behind, and is looked at when it is back",
    inWorld(async (it) => {
      const fenced: string[] = [];
      it.fence = async ({ owner }) => fenced.push(owner) > 0;
      it.addPod("web");
      await it.bind("10.0.0.1", "web", { workload });
      it.api.trouble = UNREACHABLE;
      const pod = it.removePod("web");
      it.collector.podDeleted(pod);
      await it.collector.settled();
      it.isSynced = false;
      it.api.trouble = undefined;
      it.collector.podDeleted(pod);
      await it.collector.settled();
      expect(fenced).toEqual([]);
      it.isSynced = true;
      await expect.poll(() => it.stateOf("10.0.0.1"), { timeout: 10_000 }).toBe("Cooling");
      expect(fenced).toEqual(["uid-web"]);
    }),
  );

  it(
    "is found by a sweep when the agent was away, and stays by two looks where its namespace cannot be seen",
    inWorld(async (it) => {
      it.fence = async () => false;
      await it.bind("10.0.0.1", "web", { workload });
      await it.collector.sweep();
      expect(await it.stateOf("10.0.0.1")).toBe("Bound");
      it.advance(GRACE_MS);
      await it.collector.sweep();
      expect(await it.stateOf("10.0.0.1")).toBe("Cooling");
      it.fence = async () => true;
      await it.bind("10.0.0.2", "late", { workload });
      await it.collector.sweep();
      expect(await it.stateOf("10.0.0.2")).toBe("Cooling");
    }),
  );
});
