/** Survivors in what the agent decides: IPAM, the registry, recovery, collection, `berthctl check`. */
import type { Note } from "../notes.ts";

export const AGENT_NOTES: readonly Note[] = [
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
    file: "host/registry/kubernetes/decide.ts",
    text: "object.node === node",
    note: "equivalent: another node's object is not ours, which was asked before",
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
    text: "state.pending !== NOTHING_PENDING",
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
];
