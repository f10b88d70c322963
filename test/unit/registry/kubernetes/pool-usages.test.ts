import { describe, expect, it } from "vitest";
import { ApiError, ApiUnavailable, type KubeApi, type KubeObject } from "../../../../host/kubernetes/kube-api.ts";
import { openLog } from "../../../../host/lib/log.ts";
import { PoolUsages, SURVEYED_MS, USAGE_FRESH_MS } from "../../../../host/registry/kubernetes/pool-usages.ts";
import { encodeIpPoolUsage, type PoolUsage } from "../../../../host/resources/usage/ip-pool-usage.ts";

const USAGE: PoolUsage = {
  rangesHash: "00ff00ff00ff00ff",
  ...{ total: 6, free: 4, bound: 2, cooling: 0, kept: 0, quarantined: 0, outside: 0, others: 0 },
};

function served(resourceVersion: string): KubeObject {
  return { ...encodeIpPoolUsage(USAGE, { name: "blue", poolUid: "p", uid: "u", resourceVersion }) };
}

function open(answer: () => Promise<KubeObject>) {
  const calls: string[] = [];
  const clock = { nowMs: 0 };
  const api: KubeApi = {
    call: (call) => {
      calls.push(`${call.method} ${call.path}`);
      return answer();
    },
    watch: () => Promise.reject(new Error("Nothing is watched")),
    close: async () => {},
  };
  return { calls, clock, usages: new PoolUsages({ api, nowMs: () => clock.nowMs, log: openLog("test", "silent") }) };
}

describe("rule 11: the usage object is read on demand", () => {
  it("with single flight: who asks meanwhile gets the same answer", async () => {
    const { calls, usages } = open(async () => served("1"));
    const answers = await Promise.all([usages.news("blue"), usages.news("blue"), usages.news("blue")]);
    expect(answers.map((usage) => usage?.free)).toEqual([4, 4, 4]);
    expect(calls).toEqual(["GET /apis/ipam.vendor.io/v1/ippoolusages/blue"]);
  });
  it("and only what is new is told", async () => {
    let version = 1;
    const { calls, clock, usages } = open(async () => served(String(version)));
    expect(await usages.news("blue")).toBeDefined();
    expect(await usages.news("blue")).toBeUndefined();
    expect(calls).toHaveLength(1);
    clock.nowMs += USAGE_FRESH_MS;
    expect(await usages.news("blue")).toBeUndefined();
    expect(calls).toHaveLength(2);
    version++;
    clock.nowMs += USAGE_FRESH_MS;
    expect(await usages.news("blue")).toBeDefined();
  });
  it("after a list it has nothing to add for a while, also when it was on its way", async () => {
    let arrive = (_object: KubeObject): void => {};
    const { calls, clock, usages } = open(
      () =>
        new Promise((resolve) => {
          arrive = resolve;
        }),
    );
    const asked = usages.news("blue");
    usages.surveyed("blue");
    arrive(served("1"));
    expect(await asked).toBeUndefined();
    clock.nowMs += SURVEYED_MS - 1;
    expect(await usages.news("blue")).toBeUndefined();
    expect(calls).toHaveLength(1);
    clock.nowMs += 1;
    const later = usages.news("blue");
    arrive(served("1"));
    expect(await later).toBeDefined();
  });
  it.each([
    ["none", new ApiError({ status: 404, reason: "NotFound", operation: "GET", message: "none" })],
    ["no right to read it", new ApiError({ status: 403, reason: "Forbidden", operation: "GET", message: "no" })],
    ["no answer", new ApiUnavailable("GET", "no answer")],
  ])("there may be %s", async (_title, error) => {
    const { calls, usages } = open(() => Promise.reject(error));
    expect(await usages.news("blue")).toBeUndefined();
    expect(await usages.news("blue")).toBeUndefined();
    expect(calls).toHaveLength(1);
  });
  it.each([
    ["an object of another kind", { apiVersion: "v1", kind: "Status", metadata: { name: "blue" } }],
    ["a bitmap that is none", { ...served("1"), status: { ...USAGE, bitmap: "~" } }],
    ["nothing in it", {}],
  ])("it may be %s", async (_title, object) => {
    const { usages } = open(async () => object);
    expect(await usages.news("blue")).toBeUndefined();
  });
});
