/**
 * Pools that are generated for many workloads at once: how long their pods wait, what it costs the API server and the controller, and that the
 * cost of a workload depends neither on how many there are nor on how large the Subnet is. Each write to pools, Subnets and addresses is checked.
 */
import { expect, it } from "vitest";
import { inParallel } from "../lab/parallel.ts";
import { callsPer, mebibytes, printTable, type Row, requestsPer, timesOf } from "../lab/scale/figures.ts";
import { endAll, type RollOut, rollOut, scaleDown, scaleUp } from "../lab/scale/roll-outs.ts";
import { countReasons } from "../lab/scale/scenarios.ts";
import { countWrites } from "../lab/scale/server-use.ts";
import {
  areComplete,
  type Cost,
  measureCost,
  openSubnetWorld,
  type SubnetWorld,
  sizeOf,
} from "../lab/scale/subnet-world.ts";
import { percentile } from "../lab/statistics.ts";

const NODES = 20;
/** How long the end of everything may take: addresses rest 2 s, then pools go. */
const EMPTY_MS = 120_000;
/** How long pools may take to be as their workloads want them, after everything else is done. */
const FOLLOWED_MS = 30_000;
/** Pools have names, conditions, counts and usages of their own. */
const POOLS = ["ippools", "subnets", "ippoolusages"];
/** Creation, addresses, condition, counts and usage, some of them twice. More is a fault. */
const MOST_WRITES = 15;
/** In the time of the same pods with pools made by hand before. A poll of seconds, or work that grows with the square, is beyond it. */
const MOST_TIMES_BY_HAND = 3;
const MARGIN_MS = 1_000;

type Subnets = Readonly<Partial<Record<"ipv4" | "ipv6", readonly string[]>>>;

function deploymentsOf(prefix: string, count: number, replicas: number, subnets: Subnets = { ipv4: ["lan"] }) {
  const annotations = { "ipam.vendor.io/subnet": JSON.stringify(subnets) };
  return Array.from({ length: count }, (_, index) => ({ name: `${prefix}-${index}`, replicas, annotations }));
}

interface Measured extends Cost, RollOut {}

async function measure(world: SubnetWorld, work: () => Promise<RollOut>): Promise<Measured> {
  let result: RollOut | undefined;
  const cost = await measureCost(world, async () => {
    result = await work();
  });
  if (result === undefined) throw new Error("Nothing was measured");
  expect(await world.breaches()).toEqual([]);
  return { ...cost, ...result };
}

function rowsOf(measured: Measured, workloads: number): Row[] {
  const { server, agents, addMs, waitMs, refused, seconds, controllerMs, serverMs, ownMs, subnetBytes } = measured;
  return [
    ["seconds until all are attached", seconds.toFixed(1)],
    ["ADD", timesOf(addMs)],
    ["bound until attached", timesOf(waitMs)],
    ["ADDs that were refused and tried again", JSON.stringify(countReasons(refused))],
    ["requests about pools per workload", requestsPer(server, ["ippools"], workloads)],
    ["about Subnets", requestsPer(server, ["subnets"], workloads)],
    ["about usages", requestsPer(server, ["ippoolusages"], workloads)],
    ["about addresses per pod", requestsPer(server, ["ipallocations"], addMs.length)],
    ["events", requestsPer(server, ["events"], workloads)],
    ["agents' calls per pod", callsPer(agents, addMs.length)],
    ["agents' watches, per node", mebibytes(agents.watchBytes / NODES)],
    ["Subnets written", mebibytes(subnetBytes)],
    ["controller, processor time", `${controllerMs.toFixed(0)} ms, ${(controllerMs / workloads).toFixed(2)} each`],
    ["API server and etcd; all agents with the test", `${serverMs.toFixed(0)} ms; ${ownMs.toFixed(0)} ms`],
  ];
}

/** All workloads end, and with them their pools and addresses. */
async function clear(world: SubnetWorld, { all }: RollOut): Promise<number> {
  await endAll(world, all);
  const startMs = performance.now();
  await world.untilPools((pools) => pools.length === 0, EMPTY_MS);
  const tookMs = performance.now() - startMs;
  await world.empty(EMPTY_MS);
  expect(await world.breaches()).toEqual([]);
  return tookMs;
}

/** One pool for each workload, of 10.80.0.0/16, as large as a generated one. */
async function makePools(world: SubnetWorld, workloads: number, size: number): Promise<void> {
  await inParallel(Array.from({ length: workloads }), 16, async (_, index) => {
    const [first, last] = [256 + index * size, 256 + (index + 1) * size - 1];
    const ips = [first, last].map((value) => `10.80.${value >> 8}.${value & 255}`).join("-");
    await world.plane.client.create("/apis/ipam.vendor.io/v1/ippools", {
      ...{ apiVersion: "ipam.vendor.io/v1", kind: "IPPool", metadata: { name: `by-hand-${index}` } },
      spec: { subnet: "10.80.0.0/16", ips: [ips] },
    });
  });
}

