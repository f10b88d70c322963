/**
 * What the usage object of a pool spares: agents that know nothing of a /16 of which one address in a hundred is free, first without the
 * controller's part that counts, then with it. The same pods, one API server.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { startUsage } from "../../host/controller/usage/usage-controller.ts";
import { startParts } from "../lab/cluster/controller.ts";
import { sumUse } from "../lab/cluster/watched-api.ts";
import { callsPer, printTable, timesOf } from "../lab/scale/figures.ts";
import { fillPool } from "../lab/scale/fill.ts";
import { openFleet } from "../lab/scale/fleet.ts";
import { type Attached, attachAll, countReasons, createPods } from "../lab/scale/scenarios.ts";
import { openWorld } from "../lab/scale/world.ts";
import { Seeded } from "../world/seeded.ts";

const NODES = Number(process.env.NODES ?? 20);
const PODS = Number(process.env.PODS ?? 100);
const AT_ONCE = Number(process.env.AT_ONCE ?? 5);
const SEED = Number(process.env.SEED ?? 4711);
const SUBNET = "10.130.0.0/16";
const COUNTED_MS = 120_000;

function print(title: string, { attached, retries, seconds, use }: Attached): void {
  printTable(`${PODS} pods, ${AT_ONCE} at once, on a /16 at 99 %, ${NODES} agents, ${title}`, [
    ["seconds", seconds.toFixed(1)],
    ["ADDs that were tried again", `${retries}`],
    ["ADD", timesOf(attached.map(({ tookMs }) => tookMs))],
    ["requests per pod", callsPer(use, PODS)],
  ]);
}

it("a /16 at 99 %, without and with usage objects", async () => {
  await using world = await openWorld({ nodes: NODES, hasNetwork: false, pools: { full: { subnet: SUBNET } } });
  const chance = new Seeded(SEED);
  const isTaken = (): boolean => chance.chance(0.99);
  await fillPool(world.plane.etcdUrl, { subnet: SUBNET, pool: "full", isTaken });
  await world.history.caughtUp();
  const before = await attachAll(world, await createPods(world, PODS, undefined, "bare"), AT_ONCE);
  print("without usage objects", before);
  expect(countReasons(before.refused)).toEqual({});

  const controller = await startParts(world.plane.kubeconfig, { usage: startUsage }, { readyMs: COUNTED_MS });
  try {
    const deadline = performance.now() + COUNTED_MS;
    const path = "/apis/ipam.vendor.io/v1/ippoolusages/full";
    for (;;) {
      const object = await world.plane.client.get(path).catch(() => undefined);
      if (object?.status?.bitmap !== undefined) break;
      if (performance.now() > deadline) throw new Error(`No usage object after ${COUNTED_MS} ms`);
      await sleep(100);
    }
    await using fleet = await openFleet({ plane: world.plane, nodes: NODES, hasNetwork: false, prefix: "m" });
    const counted = { ...world, nodes: fleet.nodes, use: () => sumUse(fleet.nodes.map(({ api }) => api.use)) };
    const after = await attachAll(counted, await createPods(counted, PODS, undefined, "counted"), AT_ONCE);
    print("the controller counts", after);
    expect(countReasons(after.refused)).toEqual({});
    await world.history.caughtUp();
    expect(world.history.checker.breaches).toEqual([]);
    const lists = (use: Attached["use"]): number => use.calls.get("GET ipallocations (list)") ?? 0;
    expect(lists(after.use)).toBeLessThan(lists(before.use));
  } finally {
    await controller.close();
  }
});
