/**
 * The peculiarities of Nautobot's addresses. Seen on Nautobot 3.2.7, the tests' (test/lab/nautobot.ts):
 *
 *   - An address belongs to the smallest prefix of its namespace around it, its parent, which must be there; the server
 *     finds it by `namespace`. Parent and host are unique, and so, in effect, namespace and host.
 *   - `status` is needed; "Active" is there from the start, unless it was removed. Tags must exist. Both are named by
 *     `{"name": …}`.
 *   - A list in place of an object creates, changes or deletes all or none. A refused POST (400) has an entry for each,
 *     in order; a refused PATCH has only the first wrong one, and does not say which. Unknown ids of PATCH and DELETE
 *     are ignored. Two equal hosts in one POST are answered with 500. The only limit is the time that a proxy or uWSGI
 *     (`http-timeout`, `harakiri`) allows.
 *   - A host cannot be changed. DNS names become lower case. A wrong token is answered with 403.
 *   - Answers name tags and parents by `id` alone (`depth=0`). Pages have 1,000 entries at most (MAX_PAGE_SIZE).
 *   - `available-prefixes` answers 204 when there is no room. `available-ips` is not used: it chooses the address.
 *   - Custom fields need a definition on the server, so that Berth writes into the description instead.
 */
import type { Dialect } from "./rest-addresses.ts";

export const NAUTOBOT: Dialect = {
  product: "Nautobot",
  tagPath: "/api/extras/tags/",
  inSpace: (space) => ({ namespace: space }),
  tagged: ({ id }) => ({ tags: id }),
  spacePath: () => "/api/ipam/namespaces/",
  created: (space, tag) => ({ namespace: { name: space }, status: { name: "Active" }, tags: [{ name: tag }] }),
};
