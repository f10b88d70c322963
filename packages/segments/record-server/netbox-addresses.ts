/**
 * The peculiarities of NetBox's addresses, from its documentation: NetBox cannot be installed from a package, so that
 * none of these calls was made to a real one.
 *
 *   - A VRF separates equal addresses; `vrf` null is the global table, which a query names `vrf_id=null`. An address
 *     needs no prefix around it.
 *   - Only a VRF with "enforce unique space", and the global table with ENFORCE_GLOBAL_UNIQUE, refuse a second entry of
 *     a host. So the entries at an address are asked for before one is created.
 *   - Statuses are constants. Tags must exist, and are found by their slug.
 *   - A list in place of an object creates, changes or deletes all or none. Only from 4.7 on a refusal (400) says of
 *     which entries.
 */
import type { Dialect } from "./rest-addresses.ts";

export const NETBOX: Dialect = {
  product: "NetBox",
  tagPath: "/api/extras/tags/",
  inSpace: (_space, id) => ({ vrf_id: id ?? "null" }),
  tagged: ({ slug }) => ({ tag: slug }),
  spacePath: (space) => (space === "" ? undefined : "/api/ipam/vrfs/"),
  created: (space, tag) => ({ vrf: space === "" ? null : { name: space }, status: "active", tags: [{ name: tag }] }),
};