/** Of those pools, one each. */
function deploymentsByHand(count: number, replicas: number) {
  return deploymentsOf("hand", count, replicas).map((spec, index) => ({
    ...spec,
    annotations: { "ipam.vendor.io/ippool": JSON.stringify({ ipv4: [`by-hand-${index}`] }) },
  }));
}

function expectLikeByHand(generated: Measured, byHand: Measured): void {
  expect(generated.seconds).toBeLessThanOrEqual(MOST_TIMES_BY_HAND * byHand.seconds + 10 * (MARGIN_MS / 1000));
  const [median, byHandMedian] = [generated, byHand].map(({ waitMs }) => percentile(waitMs, 0.5));
  expect(median).toBeLessThanOrEqual(MOST_TIMES_BY_HAND * (byHandMedian ?? 0) + MARGIN_MS);
}

it("a thousand pods of a hundred workloads, out of pools made by hand and out of one Subnet", async () => {
  const [workloads, replicas] = [100, 10];
  await using world = await openSubnetWorld({
    ...{ nodes: NODES, hasNetwork: true, pools: {} },
    subnets: { lan: { subnet: "10.64.0.0/16" } },
  });
  await makePools(world, workloads, replicas + 1);
  const byHand = await measure(world, () => rollOut(world, deploymentsByHand(workloads, replicas)));
  printTable(`${workloads} workloads with ${replicas} pods each, pools made by hand before`, rowsOf(byHand, workloads));
  await clear(world, byHand);
  const generated = await measure(world, () => rollOut(world, deploymentsOf("web", workloads, replicas)));
  const pools = await world.untilPools(areComplete, FOLLOWED_MS);
  const { status } = await world.plane.client.get("/apis/ipam.vendor.io/v1/subnets/lan");
  const reclaimedMs = await clear(world, generated);
  printTable(`${workloads} workloads with ${replicas} pods each, pools out of one Subnet`, [
    ...rowsOf(generated, workloads),
    ["status of the Subnet", `${JSON.stringify(status).length} bytes`],
    ["pools gone after the last pod", `${(reclaimedMs / 1000).toFixed(1)} s`],
  ]);
  expect(pools.map(sizeOf)).toEqual(Array(workloads).fill(replicas + 1));
  expect(generated.waitMs).toHaveLength(workloads * replicas);
  expect(countWrites(generated.server, POOLS) / workloads).toBeLessThanOrEqual(MOST_WRITES);
  expectLikeByHand(generated, byHand);
});

it("thirty workloads are scaled at once, up and down", async () => {
  const [workloads, few, many] = [30, 5, 20];
  await using world = await openSubnetWorld({
    ...{ nodes: NODES, hasNetwork: true, pools: {} },
    subnets: { lan: { subnet: "10.64.0.0/16" } },
  });
  await makePools(world, workloads, many + 1);
  const before = await rollOut(world, deploymentsByHand(workloads, few));
  const byHand = await measure(world, () => scaleUp(world, before.all, many));
  printTable(
    `${workloads} workloads from ${few} to ${many} pods each at once, pools made by hand`,
    rowsOf(byHand, workloads),
  );
  await clear(world, byHand);
  const start = await rollOut(world, deploymentsOf("web", workloads, few));
  const haveEach = (size: number) => (pools: Parameters<typeof areComplete>[0]) =>
    pools.length === workloads && areComplete(pools) && pools.every((pool) => sizeOf(pool) === size);
  await world.untilPools(haveEach(few + 1), FOLLOWED_MS);
  const up = await measure(world, () => scaleUp(world, start.all, many));
  await world.untilPools(haveEach(many + 1), FOLLOWED_MS);
  printTable(`${workloads} workloads from ${few} to ${many} pods each at once`, rowsOf(up, workloads));
  expect(countWrites(up.server, POOLS) / workloads).toBeLessThanOrEqual(MOST_WRITES);
  expectLikeByHand(up, byHand);
  let all = up.all;
  const down = await measureCost(world, async () => {
    all = await scaleDown(world, up.all, few);
    await world.untilPools(haveEach(few + 1), EMPTY_MS);
  });
  printTable(`${workloads} workloads from ${many} to ${few} pods each at once`, [
    ["seconds until all pools are small", down.seconds.toFixed(1)],
    ["requests about pools per workload", requestsPer(down.server, POOLS, workloads)],
    ["controller, processor time", `${down.controllerMs.toFixed(0)} ms`],
  ]);
  expect(countWrites(down.server, POOLS) / workloads).toBeLessThanOrEqual(2 * MOST_WRITES);
  await clear(world, { ...up, all });
});

