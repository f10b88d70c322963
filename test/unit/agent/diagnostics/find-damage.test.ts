/** Each kind of damage is found, and what is in order or changing is not. */
import { expect, it } from "vitest";
import { findDamage, type NodeFacts, STEADY_MS } from "../../../../host/agent/diagnostics/find-damage.ts";
import { prefixContains } from "../../../../host/net/prefix.ts";
import type { Allocation } from "../../../../host/registry/registry.ts";
import type { IpAllocationSpec } from "../../../../host/resources/ip-allocation.ts";
import { ipAllocation, pool, poolsByName } from "../../../world/subjects.ts";
import { ip } from "../../../world/values.ts";

type RowFacts = NodeFacts["rows"][number];

const POOLS = poolsByName(pool("blue", "10.6.0.0/24"), pool("lab", "10.7.0.0/24", { addressSpace: "lab" }));
const NOW = 1_000_000;
const ADDRESS = "10.6.0.7";

function row(changes: Partial<Allocation> = {}): Allocation {
  return {
    ...{ space: "", ip: ip(ADDRESS), prefixLength: 24, pool: "blue", state: "Bound", owner: "u1", ifName: "eth0" },
    ...{ containerId: "c1", network: "lan", namespace: "shop", pod: "web-0", netns: "/run/netns/a", isConfirmed: true },
    ...{ sinceMs: NOW - STEADY_MS, version: 1, ...changes },
  };
}

function rowFacts(changes: Partial<Allocation> = {}, facts: Partial<RowFacts> = {}): RowFacts {
  const pod = {
    kind: "present",
    pod: { uid: "u1", configHash: undefined, deleting: false, isFinished: false },
  } as RowFacts["pod"];
  return { row: row(changes), pod, netns: "inUse", ...facts };
}

const object = (spec: Partial<IpAllocationSpec> = {}) => ipAllocation(ADDRESS, spec);

const NIC = { netns: "/run/netns/a", ifName: "eth0", ip: ip(ADDRESS), macs: [] };

function check(changes: Partial<NodeFacts>): string[] {
  const contains: NodeFacts["contains"] = (name, address) => {
    const found = POOLS.get(name);
    return found !== undefined && prefixContains(found.spec.subnet, address);
  };
  const objects = new Map([[ADDRESS, object()]]);
  const facts = {
    node: "n1",
    nowMs: NOW,
    rows: [rowFacts()],
    nics: [NIC],
    objects,
    pools: POOLS,
    contains,
    ...changes,
  };
  return findDamage(facts).map(({ kind, address, pod, isReleasable }) =>
    [kind, address, pod, ...(isReleasable ? ["releasable"] : [])].filter(Boolean).join(" "),
  );
}

const GONE = { kind: "absent" } as const;
const OTHER = object({
  node: "n2",
  holders: [{ namespace: "shop", pod: "web-9", podUid: "u9", ifName: "eth0" }],
} as never);
const YOUNG = { sinceMs: NOW - STEADY_MS + 1 };

const rows: [what: string, changes: Partial<NodeFacts>, found: string[]][] = [
  ["nothing when all agree", {}, []],
  ["nothing without a cluster", { objects: undefined }, []],
  [
    "nothing of a NIC whose namespace has another path",
    { nics: [{ ...NIC, netns: "/var/run/netns/a", netnsId: "4 1" }], rows: [rowFacts({}, { netnsId: "4 1" })] },
    [],
  ],
  [
    "a NIC of another namespace at the record's path",
    { nics: [{ ...NIC, netnsId: "4 2" }], rows: [rowFacts({}, { netnsId: "4 1" })], objects: undefined },
    ["lost-record 10.6.0.7"],
  ],
  [
    "nothing of a NIC whose record names a path that cannot be read",
    { rows: [rowFacts({ netns: "/proc/7/ns/net" }, { netns: "unknown" })] },
    [],
  ],
  ["nothing of an address of no pool", { nics: [NIC, { ...NIC, ip: ip("192.0.2.1") }] }, []],
  [
    "nothing of a NIC that is claimed and not attached",
    { rows: [rowFacts({ containerId: "" }, { netns: "unknown" })] },
    [],
  ],
  ["two NICs with one address", { nics: [NIC, { ...NIC, netns: "/run/netns/b" }] }, ["duplicate 10.6.0.7"]],
  [
    "a NIC whose address is another node's pod's",
    { rows: [], objects: new Map([[ADDRESS, OTHER]]) },
    ["duplicate 10.6.0.7"],
  ],
  ["a record whose object is another pod's", { objects: new Map([[ADDRESS, OTHER]]) }, ["duplicate 10.6.0.7 web-0"]],
  ["a NIC without a record", { rows: [], objects: new Map() }, ["lost-record 10.6.0.7"]],
  [
    "a NIC of a space without a record",
    { nics: [NIC, { ...NIC, ifName: "net1", ip: ip("10.7.0.3") }] },
    ["lost-record 10.7.0.3/lab"],
  ],
  [
    "nothing of a NIC whose DEL is under way",
    { rows: [rowFacts({ state: "Cooling", ...YOUNG })], objects: undefined },
    [],
  ],
  [
    "a NIC that was released long ago",
    { rows: [rowFacts({ state: "Cooling" })], objects: undefined },
    ["lost-record 10.6.0.7"],
  ],
  ["a record without an object", { objects: new Map() }, ["lost-object 10.6.0.7 web-0"]],
  [
    "nothing of a record that is not published yet",
    { objects: new Map(), rows: [rowFacts({ isConfirmed: false })] },
    [],
  ],
  ["an object without a record", { rows: [], nics: [] }, ["orphan 10.6.0.7 web-0"]],
  [
    "nothing of an object that cools",
    { rows: [], nics: [], objects: new Map([[ADDRESS, object({ state: "Cooling" })]]) },
    [],
  ],
  [
    "a pod that is gone",
    { rows: [rowFacts({}, { pod: GONE, netns: "gone" })], nics: [] },
    ["leak 10.6.0.7 web-0 releasable"],
  ],
  ["a pod that is gone and still has its NIC", { rows: [rowFacts({}, { pod: GONE })] }, ["leak 10.6.0.7 web-0"]],
  ["nothing of a pod that is gone just now", { rows: [rowFacts(YOUNG, { pod: GONE, netns: "gone" })], nics: [] }, []],
  ["nothing of a pod that cannot be read", { rows: [rowFacts({}, { pod: { kind: "unknown" } })] }, []],
  [
    "a namespace that is gone, without a cluster",
    { rows: [rowFacts({}, { netns: "gone" })], nics: [], objects: undefined },
    ["leak 10.6.0.7 web-0 releasable"],
  ],
  [
    "a NIC that lost its address",
    { rows: [rowFacts({}, { netns: "there" })], nics: [] },
    ["missing-address 10.6.0.7 web-0"],
  ],
  ["nothing of a NIC that is being made", { rows: [rowFacts(YOUNG, { netns: "there" })], nics: [] }, []],
  ["a pool that is gone", { rows: [rowFacts({ pool: "old" })] }, ["wrong-pool 10.6.0.7 web-0"]],
  [
    "nothing of an adopted address that its pool does not allocate",
    { rows: [rowFacts({ network: "" })], contains: () => false },
    [],
  ],
  ["a pool that does not have the address", { rows: [rowFacts({ pool: "lab" })] }, ["wrong-pool 10.6.0.7 web-0"]],
];

it.each(rows)("finds %s", (_what, changes, found) => {
  expect(check(changes)).toEqual(found);
});
