/**
 * The segment of two pools gets a wider mask while pods run: built agents, and the conditions that the controller
 * writes.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { startConditions } from "../../host/controller/conditions/conditions-controller.ts";
import { startUsage } from "../../host/controller/usage/usage-controller.ts";
import { POOLS, type PoolSpec } from "../lab/cluster/objects.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import { borrowPlane } from "./borrow-plane.ts";

const SEGMENTS = [
  { family: "v4", pods: ["a", "b"], subnet: "10.6.0.0/24", wider: "10.6.0.0/23", ends: ["10.6.0.", "10.6.1."] },
  { family: "v6", pods: ["c", "d"], subnet: "fd06::/112", wider: "fd06::/108", ends: ["fd06::", "fd06::1:"] },
];

/** No pool of a segment names a gateway but those of the first one. */
const POOLS_MADE = SEGMENTS.flatMap(({ family, subnet, ends: [near] }, index): PoolSpec[] =>
  ["one", "two"].map((name, at) => {
    const gateway = index === 0 ? { gateway: `${near}1` } : {};
    const ips = [`${near}${10 * (at + 1)}-${near}${10 * (at + 1) + 5}`];
    return { name: `${family}-${name}`, subnet, ips, selection: "ascending", ...gateway } as PoolSpec;
  }),
);

let world: World;

beforeAll(async () => {
  const settings = { enableIPv6: true, allowSingleFamily: true };
  world = await startWorld({ startPlane: borrowPlane, nodes: ["n1"], pools: POOLS_MADE, settings });
  await world.lead({ conditions: startConditions, usage: startUsage });
});
afterAll(() => world?.stop());

const LONG = { timeout: 30_000 };

async function conditionOf(pool: string, type: string): Promise<string> {
  const { status } = await world.client.get(`${POOLS}/${pool}`);
  const { status: is = "", message = "" } =
    status?.conditions?.find((each: { type: string }) => each.type === type) ?? {};
  return `${is} ${message}`;
}

async function start(name: string, pool: string): Promise<number> {
  const ippool = { [pool.startsWith("v4") ? "ipv4" : "ipv6"]: [pool] };
  const annotations = { "ipam.vendor.io/ippool": JSON.stringify(ippool) };
  const pod = await world.createPod({ name, node: "n1", annotations });
  const { addresses, refusal } = await world.node("n1").runtime.attach(pod, { limitMs: 5_000 });
  expect(refusal).toBe("");
  const allocation = (await world.allocations()).find(({ spec }) => spec.address === addresses[0]);
  return allocation?.spec.prefixLength;
}

const widen = (pool: string, subnet: string, ips: readonly string[]) =>
  world.client.patch(`${POOLS}/${pool}`, { spec: { subnet, ips } });

it.each(SEGMENTS)("$family: one pool after the other", async ({ family, pods, subnet, wider, ends: [near, far] }) => {
  const [old, wide] = [subnet, wider].map((text) => Number(text.split("/")[1]));
  const [one, two] = [`${family}-one`, `${family}-two`];
  const at = (change: string) => pods.map((name) => `${name}-${change}`) as [string, string];
  for (const pool of [one, two]) await expect.poll(() => conditionOf(pool, "Ready"), LONG).toContain("True");
  expect([await start(at("old")[0], one), await start(at("old")[1], two)]).toEqual([old, old]);
  // The younger one first: the older one's subnet is in its own from now on.
  await widen(two, wider, [`${far}20-${far}25`]);
  await expect.poll(() => start(`${at("half")[1]}-${Date.now()}`, two), LONG).toBe(wide);
  expect(await start(at("half")[0], one)).toBe(old);
  const counted = `True 1 address of the pool has another mask than /${wide}: ${near}20 (pod shop/${at("old")[1]});`;
  await expect.poll(() => conditionOf(two, "OtherMask"), LONG).toContain(counted);
  for (const pool of [one, two]) expect(await conditionOf(pool, "Ready")).toContain("True");
  await widen(one, wider, [`${near}10-${near}15`]);
  await expect.poll(() => start(`${at("new")[0]}-${Date.now()}`, one), LONG).toBe(wide);
  await expect.poll(() => conditionOf(one, "OtherMask"), LONG).toMatch(/^True [23] addresses /);
  await expect(widen(two, subnet, [])).rejects.toThrow(`want \\"${wider}\\", or a network around it`);
});
