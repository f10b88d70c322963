/**
 * ADD in a /12 of which more and more addresses are in use by other pods.
 * Effects: agents, control planes, plugins.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { startControlPlane } from "../../test/lab/control-plane.ts";
import { BERTH_AHEAD, openClusterBerth } from "../cluster/berth.ts";
import { sayProgress } from "../harness/progress.ts";
import { openBerth } from "../ipam/berth.ts";
import type { Place } from "../ipam/contestant.ts";
import { openHostLocal } from "../ipam/host-local.ts";
import { decodeSubnet, type PoolShape } from "../ipam/pool-shape.ts";
import { fillBerth, furnish } from "../peers/cluster.ts";
import { openSpiderpool, SPIDERPOOL } from "../peers/spiderpool.ts";
import { openWhereabouts, WHEREABOUTS } from "../peers/whereabouts.ts";
import { type Axis, courseOf, measurePlaces, type Point, SLOW } from "./axis.ts";

const COUNTS = [100, 1_000, 4_500, 20_000, 100_000];
const QUICK_COUNTS = [100, 1_000, 20_000];
/** Spiderpool's own limit is 5,000; whereabouts's object is too large for the API server some thousands later. */
const MOST_OF_PEERS = 4_500;
const SUBNET = "172.16.0.0/12";
/** The subnets of the peers, which are objects of their own, are as large. */
const PEER_SUBNETS = ["10.0.0.0/12", "10.16.0.0/12", "10.32.0.0/12"];
/** From so many on a call of a peer takes some hundred milliseconds. */
const SLOW_FROM = 1_000;
/** Until the agent knows of the records that were just written. */
const SYNC_MS = 3_000;

function shapeOf(count: number, subnet = SUBNET): PoolShape {
  return { name: `${count} in use`, subnet, taken: count / decodeSubnet(subnet).size, cooldown: "0s" };
}

const placeOf = (count: number): string => count.toLocaleString("en-US");

export async function measureAllocations(place: Place, isQuick: boolean): Promise<Axis> {
  const counts = isQuick ? QUICK_COUNTS : COUNTS;
  const points = [
    ...(await measureNodeAlone(place, counts, isQuick)),
    ...(await measureInCluster(place, counts, isQuick)),
  ];
  return { name: "addresses in use", file: "allocations", places: counts.map(placeOf), points };
}

async function measureNodeAlone(place: Place, counts: readonly number[], isQuick: boolean): Promise<Point[]> {
  const points: Point[] = [];
  for (const count of counts) {
    sayProgress(`${placeOf(count)} addresses in use`);
    const shape = shapeOf(count);
    const isSlow = count >= SLOW_FROM;
    const hostLocal = { name: "host-local", place: placeOf(count), contestant: openHostLocal(shape, place) };
    const berth = { name: "berth without a cluster", place: placeOf(count), contestant: await openBerth(shape, place) };
    const course = courseOf(isQuick);
    await using stack = new AsyncDisposableStack();
    stack.defer(() => berth.contestant.close());
    stack.defer(() => hostLocal.contestant.close());
    points.push(...(await measurePlaces(isSlow ? [berth] : [hostLocal, berth], course)));
    if (isSlow) points.push(...(await measurePlaces([hostLocal], SLOW)));
  }
  return points;
}

/** The agent of Berth runs while the pool fills. */
async function measureInCluster(place: Place, counts: readonly number[], isQuick: boolean): Promise<Point[]> {
  await using stack = new AsyncDisposableStack();
  const plane = await startControlPlane();
  stack.defer(() => plane.stop());
  await furnish(plane, [{ subnet: SUBNET }]);
  const { kubeconfig } = plane;
  const berth = await openClusterBerth({ plane, place, node: "berth", isAhead: true });
  stack.defer(() => berth.close());
  const points: Point[] = [];
  const course = courseOf(isQuick);
  let [previous, first] = [0, 0];
  for (const [index, count] of counts.entries()) {
    sayProgress(`${placeOf(count)} addresses in use in a cluster`);
    await fillBerth(plane, shapeOf(count), shapeOf(previous));
    await sleep(SYNC_MS);
    previous = count;
    points.push(
      ...(await measurePlaces([{ name: BERTH_AHEAD, place: placeOf(count), contestant: berth }], course, first)),
    );
    first += course.callsPerRound * (course.warmUpRounds + course.rounds);
    const subnet = PEER_SUBNETS[index];
    if (count > MOST_OF_PEERS || subnet === undefined) continue;
    const site = { plane, place, kubeconfig, shape: shapeOf(count, subnet) };
    const whereabouts = await openWhereabouts({ ...site, node: `where-${index}` });
    const spiderpool = await openSpiderpool({ ...site, node: `spider-${index}` });
    const entries = [
      { name: WHEREABOUTS, place: placeOf(count), contestant: whereabouts },
      { name: SPIDERPOOL, place: placeOf(count), contestant: spiderpool },
    ];
    points.push(...(await measurePlaces(entries, count >= SLOW_FROM ? SLOW : course)));
    await spiderpool.close();
  }
  return points;
}
