/**
 * ADD from one pool while there are more and more others.
 * Effects: agents, a control plane, plugins.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type ControlPlane, startControlPlane } from "../../test/lab/control-plane.ts";
import { inParallel } from "../../test/lab/parallel.ts";
import { BERTH_AHEAD, openClusterBerth } from "../cluster/berth.ts";
import { sayProgress } from "../harness/progress.ts";
import { openManyPools } from "../ipam/agent.ts";
import type { Place } from "../ipam/contestant.ts";
import { emptyC24 } from "../ipam/pool-shape.ts";
import { furnish } from "../peers/cluster.ts";
import { openSpiderpool, SPIDERPOOL } from "../peers/spiderpool.ts";
import { openWhereabouts, WHEREABOUTS } from "../peers/whereabouts.ts";
import { type Axis, courseOf, type Entry, measurePlaces, type Point } from "./axis.ts";

const COUNTS = [1, 10, 100, 1_000, 5_000];
const QUICK_COUNTS = [1, 100, 1_000];
/** Objects that are created side by side. */
const AT_ONCE = 16;
/** Until the daemons know of the pools that were just created: so long, and so much for each. */
const SYNC_MS = 3_000;
const SYNC_POOL_MS = 1;

const placeOf = (count: number): string => count.toLocaleString("en-US");

export async function measurePools(place: Place, isQuick: boolean): Promise<Axis> {
  const counts = isQuick ? QUICK_COUNTS : COUNTS;
  const points = [
    ...(await measureNodeAlone(place, counts, isQuick)),
    ...(await measureInCluster(place, counts, isQuick)),
  ];
  return { name: "number of pools", file: "pools", places: counts.map(placeOf), points };
}

async function measureNodeAlone(place: Place, counts: readonly number[], isQuick: boolean): Promise<Point[]> {
  const points: Point[] = [];
  for (const count of counts) {
    sayProgress(`${placeOf(count)} pools`);
    const contestant = await openManyPools(place, count);
    const entry = { name: "berth without a cluster", place: placeOf(count), contestant };
    points.push(...(await measurePlaces([entry], courseOf(isQuick))));
    await contestant.close();
  }
  return points;
}

/** The daemons run while pools are created. */
async function measureInCluster(place: Place, counts: readonly number[], isQuick: boolean): Promise<Point[]> {
  await using stack = new AsyncDisposableStack();
  const plane = await startControlPlane();
  stack.defer(() => plane.stop());
  await furnish(plane, [{ subnet: emptyC24.subnet }]);
  const site = { plane, place, kubeconfig: plane.kubeconfig, shape: emptyC24 };
  const berth = await openClusterBerth({ plane, place, node: "berth", isAhead: true });
  stack.defer(() => berth.close());
  const spiderpool = await openSpiderpool({ ...site, node: "spider" });
  stack.defer(() => spiderpool.close());
  const contestants = [
    { name: BERTH_AHEAD, contestant: berth },
    { name: WHEREABOUTS, contestant: await openWhereabouts({ ...site, node: "where" }) },
    { name: SPIDERPOOL, contestant: spiderpool },
  ];
  const points: Point[] = [];
  const course = courseOf(isQuick);
  let [previous, first] = [1, 0];
  for (const count of counts) {
    sayProgress(`${placeOf(count)} pools in a cluster`);
    await createPools(plane, previous, count);
    previous = count;
    await sleep(SYNC_MS + SYNC_POOL_MS * count);
    const entries = contestants.map((each): Entry => ({ ...each, place: placeOf(count) }));
    points.push(...(await measurePlaces(entries, course, first)));
    first += course.callsPerRound * (course.warmUpRounds + course.rounds);
  }
  return points;
}

/** Pools of a /24 with the numbers from `from` to below `to`, of each IPAM. */
async function createPools({ client }: ControlPlane, from: number, to: number): Promise<void> {
  const numbers = Array.from({ length: to - from }, (_, index) => from + index);
  await inParallel(numbers, AT_ONCE, async (number) => {
    const network = `10.${100 + (number >> 8)}.${number & 255}`;
    const metadata = { name: `other-${number}` };
    await client.create("/apis/ipam.vendor.io/v1/ippools", {
      ...{ apiVersion: "ipam.vendor.io/v1", kind: "IPPool", metadata },
      spec: { subnet: `${network}.0/24`, cooldown: "0s" },
    });
    await client.create("/apis/spiderpool.spidernet.io/v2beta1/spiderippools", {
      ...{ apiVersion: "spiderpool.spidernet.io/v2beta1", kind: "SpiderIPPool", metadata },
      spec: {
        ...{ ipVersion: 4, subnet: `${network}.0/24`, ips: [`${network}.2-${network}.254`] },
        ...{ default: false, disable: false },
      },
    });
    await client.create("/apis/whereabouts.cni.cncf.io/v1alpha1/namespaces/kube-system/ippools", {
      ...{ apiVersion: "whereabouts.cni.cncf.io/v1alpha1", kind: "IPPool" },
      ...{ metadata: { name: `${network}.0-24`, namespace: "kube-system" } },
      spec: { range: `${network}.0/24`, allocations: {} },
    });
  });
}
