/**
 * Demands with the pools that serve them.
 */
import type { PoolDemand } from "../../../ipam/subnet-pools.ts";
import type { Supply } from "./capacity.ts";
import type { PoolState } from "./pool-state.ts";

/** A demand, the pools that serve it in the order of its Subnets, and those Subnets that can serve it. */
export interface Wish {
  readonly demand: PoolDemand;
  readonly supplies: readonly Supply[];
  readonly pools: PoolState[];
}

/** What is there now comes before what is left of it; equal ones in the order of their names. */
export function compareDemands(a: PoolDemand, b: PoolDemand): number {
  const nameOf = ({ application, ifName, family }: PoolDemand): string =>
    [application.namespace, application.name, application.kind, ifName, family].join("/");
  return Number(b.isCurrent) - Number(a.isCurrent) || (nameOf(a) < nameOf(b) ? -1 : 1);
}

/** Into the order of the demand's Subnets. */
export function join(pools: PoolState[], state: PoolState, { subnets }: PoolDemand): PoolState {
  pools.push(state);
  const rank = ({ generated }: PoolState): number => subnets.indexOf(generated.subnet);
  pools.sort((a, b) => rank(a) - rank(b));
  return state;
}

export function sizeOfAll(pools: readonly PoolState[]): number {
  return pools.reduce((sum, { size }) => sum + size, 0);
}

export function usersOf(wishes: readonly Wish[]): Map<PoolState, Wish[]> {
  const users = new Map<PoolState, Wish[]>();
  for (const wish of wishes) for (const state of wish.pools) users.set(state, [...(users.get(state) ?? []), wish]);
  return users;
}