it("a workload costs the same among 100, 200 and 400", async () => {
  await using world = await openSubnetWorld({
    ...{ nodes: NODES, hasNetwork: true, pools: {} },
    subnets: { lan: { subnet: "10.64.0.0/16" } },
  });
  await clear(world, await rollOut(world, deploymentsOf("warm", 60, 2)));
  const rows: Row[] = [];
  const each: { readonly writes: number; readonly controllerMs: number }[] = [];
  for (const workloads of [100, 200, 400]) {
    const measured = await measure(world, () => rollOut(world, deploymentsOf(`web${workloads}`, workloads, 2)));
    const pools = await world.untilPools(areComplete, FOLLOWED_MS);
    expect(pools).toHaveLength(workloads);
    const writes = countWrites(measured.server, POOLS) / workloads;
    const controllerMs = measured.controllerMs / workloads;
    each.push({ writes, controllerMs });
    rows.push(
      [`${workloads}: writes of pools, Subnets, usages`, `${writes.toFixed(2)} per workload`],
      [`${workloads}: of which`, requestsPer(measured.server, ["ippools", "subnets"], workloads)],
      [`${workloads}: Subnets written`, `${(measured.subnetBytes / workloads).toFixed(0)} bytes per workload`],
      [`${workloads}: controller, processor time`, `${controllerMs.toFixed(2)} ms per workload`],
      [`${workloads}: bound until attached`, timesOf(measured.waitMs)],
      [`${workloads}: seconds`, measured.seconds.toFixed(1)],
    );
    await clear(world, measured);
  }
  printTable("Workloads of two pods each, out of one Subnet", rows);
  const [few, , many] = each;
  if (few === undefined || many === undefined) throw new Error("Three were measured");
  // Four times as many: what grows with the square would be four times as dear.
  expect(many.writes / few.writes).toBeLessThanOrEqual(1.5);
  expect(many.controllerMs / few.controllerMs).toBeLessThanOrEqual(2.5);
});

it("a /8 and an IPv6 /64 cost no more than a /22", async () => {
  const [workloads, replicas] = [50, 4];
  const subnets = { "ipv4-22": "10.64.0.0/22", "ipv4-8": "11.0.0.0/8", "ipv6-64": "fd00:64::/64" };
  await using world = await openSubnetWorld({
    ...{ nodes: NODES, hasNetwork: true, pools: {} },
    subnets: Object.fromEntries(Object.entries(subnets).map(([name, subnet]) => [name, { subnet }])),
    settings: { enableIPv6: true, allowSingleFamily: true },
  });
  const run = (name: string, prefix: string) =>
    rollOut(world, deploymentsOf(prefix, workloads, replicas, { [name.startsWith("ipv6") ? "ipv6" : "ipv4"]: [name] }));
  for (const name of Object.keys(subnets)) await clear(world, await run(name, `warm-${name}`));
  const rows: Row[] = [];
  const figures = new Map<
    string,
    { readonly writes: number; readonly controllerMs: number; readonly medianMs: number }
  >();
  for (const name of Object.keys(subnets)) {
    const measured = await measure(world, () => run(name, name));
    const writes = countWrites(measured.server, POOLS) / workloads;
    const { controllerMs, waitMs, seconds } = measured;
    figures.set(name, { writes, controllerMs, medianMs: percentile(waitMs, 0.5) });
    rows.push(
      [`${name}: writes of pools, Subnets, usages`, `${writes.toFixed(2)} per workload`],
      [`${name}: controller, processor time`, `${(controllerMs / workloads).toFixed(2)} ms per workload`],
      [`${name}: bound until attached`, timesOf(waitMs)],
      [`${name}: seconds`, seconds.toFixed(1)],
    );
    await clear(world, measured);
  }
  printTable(`${workloads} workloads of ${replicas} pods each, out of Subnets of several sizes`, rows);
  const small = figures.get("ipv4-22");
  if (small === undefined) throw new Error("It was measured");
  for (const [name, large] of figures) {
    expect(large.writes, name).toBeLessThanOrEqual(1.5 * small.writes);
    expect(large.controllerMs, name).toBeLessThanOrEqual(2 * small.controllerMs + 200);
    expect(large.medianMs, name).toBeLessThanOrEqual(2 * small.medianMs + 200);
  }
});
