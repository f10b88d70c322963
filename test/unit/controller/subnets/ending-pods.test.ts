/** The parts of ending pods in their workload's pools. */
import { expect, it, test } from "vitest";
import type { CachedAllocation } from "../../../../host/controller/cached-allocation.ts";
import { addEnding, EndingPods } from "../../../../host/controller/subnets/ending-pods.ts";
import type { PoolDemand } from "../../../../host/ipam/subnet-pools.ts";
import { ip } from "../../../world/values.ts";
import { generatedPool, pool } from "../conditions/judged.ts";

const application = { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name: "web", uid: "uid-web" };
const turnover = { needed: 3, isFixed: false };
const FIXED = { needed: 3, isFixed: true };
const LONG = "x".repeat(200);
const FOUR = "3 replicas and 1 more, and 4 of pods that are ending";
const WEB: PoolDemand = {
  ...{ application, ifName: "eth0", family: 4, subnets: ["blue"], reclaim: true, isCurrent: true },
  ...{ count: 4, reason: "3 replicas and 1 more", turnover },
};

it.each<[Partial<PoolDemand>, pods: readonly string[], expected: string]>([
  [{}, [], "4: 3 replicas and 1 more"],
  [{}, ["a"], "5: 3 replicas and 1 more, and 1 of pods that are ending | a"],
  [{}, ["a", "b", "c", "d"], "8: 3 replicas and 1 more, and 4 of pods that are ending | a, b, c and 1 more"],
  // A name's length is limited, and the reason's.
  [{}, ["a", `b${LONG}`, "c", LONG], `8: ${FOUR} | a, b${LONG}, c and 1 more`],
  [{}, [`a${LONG}`, `b${LONG}`], `6: 3 replicas and 1 more, and 2 of pods that are ending | a${LONG} and 1 more`],
  [{ turnover: undefined }, ["a"], "4: 3 replicas and 1 more"],
  [{ turnover: FIXED, reason: "4 fixed" }, ["a"], "4: 4 fixed"],
  [{ turnover: FIXED, reason: "4 fixed" }, ["a", "b"], "4: 4 fixed; 2 of them are of pods that are ending: a, b"],
  [{ turnover: FIXED, count: 3, reason: "3" }, ["a"], "3: 3; 1 of them is of a pod that is ending: a"],
])("%j with %j ending: %s", (changes, pods, expected) => {
  const { count, reason, reasonIfShort } = addEnding({ ...WEB, ...changes }, pods);
  const names = reasonIfShort === undefined ? "" : ` | ${reasonIfShort.slice(reason.length + 2)}`;
  expect(`${count}: ${reason}${names}`).toBe(expected);
});

function open() {
  const ending = new Map<string, Set<string>>();
  const allocations = new Map<string, CachedAllocation>();
  const cache = { items: allocations, subscribe: () => () => {}, problems: [] };
  const give = (name: string, pod: string, changes: Partial<CachedAllocation["spec"]> = {}): CachedAllocation => {
    const holders = [{ namespace: "shop", pod, ifName: "eth0", node: "n1" }];
    const base = { ip: ip(name), addressSpace: "", prefixLength: 24, pool: "web", node: "n1" } as const;
    const allocation = { name, deleting: false, spec: { ...base, state: "Bound", holders, ...changes } } as const;
    allocations.set(name, allocation);
    return allocation;
  };
  return { ending, allocations, give, pods: new EndingPods(() => ending, cache) };
}

const POOL = generatedPool("web", { ips: ["10.6.0.1-10.6.0.9"], wanted: 4 });

test("the addresses bound to them count, and no others", () => {
  const { ending, allocations, give, pods } = open();
  const size = () => pods.addTo([WEB], [POOL])[0]?.count;
  const leaving = give("10.6.0.1", "a");
  give("10.6.0.2", "b");
  expect(size()).toBe(4);
  ending.set("shop", new Set(["a", "c"]));
  ending.set("bank", new Set(["b"]));
  expect(size()).toBe(5);
  give("10.6.0.3", "c", { state: "Cooling", holders: [] });
  give("10.6.0.4", "c", { pool: "other" });
  give("10.6.0.10", "c");
  expect(size()).toBe(5);
  give("10.6.0.9", "c");
  expect(size()).toBe(6);
  for (const other of [{ ifName: "net1" }, { family: 6 }, { subnets: ["red"] }] as Partial<PoolDemand>[])
    expect(pods.addTo([{ ...WEB, ...other }], [POOL])[0]?.count).toBe(4);
  expect([pods.has(leaving), pods.has(allocations.get("10.6.0.2")), pods.has(undefined)]).toEqual([true, false, false]);
  allocations.delete("10.6.0.1");
  expect(size()).toBe(5);
  give("fd00::1:0:9", "a");
  const { generated } = POOL.value?.spec ?? {};
  const endless = pool("web", { subnet: "fd00::/64", ips: ["fd00::-fd00::ffff:ffff:ffff:ffff"], generated });
  expect(pods.addTo([{ ...WEB, family: 6 }], [endless])[0]?.count).toBe(5);
});

test("a demand is the same while the same pods are ending", () => {
  const { ending, give, pods } = open();
  give("10.6.0.1", "a");
  expect(pods.addTo([WEB], [POOL])[0]).toBe(WEB);
  ending.set("shop", new Set(["a"]));
  const [first] = pods.addTo([WEB], [POOL]);
  expect(pods.addTo([WEB], [POOL])[0]).toBe(first);
  give("10.6.0.2", "b");
  expect(pods.addTo([WEB], [POOL])[0]).toBe(first);
  ending.get("shop")?.add("b");
  expect(pods.addTo([WEB], [POOL])[0]).not.toBe(first);
});
