/**
 * ADD in empty pools from /24 to /8.
 * Effects: agents, a control plane, plugins.
 */
import { startControlPlane } from "../../test/lab/control-plane.ts";
import { BERTH_AHEAD, openClusterBerth } from "../cluster/berth.ts";
import { sayProgress } from "../harness/progress.ts";
import { openBerth } from "../ipam/berth.ts";
import type { Place } from "../ipam/contestant.ts";
import { openHostLocal } from "../ipam/host-local.ts";
import type { PoolShape } from "../ipam/pool-shape.ts";
import { furnish } from "../peers/cluster.ts";
import { openSpiderpool, SPIDERPOOL } from "../peers/spiderpool.ts";
import { openWhereabouts, WHEREABOUTS } from "../peers/whereabouts.ts";
import { type Axis, courseOf, type Entry, measurePlaces, type Point } from "./axis.ts";

const SUBNETS = ["198.19.0.0/24", "198.18.0.0/20", "192.168.0.0/16", "172.16.0.0/12", "10.0.0.0/8"];
/** Its agent enumerates a pool's addresses for each ADD, which takes minutes and gigabytes for a /8. */
const LARGEST_OF_SPIDERPOOL = 16;

const lengthOf = (subnet: string): string => `/${subnet.split("/")[1]}`;
const shapeOf = (subnet: string): PoolShape => ({ name: lengthOf(subnet), subnet, taken: 0, cooldown: "0s" });

export async function measureSizes(place: Place, isQuick: boolean): Promise<Axis> {
  const shapes = SUBNETS.map(shapeOf);
  await using stack = new AsyncDisposableStack();
  const plane = await startControlPlane();
  stack.defer(() => plane.stop());
  await furnish(plane, []);
  const { kubeconfig } = plane;
  const entries: Entry[] = [];
  const add = (name: string, shape: PoolShape, contestant: Entry["contestant"]): void => {
    stack.defer(() => contestant.close());
    entries.push({ name, place: shape.name, contestant });
  };
  for (const [index, shape] of shapes.entries()) {
    const pool = `size-${index}`;
    await plane.client.create("/apis/ipam.vendor.io/v1/ippools", {
      ...{ apiVersion: "ipam.vendor.io/v1", kind: "IPPool", metadata: { name: pool } },
      spec: { subnet: shape.subnet, cooldown: "0s" },
    });
    add("host-local", shape, openHostLocal(shape, place));
    add("berth without a cluster", shape, await openBerth(shape, place));
    add(BERTH_AHEAD, shape, await openClusterBerth({ plane, place, node: pool, isAhead: true, pool }));
    add(WHEREABOUTS, shape, await openWhereabouts({ plane, place, kubeconfig, node: `where-${index}`, shape }));
  }
  sayProgress("pool size");
  const course = courseOf(isQuick);
  const points: Point[] = await measurePlaces(entries, course);
  for (const [index, shape] of shapes.entries()) {
    if (Number(shape.name.slice(1)) < LARGEST_OF_SPIDERPOOL) break;
    const contestant = await openSpiderpool({ plane, place, kubeconfig, node: `spider-${index}`, shape });
    points.push(...(await measurePlaces([{ name: SPIDERPOOL, place: shape.name, contestant }], course)));
    await contestant.close();
  }
  return { name: "pool size", file: "pool-size", places: shapes.map(({ name }) => name), points };
}
