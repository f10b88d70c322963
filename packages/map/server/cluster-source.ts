/** The address map's source in a cluster: the controller's caches, whether or not this process leads. */

import type { OpenCaches } from "../../../host/controller/caches.ts";
import { segmentsOf } from "../../../host/resources/check-pools.ts";
import { unionOfRouters } from "../../../host/resources/ip-pool-shape.ts";
import { findExceptions } from "../../../host/resources/locate-address.ts";
import { NONE_OCCUPIED } from "../../../host/resources/occupied-ips.ts";
import { mapPoolOf } from "./describe-pool.ts";
import type { MapAllocation, MapPool, MapSource } from "./map-source.ts";

type MapCaches = Pick<OpenCaches, "pools" | "reserved" | "allocations" | "namespaces" | "problems" | "unread">;

export function openClusterMap(caches: MapCaches): MapSource {
  return {
    mode: "cluster",
    refresh: async () => {},
    pools: () => poolsOf(caches),
    reserved: () =>
      [...caches.reserved.items.values()].flatMap(({ value, name }) =>
        value === undefined ? [] : [{ name, addressSpace: value.spec.addressSpace, ranges: value.spec.ranges }],
      ),
    allocations: () => allocationsOf(caches),
    namespaceSince: (name) => caches.namespaces.items.get(name)?.createdAt,
    problems: () => [...caches.unread.map((name) => `${name} are not listed yet`), ...caches.problems],
    subscribe: (listener) =>
      caches.allocations.subscribe((change) => {
        const allocation = change.kind === "set" ? change.value.spec : undefined;
        const about = allocation ?? change.before?.spec;
        if (about !== undefined) listener({ ip: about.ip, addressSpace: about.addressSpace, allocation });
      }),
  };
}

function poolsOf({ pools, reserved }: MapCaches): MapPool[] {
  const known = [...pools.items.values()].flatMap(({ value }) => value ?? []);
  const kept = [...reserved.items.values()].flatMap(({ value }) => value ?? []);
  return segmentsOf(known).flatMap((siblings) => {
    const routers = unionOfRouters(siblings);
    return siblings.map((pool) => {
      const { conditions = [] } = pools.items.get(pool.name) ?? {};
      return mapPoolOf(
        pool,
        conditions,
        findExceptions(pool, routers, { reserved: kept, occupied: NONE_OCCUPIED, siblings }),
      );
    });
  });
}

function* allocationsOf({ allocations }: MapCaches): Generator<MapAllocation> {
  for (const { spec } of allocations.items.values()) yield spec;
}
