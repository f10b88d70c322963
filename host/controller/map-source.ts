/** What the address map shows of a cluster: the controller's caches, whether or not this process leads. */

import { mapPoolOf } from "../web/describe-pool.ts";
import type { MapAllocation, MapSource } from "../web/map-source.ts";
import type { OpenCaches } from "./caches.ts";

type MapCaches = Pick<OpenCaches, "pools" | "reserved" | "allocations" | "problems" | "unread">;

export function openClusterMap(caches: MapCaches): MapSource {
  return {
    mode: "cluster",
    refresh: async () => {},
    pools: () =>
      [...caches.pools.items.values()].flatMap(({ value, conditions }) =>
        value === undefined ? [] : [mapPoolOf(value, conditions)],
      ),
    reserved: () =>
      [...caches.reserved.items.values()].flatMap(({ value, name }) =>
        value === undefined ? [] : [{ name, addressSpace: value.spec.addressSpace, ranges: value.spec.ranges }],
      ),
    allocations: () => allocationsOf(caches),
    problems: () => [...caches.unread.map((name) => `${name} are not listed yet`), ...caches.problems],
    subscribe: (listener) =>
      caches.allocations.subscribe((change) => {
        const allocation = change.kind === "set" ? change.value.spec : undefined;
        const about = allocation ?? change.before?.spec;
        if (about !== undefined) listener({ ip: about.ip, addressSpace: about.addressSpace, allocation });
      }),
  };
}

function* allocationsOf({ allocations }: MapCaches): Generator<MapAllocation> {
  for (const { spec } of allocations.items.values()) yield spec;
}
