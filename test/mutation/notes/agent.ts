/** Survivors in what the agent decides: IPAM, the registry, recovery, collection, `berthctl check`. */
import type { Note } from "../notes.ts";

export const AGENT_NOTES: readonly Note[] = [
  {
    file: "host/ipam/selection.ts",
    text: "known !== undefined",
    to: "false",
    note: "equivalent but for time: the pools that match are evaluated again",
  },
  {
    file: "host/ipam/selection.ts",
    text: "matches.set(key, found);",
    note: "equivalent but for time: the pools that match are evaluated again",
  },
  {
    file: "host/ipam/selection.ts",
    text: "matched.set(key, known);",
    note: "equivalent but for time: a pool that two patterns match is evaluated twice",
  },
  {
    file: "host/agent/ipam/sources/find-retained.ts",
    text: "isFresh(a) && isFresh(b)",
    to: "isFresh(a) || isFresh(b)",
    note: "equivalent: if only one is fresh, the order is known before",
  },
  {
    file: "host/agent/ipam/sources/find-retained.ts",
    text: "createdAt !== undefined",
    to: "true",
    note: "equivalent: undefined is smaller than no text; for the compiler",
  },
  {
    file: "host/agent/gc/plan-reconciliation.ts",
    text: 'state !== "Cooling"',
    to: "false",
    note: "equivalent: a pod's row that is not Bound cools; one in quarantine has no owner",
  },
  {
    file: "host/agent/ipam/sources/find-retained.ts",
    text: 'earlier.state !== "Bound" || createdAt',
    to: "&&",
    note: "equivalent: compared with undefined nothing is earlier; for the compiler",
  },
  {
    file: "host/agent/ipam/sources/find-retained.ts",
    text: "createdAt === undefined",
    to: "false",
    note: "equivalent: compared with undefined nothing is earlier; for the compiler",
  },
  {
    file: "host/agent/ipam/sources/find-retained.ts",
    text: "earlier.version < kept.version",
    to: "true",
    note: "equivalent: what was written before is behind what is retained by its version, too",
  },
  {
    file: "host/agent/ipam/sources/find-retained.ts",
    text: "earlier.version < kept.version",
    note: "equivalent: two objects have two versions",
  },
  {
    file: "host/agent/ipam/sources/retained.ts",
    text: "this.#found?.some",
    to: "this.#found.some",
    note: "equivalent: what is found has been looked up by then; for the compiler",
  },
  {
    file: "host/registry/kubernetes/known-object.ts",
    text: "[]",
    note: "equivalent: one of none is not fewer than all",
  },
  {
    file: "host/registry/kubernetes/known-object.ts",
    text: "object.sharers?.length",
    note: "equivalent: others are only among several; for the compiler",
  },
  {
    file: "host/ipam/leak.ts",
    text: "observedAtMs !== undefined",
    note: "equivalent: the difference to undefined is NaN, which is no reason to collect; for the compiler",
  },
  {
    file: "host/ipam/pick.ts",
    text: "counts.total - counts.free",
    note: "equivalent: a pool that falls short has no free address",
  },
  {
    file: "host/ipam/filters.ts",
    text: "name !== undefined",
    note: "equivalent: no pool names the namespace undefined; for the compiler",
  },
  { file: "host/ipam/filters.ts", text: "[]", note: "equivalent: the text that stands in for a network has no name" },
  {
    file: "host/ipam/retention.ts",
    text: "[]",
    note: "equivalent: the text that stands in for a network has no claim",
  },
  { file: "host/ipam/selection.ts", text: "pod?.", note: "equivalent: without a pod there is no annotation to follow" },
  { file: "host/ipam/selection.ts", text: "a.name < b.name", note: "equivalent: names of pools are unique" },
  {
    file: "host/ipam/selection.ts",
    text: "before !== undefined",
    note: "equivalent but for time: the names are sorted again",
  },
  {
    file: "host/registry/kubernetes/decide.ts",
    text: 'object.state === "Bound"',
    note: "equivalent: an object in another state has no holders",
  },
  {
    file: "host/registry/kubernetes/address-states.ts",
    text: 'object.kind === "known"',
    note: "equivalent: in another kind there is no object",
  },
  {
    file: "host/registry/kubernetes/address-states.ts",
    text: 'object.kind !== "known"',
    note: "equivalent: in another kind there is no object",
  },
  {
    file: "host/registry/kubernetes/address-states.ts",
    text: 'object !== "absent"',
    note: "equivalent: what is absent has no node; for the compiler",
  },
  {
    file: "host/registry/kubernetes/address-states.ts",
    text: "state.pending !== pending",
    note: "equivalent but for time: an equal state is written",
  },
  {
    file: "host/registry/kubernetes/address-states.ts",
    text: "isInitial(state)",
    note: "equivalent but for memory: an initial state is kept",
  },
  {
    file: "host/registry/kubernetes/address-states.ts",
    text: 'object.kind !== "unknown" || object.isProber',
    note: "equivalent but for memory: an initial state is kept",
  },
  {
    file: "host/registry/kubernetes/address-states.ts",
    text: "formerOwners.size === 0 && !isUnanswered",
    note: "equivalent but for memory: an initial state is kept",
  },
  {
    file: "host/registry/kubernetes/address-states.ts",
    text: 'object.kind === "unknown"',
    note: "equivalent: what is unknown has no version",
  },
  {
    file: "host/registry/kubernetes/decide.ts",
    text: 'typeof object === "object"',
    note: "equivalent: what is absent has no version; for the compiler",
  },
  {
    file: "host/agent/cluster/adoption/plan-adoption.ts",
    text: "place?.pool",
    note: "equivalent: only addresses of a pool's subnet are adopted; for the compiler",
  },
  {
    file: "host/agent/cluster/adoption/plan-adoption.ts",
    text: "pool === undefined",
    note: "equivalent: only addresses of a pool's subnet are adopted; for the compiler",
  },
  {
    file: "host/agent/embedded/recovery/plan-recovery.ts",
    text: "position === undefined",
    note: "equivalent: no interface has the position undefined; for the compiler",
  },
  {
    file: "host/agent/embedded/recovery/plan-recovery.ts",
    text: "pool === undefined",
    note: "equivalent: each address space of a group has a pool; for the compiler",
  },
  {
    file: "host/agent/embedded/recovery/plan-recovery.ts",
    text: "[]",
    note: "not reached: each address space of a group has a pool",
  },
  {
    file: "host/agent/ipam/sources/cooling.ts",
    text: "waitMs > 0",
    note: "equivalent: a wait of no length",
  },
  {
    file: "host/agent/ipam/sources/requested.ts",
    text: "request === undefined",
    note: "equivalent: what is assigned as requested is one of the requested addresses; for the compiler",
  },
  {
    file: "host/agent/ipam/sources/retained.ts",
    text: "[]",
    note: "equivalent: the text that stands in for an address is no NIC's",
  },
  {
    file: "host/agent/ipam/sources/find-retained.ts",
    text: "[]",
    note: "equivalent: the text that stands in for an address is no NIC's",
  },
  {
    file: "host/agent/ipam/sources/retained.ts",
    text: "cluster?.settleSuperseded",
    note: "equivalent: without other nodes nothing is superseded; for the compiler",
  },
  {
    file: "host/agent/ipam/sources/retained.ts",
    text: "cluster?.releaseRetained",
    note: "equivalent: without other nodes nothing is retained; for the compiler",
  },
  {
    file: "host/agent/ipam/sources/retained.ts",
    text: "cluster?.evictPredecessor",
    note: "equivalent: without other nodes no record names a member; for the compiler",
  },
  {
    file: "host/agent/ipam/sources/find-retained.ts",
    text: "workload?.member",
    note: "equivalent: what is retained names its member; for the compiler",
  },
  {
    file: "host/agent/ipam/sources/find-retained.ts",
    text: "had.some(",
    to: "had.every(",
    note: "equivalent: of a pod without a record for the NIC the claim has created what it has, which gives way in either case",
  },
  {
    file: "host/agent/ipam/sources/find-retained.ts",
    text: "each.version > kept.version",
    note: "equivalent: two objects have two versions",
  },
  {
    file: "host/agent/ipam/sources/retained.ts",
    text: "retained.length === 0",
    note: "equivalent but for time: the pod's rows are read, and nothing is released",
  },
  {
    file: "host/agent/ipam/sources/take-overs.ts",
    text: "[]",
    note: "equivalent: no take-over has a text as its version",
  },
  {
    file: "host/cli/check/plan-release.ts",
    text: "ageMinutes > 0",
    note: "equivalent: a report of this moment is not refused",
  },
  {
    file: "host/ipam/announced-nics.ts",
    text: "[]",
    note: "equivalent: the text that stands in for an entry names no NIC",
  },
  {
    file: "host/ipam/plan-prefetch.ts",
    text: "hash !== undefined",
    note: "equivalent: undefined is no static pod's hash; for the compiler",
  },
  {
    file: "host/ipam/subnet-capacity.ts",
    text: "generated?.request",
    note: "equivalent: only asked about a demand that names Subnets; for the compiler",
  },
  {
    file: "host/ipam/subnet-pools.ts",
    text: "spec.generated?.subnet",
    note: "equivalent: only generated pools are sorted; for the compiler",
  },
  {
    file: "host/ipam/subnet-pools.ts",
    text: "a.name < b.name",
    note: "equivalent: names of pools are unique",
  },
  {
    file: "host/registry/kubernetes/known-object.ts",
    text: "quarantine?.holder",
    note: "equivalent: what is lost has a quarantine; for the compiler",
  },
  {
    file: "host/agent/detection/answered-attachments.ts",
    text: "[]",
    note: "equivalent: the text that stands in for an address is no NIC's",
  },
  {
    file: "host/agent/gc/notice-term.ts",
    text: "metadata.annotations?.",
    note: "equivalent: an error is no answer either",
  },
  {
    file: "host/resources/checked-pools.ts",
    text: "contested.delete(each)",
    note: "equivalent but for time: the pools of related networks are decided once for each of them",
  },
  {
    file: "host/resources/checked-pools.ts",
    text: "a.name < b.name",
    note: "equivalent: names of pools are unique",
  },
  {
    file: "host/resources/checked-pools.ts",
    text: "table?.",
    note: "equivalent: the network of a known pool is known; for the compiler",
  },
  {
    file: "host/resources/checked-pools.ts",
    text: "network === undefined",
    note: "equivalent: the network of a known pool is known; for the compiler",
  },
  {
    file: "host/resources/checked-pools.ts",
    text: "contested.delete(network)",
    note: "equivalent but for time: a network without pools decides nothing",
  },
  {
    file: "host/resources/checked-pools.ts",
    text: "this.#networks.get(space)?.",
    note: "equivalent: the address space of a known network is known; for the compiler",
  },
  {
    file: "host/resources/checked-pools.ts",
    text: "[]",
    note: "not reached: the address space of a known network is known",
  },
  {
    file: "host/net/prefix-table.ts",
    text: "length < prefix.length",
    note: "equivalent: a prefix that nothing is around is the widest itself",
  },
  {
    file: "host/net/prefix-table.ts",
    text: "entry !== undefined",
    note: "equivalent: no place below the number of entries is empty; for the compiler",
  },
];
