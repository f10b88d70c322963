/**
 * Pools without room, and fifty agents that do not know of each other: exactly as many addresses as pods, and a /16 of which one
 * address in a hundred is free.
 */
import { expect, it } from "vitest";
import { ErrorCode } from "../../host/cni/error.ts";
import { callsPer, printTable, timesOf } from "../lab/scale/figures.ts";
import { fillPool } from "../lab/scale/fill.ts";
import { attachAll, countReasons, createPods, endPods } from "../lab/scale/scenarios.ts";
import { openWorld } from "../lab/scale/world.ts";
import { Seeded } from "../world/seeded.ts";

const NODES = 50;
const EMPTY_MS = 120_000;
const EXACT = 1_000;
const SEED = Number(process.env.SEED ?? 4711);
/** Of the 65,534 of a /16. */
const TAKEN_SHARE = 0.99;
const LATE_PODS = 150;
/** How many of their ADDs are under way: each agent has to learn by itself what is free, from one API server on this machine. */
const FEW = 10;

it("a thousand pods get the thousand addresses of a pool, and the next one is refused", async () => {
  const pools = { exact: { subnet: "10.129.0.0/16", ips: "10.129.1.0-10.129.4.231" } };
  await using world = await openWorld({ nodes: NODES, hasNetwork: false, pools });
  const { attached, refused, retries, seconds, use } = await attachAll(world, await createPods(world, EXACT));
  printTable(`${EXACT} pods at once on ${EXACT} addresses, ${NODES} agents`, [
    ["seconds", seconds.toFixed(1)],
    ["ADDs that were tried again", `${retries}`],
    ["ADD", timesOf(attached.map(({ tookMs }) => tookMs))],
    ["requests per pod", callsPer(use, EXACT)],
    ["writes checked", `${world.history.checker.writes}`],
  ]);
  expect(countReasons(refused)).toEqual({});
  const addresses = new Set(attached.flatMap(({ attachments }) => attachments.map(({ name }) => name)));
  expect(addresses.size).toBe(EXACT);
  const more = await attachAll(world, await createPods(world, 5, undefined, "more"));
  expect(more.attached).toEqual([]);
  for (const refusal of more.refused) expect(refusal).toMatchObject({ code: ErrorCode.PoolExhausted });
  await endPods(world, attached);
  await world.empty(EMPTY_MS);
  expect(world.history.checker.breaches).toEqual([]);
});

it("a /16 at 99 %", async () => {
  const subnet = "10.130.0.0/16";
  await using world = await openWorld({ nodes: NODES, hasNetwork: false, pools: { full: { subnet } } });
  const chance = new Seeded(SEED);
  const taken = await fillPool(world.plane.etcdUrl, {
    subnet,
    pool: "full",
    isTaken: () => chance.chance(TAKEN_SHARE),
  });
  await world.history.caughtUp();
  const pods = await createPods(world, LATE_PODS);
  const { attached, refused, retries, seconds, use } = await attachAll(world, pods, FEW);
  printTable(`${LATE_PODS} pods, ${FEW} at once, on a /16 with ${taken} taken, ${NODES} agents, seed ${SEED}`, [
    ["seconds", seconds.toFixed(1)],
    ["ADDs that were tried again", `${retries}`],
    ["ADD", timesOf(attached.map(({ tookMs }) => tookMs))],
    ["requests per pod", callsPer(use, LATE_PODS)],
    ["writes checked", `${world.history.checker.writes}`],
  ]);
  expect(countReasons(refused)).toEqual({});
  await endPods(world, attached);
  expect(world.history.checker.breaches).toEqual([]);
});
