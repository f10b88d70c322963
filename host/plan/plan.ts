/**
 * The desired state of two namespaces: the objects that must exist, and the existing objects that Berth owns and may
 * delete. All others are left alone.
 */
import type { Veth } from "./operation.ts";
import type { LinkSettings, NamespaceState, Place, SysctlKey } from "./state.ts";

export interface Wanted extends Owned {
  /** Settings by name of links that exist or that the plan creates. */
  readonly links: ReadonlyMap<string, LinkSettings>;
  readonly sysctls: ReadonlyMap<SysctlKey, string>;
}

/** Observed objects of one namespace that belong to the planner: they are deleted unless they are wanted. */
export type Owned = Pick<NamespaceState, "addresses" | "neighbours" | "routes" | "rules" | "tables">;

export interface Plan {
  /** Whether the pair has to exist or to be deleted; undefined leaves it alone. */
  readonly veth?: { readonly pair: Veth; readonly wanted: boolean } | undefined;
  readonly wanted: Readonly<Record<Place, Wanted>>;
  readonly owned: Readonly<Record<Place, Owned>>;
}

export const EMPTY_OWNED: Owned = { addresses: [], neighbours: [], routes: [], rules: [], tables: [] };
export const EMPTY_WANTED: Wanted = { ...EMPTY_OWNED, links: new Map(), sysctls: new Map() };
/** A planner's part of a plan without anything. */
export const EMPTY_PART = { wanted: EMPTY_WANTED, owned: EMPTY_OWNED, warnings: [] };
