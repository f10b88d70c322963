/**
 * Kinds of fault that users of pod-network IPAM report in public, beside those that are switched on by name, with the
 * oracles that would see them in Berth. Other tests: no oracle looks there.
 */

export interface FieldFault {
  readonly kind: string;
  readonly oracles: string;
}

export const FIELD_FAULTS: readonly FieldFault[] = [
  { kind: "a collector with a stale list frees the address of a live pod", oracles: "simulation, observer, history" },
  {
    kind: "the address of a node that is cut off is given away while its pods answer",
    oracles: "simulation, search, observer",
  },
  { kind: "addresses of a crashed or deleted node stay in use for ever", oracles: "simulation" },
  { kind: "a DEL is lost while the plugin or its agent is away", oracles: "simulation, history" },
  { kind: "a pod is told that the pool is exhausted, and it is not", oracles: "history, simulation (`scarce`)" },
  { kind: "an address is used again at once", oracles: "simulation, history" },
  {
    kind: "a member's address changes with its node, an eviction or the controller's restart",
    oracles: "simulation, search, history",
  },
  {
    kind: "a machine's address changes while it migrates, or a third pod gets it",
    oracles: "simulation (`machines`), history",
  },
  { kind: "of several NICs one fails, and each attempt takes another address", oracles: "simulation, history" },
  {
    kind: "the conflict is found, and the next attempt gets the same address",
    oracles: "simulation (`conflicts`), observer",
  },
  { kind: "a proxy-ARP switch empties the pool", oracles: "simulation (`conflicts`)" },
  {
    kind: "records are deleted by hand, in bulk, or by another tool",
    oracles: "simulation (`calm`, `hands`), observer, history",
  },
  { kind: "a pool is shrunk, renamed or disabled while pods use it", oracles: "simulation (`pools`)" },
  { kind: "a generated pool does not follow its workload, or two share an address", oracles: "simulation (`subnets`)" },
  { kind: "two controllers lead, or clocks differ", oracles: "simulation" },
  { kind: "watches break, lag or are compacted; lists are answered 429 or 410", oracles: "simulation" },
  { kind: "the disk of a node is full, fails, or loses its last writes", oracles: "simulation" },
  { kind: "agents, controller and definitions are of two releases", oracles: "simulation (`releases`)" },
  { kind: "a tenant takes others' addresses or more than its share", oracles: "simulation (`tenants`)" },
  {
    kind: "an agent's or a controller's memory ends by what tenants write",
    oracles: "other tests (`test/long/tenant-attacks.test.ts`)",
  },
  {
    kind: "a node's tools remove rules, routes or links of pods",
    oracles: "other tests (`test/e2e/node-repair.test.ts`, `test/long/node-managers.test.ts`)",
  },
  {
    kind: "packets take a wrong way, although addresses are right",
    oracles: "other tests (`test/e2e/coordinator-*.test.ts`)",
  },
];
