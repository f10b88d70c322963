/**
 * Fifty agents on one real API server: how quickly they claim beside what the server can do at all, and how dear it is.
 * Claims take turns with bare creates of the same objects through the same connections. The server and etcd have a part of a processor, and the agents
 * together as much of the rest as they need, as agents of a cluster are on other machines.
 */
import { expect, it } from "vitest";
import { callsPer, mebibytes, printTable, timesOf } from "../lab/scale/figures.ts";
import type { SimPod } from "../lab/scale/pods.ts";
import { setApart } from "../lab/scale/processors.ts";
import { createPods, endPods, measureClaims } from "../lab/scale/scenarios.ts";
import { openWorld, type World } from "../lab/scale/world.ts";

const NODES = 50;
const PODS = 5_000;
const AT_ONCE = 64;
const EMPTY_MS = 60_000;
/** The history's marks are writes of etcd, which bare creates have none of: few of them, or the measuring is measured. */
const MARK_EVERY_MS = 250;
/** Of the rate of bare creates (design, targets). */
const WANTED_SHARE = 0.8;
/** What a bare create costs the server, of what a claim costs it. Less is a fault: agents on machines of their own would miss the target. */
const LEAST_SERVER_SHARE = 0.75;
/** Agents ask for lists when they miss; below 90 % fill that is one in a thousand claims at most. */
const MAX_LISTS = PODS / 1_000;

async function measure(world: World, pods: readonly SimPod[]) {
  await using _ = await setApart(world.plane);
  return await measureClaims(world, pods, { batch: 250, atOnce: AT_ONCE });
}

it("fifty agents claim, beside what the API server can do at all", async () => {
  await using world = await openWorld({
    nodes: NODES,
    hasNetwork: false,
    markEveryMs: MARK_EVERY_MS,
    pools: { wide: { subnet: "10.128.0.0/16" } },
  });
  const pods = await createPods(world, PODS);
  const rate = await measure(world, pods);
  const share = rate.claimsPerSecond / rate.barePerSecond;
  const serverShare = rate.serverMs.bare / rate.serverMs.claim;
  const before = world.use();
  const delMs = await endPods(world, rate.attached);
  await world.empty(EMPTY_MS);
  const after = world.use();
  const perAgent = (bytes: number): string => mebibytes(bytes / NODES);
  printTable(`${PODS} claims of ${NODES} agents, ${AT_ONCE} at once, nothing claimed ahead`, [
    ["claims per second", rate.claimsPerSecond.toFixed(0)],
    ["bare creates per second", rate.barePerSecond.toFixed(0)],
    ["share", `${(share * 100).toFixed(1)} %, target ${WANTED_SHARE * 100} %`],
    ["share that the server's time allows", `${(serverShare * 100).toFixed(1)} %`],
    ["server's processor time per claim", `${rate.serverMs.claim.toFixed(2)} ms`],
    ["server's processor time per bare create", `${rate.serverMs.bare.toFixed(2)} ms`],
    ["agents' processor time per claim, with the test's", `${rate.ownMs.claim.toFixed(2)} ms`],
    ["the client's per bare create, with the test's", `${rate.ownMs.bare.toFixed(2)} ms`],
    ["ADD", timesOf(rate.addMs)],
    ["one bare create", timesOf(rate.bareMs)],
    ["DEL", timesOf(delMs)],
    ["requests per ADD", callsPer(rate.use, PODS)],
    ["watch bytes per agent for 100 ADDs", perAgent(rate.use.watchBytes)],
    ["watch bytes per agent for 100 DELs", perAgent(after.watchBytes - before.watchBytes)],
    ["writes checked", `${world.history.checker.writes}`],
  ]);
  expect(world.history.checker.breaches).toEqual([]);
  expect(rate.use.calls.get("GET ipallocations (list)") ?? 0).toBeLessThanOrEqual(MAX_LISTS);
  expect(share).toBeGreaterThanOrEqual(WANTED_SHARE);
  expect(serverShare).toBeGreaterThanOrEqual(LEAST_SERVER_SHARE);
});
