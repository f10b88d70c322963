import { describe, expect, it } from "vitest";
import { ApiError, ApiUnavailable, type KubeApi, type KubeObject } from "../../../../host/kubernetes/kube-api.ts";
import { openLog } from "../../../../host/lib/log.ts";
import {
  LISTED_MS,
  packUsed,
  TIGHT_MS,
  TightPools,
  USAGE_FRESH_MS,
  UsageSummaries,
} from "../../../../host/registry/kubernetes/pool-usage.ts";
import { encodeIpPoolUsage, type PoolUsage } from "../../../../host/resources/ip-pool-usage.ts";
import { ip } from "../../../world/values.ts";
import { spanOfTen } from "../registry-suite.ts";

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
  };
  return {
    calls,
    clock,
    usages: new UsageSummaries({ api, nowMs: () => clock.nowMs, log: openLog("test", "silent") }),
  };
}

describe("exhaustion: the usage object is read on demand", () => {
  it("with single flight: who asks meanwhile gets the same answer", async () => {
    const { calls, usages } = open(async () => served("1"));
    const answers = await Promise.all([usages.readNew("blue"), usages.readNew("blue"), usages.readNew("blue")]);
    expect(answers.map((usage) => usage?.free)).toEqual([4, 4, 4]);
    expect(calls).toEqual(["GET /apis/ipam.vendor.io/v1/ippoolusages/blue"]);
  });
  it("and only news are told", async () => {
    let version = 1;
    const { calls, clock, usages } = open(async () => served(String(version)));
    expect(await usages.readNew("blue")).toBeDefined();
    expect(await usages.readNew("blue")).toBeUndefined();
    expect(calls).toHaveLength(1);
    clock.nowMs += USAGE_FRESH_MS;
    expect(await usages.readNew("blue")).toBeUndefined();
    expect(calls).toHaveLength(2);
    version++;
    clock.nowMs += USAGE_FRESH_MS;
    expect(await usages.readNew("blue")).toBeDefined();
  });
  it("after a list it has nothing to add for a while, also when it was on its way", async () => {
    let arrive = (_object: KubeObject): void => {};
    const { calls, clock, usages } = open(
      () =>
        new Promise((resolve) => {
          arrive = resolve;
        }),
    );
    const requested = usages.readNew("blue");
    usages.noteListed("blue");
    arrive(served("1"));
    expect(await requested).toBeUndefined();
    clock.nowMs += LISTED_MS - 1;
    expect(await usages.readNew("blue")).toBeUndefined();
    expect(calls).toHaveLength(1);
    clock.nowMs += 1;
    const later = usages.readNew("blue");
    arrive(served("1"));
    expect(await later).toBeDefined();
  });
  it.each([
    ["none", new ApiError({ status: 404, reason: "NotFound", operation: "GET", message: "none" })],
    ["no right to read it", new ApiError({ status: 403, reason: "Forbidden", operation: "GET", message: "no" })],
    ["no answer", new ApiUnavailable("GET", "no answer")],
  ])("there may be %s", async (_title, error) => {
    const { calls, usages } = open(() => Promise.reject(error));
    expect(await usages.readNew("blue")).toBeUndefined();
    expect(await usages.readNew("blue")).toBeUndefined();
    expect(calls).toHaveLength(1);
  });
  it.each([
    ["an object of another kind", { apiVersion: "v1", kind: "Status", metadata: { name: "blue" } }],
    ["a bitmap that is none", { ...served("1"), status: { ...USAGE, bitmap: "~" } }],
    ["nothing in it", {}],
  ])("it may be %s", async (_title, object) => {
    const { usages } = open(async () => object);
    expect(await usages.readNew("blue")).toBeUndefined();
  });
});

const sizes = new Map(Object.entries({ small: 256, large: 257 }));

it("cooling-visibility: tight pools are small, or used by 80 %, or wanted not long ago, or have another name now", () => {
  let nowMs = 0;
  let free = 0.21;
  const counts = (pool: string) => {
    const total = sizes.get(pool);
    return total === undefined ? undefined : { total: BigInt(total), free: BigInt(Math.round(total * free)) };
  };
  const pools = new TightPools({ counts }, () => nowMs);
  expect(["small", "large", "gone"].map((pool) => pools.isTight(pool))).toEqual([true, false, true]);
  free = 0.2;
  expect(pools.isTight("large")).toBe(true);
  free = 1;
  pools.note("large");
  expect(pools.isTight("large")).toBe(true);
  nowMs = TIGHT_MS;
  expect(pools.isTight("large")).toBe(false);
});

it("the list of a pool's names packs names and own addresses of the span, each once and in order", () => {
  const first = "fd00-0000-0000-0000-0000-0000-0000-0001";
  const names = ["10.0.0.3", "10.0.0.1", "11.0.0.1", "10.0.0.2.lab", first, "odd"];
  const own = Uint8Array.from([10, 0, 0, 2, 10, 0, 0, 3]);
  expect([...packUsed(spanOfTen(), names, own)]).toEqual([10, 0, 0, 1, 10, 0, 0, 2, 10, 0, 0, 3]);
  const six = { space: "", family: 6 as const, first: ip("fd00::").value, last: ip("fd00::ff").value };
  expect([...packUsed(six, names, new Uint8Array())].slice(-2)).toEqual([0, 1]);
});
