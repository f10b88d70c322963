/**
 * The part of the address map that a viewer may see: all, or the addresses of some namespaces; of all others only
 * that they are in use.
 */
import { MAP_STATES, type MapState } from "./map-records.ts";
import type { MapAllocation, MapPool } from "./map-source.ts";

/** "all", or the namespaces whose pods the viewer may list. */
export type Viewer = "all" | ReadonlySet<string>;

/**
 * Returns whether the viewer may know whose address this is. An address with holders in two namespaces needs the
 * right to both.
 */
export function seesAllocation(viewer: Viewer, { holders, workload, quarantine }: MapAllocation): boolean {
  if (viewer === "all") return true;
  const namespaces = holders.map(({ namespace }) => namespace);
  if (workload !== undefined) namespaces.push(workload.namespace);
  if (quarantine?.holder !== undefined) namespaces.push(quarantine.holder.namespace);
  return namespaces.length > 0 && namespaces.every((namespace) => viewer.has(namespace));
}

/** A generated pool's name and conditions tell of its workload. */
export function seesPool(viewer: Viewer, { generated }: MapPool): boolean {
  return viewer === "all" || generated === undefined || viewer.has(generated.namespace);
}

export function stateFor(viewer: Viewer, allocation: MapAllocation): MapState {
  return seesAllocation(viewer, allocation) ? allocation.state : "InUse";
}

/** Returns the number of the state in a change; 0: free. */
export function stateNumber(state: MapState | undefined): number {
  return state === undefined ? 0 : MAP_STATES.indexOf(state) + 1;
}
