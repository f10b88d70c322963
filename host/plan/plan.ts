/**
 * What somebody wants of two namespaces: what has to be there, and what is theirs and may go. Everything else is left alone.
 */
import type { NftTable } from "./nft-table.ts";
import type { Veth } from "./operation.ts";
import type { AddressState, LinkSettings, NeighbourState, Place, RouteState, RuleState, SysctlKey } from "./state.ts";

/** What has to be in one namespace. */
export interface Wanted {
  /** Settings of links that are there, or made by the plan, by name. */
  readonly links: ReadonlyMap<string, LinkSettings>;
  readonly sysctls: ReadonlyMap<SysctlKey, string>;
  readonly neighbours: readonly NeighbourState[];
  readonly routes: readonly RouteState[];
  readonly rules: readonly RuleState[];
  readonly tables: readonly NftTable[];
}

/** What was observed in one namespace and belongs to the planner: it goes unless it is wanted. */
export interface Owned {
  readonly addresses: readonly AddressState[];
  readonly neighbours: readonly NeighbourState[];
  readonly routes: readonly RouteState[];
  readonly rules: readonly RuleState[];
  readonly tables: readonly NftTable[];
}

export interface Plan {
  /** `wanted`: it has to be there, with these addresses. `unwanted`: it has to go. Undefined: none is spoken of. */
  readonly veth?: { readonly pair: Veth; readonly wanted: boolean } | undefined;
  readonly wanted: Readonly<Record<Place, Wanted>>;
  readonly owned: Readonly<Record<Place, Owned>>;
}

export const EMPTY_WANTED: Wanted = {
  links: new Map(),
  sysctls: new Map(),
  neighbours: [],
  routes: [],
  rules: [],
  tables: [],
};
export const EMPTY_OWNED: Owned = { addresses: [], neighbours: [], routes: [], rules: [], tables: [] };
