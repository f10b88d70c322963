/** Each kind of damage is found, and what is in order or changing is not. */
import { expect, it } from "vitest";
import { findDamage, type NodeFacts, STEADY_MS } from "../../../../host/agent/operate/find-damage.ts";
import { prefixContains } from "../../../../host/net/prefix.ts";
import type { DamageFinding } from "../../../../host/records/check-record.ts";
import { UNKNOWN_CONTAINER } from "../../../../host/registry/journal.ts";
import type { Allocation } from "../../../../host/registry/registry.ts";
import type { IpAllocationSpec } from "../../../../host/resources/ip-allocation.ts";
import { HOLDER, ipAllocation, pool, poolsByName } from "../../../world/subjects.ts";
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

function find(changes: Partial<NodeFacts>): DamageFinding[] {
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
  return findDamage(facts);
}

function check(changes: Partial<NodeFacts>): string[] {
  return find(changes).map(({ kind, address, pod, isReleasable }) =>
    [kind, address, pod, ...(isReleasable ? ["releasable"] : [])].filter(Boolean).join(" "),
  );
}

const GONE = { kind: "absent" } as const;
const OTHER = object({
  node: "n2",
  holders: [{ namespace: "shop", pod: "web-9", podUid: "u9", ifName: "eth0", node: "n2" }],
});
const YOUNG = { sinceMs: NOW - STEADY_MS + 1 };
const SHARED = object({
  holders: [
    { namespace: "shop", pod: "web-9", podUid: "u9", ifName: "eth0", node: "n2" },
    { namespace: "shop", pod: "web-0", podUid: "u1", ifName: "eth0", node: "n1" },
  ],
});
const COOLING = object({ state: "Cooling", holders: [] });
const pod = (uid: string | undefined): RowFacts["pod"] => ({
  kind: "present",
  pod: { uid, configHash: undefined, deleting: false, phase: "Running" },
});
const STATIC = "0".repeat(32);

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
    { rows: [rowFacts({ containerId: "" }, { pod: GONE, netns: "gone" })], nics: [] },
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
  [
    "nothing of a NIC whose DEL is under way while its object is there",
    { rows: [rowFacts({ state: "Cooling", ...YOUNG })] },
    [],
  ],
  [
    "nothing of a NIC with the address of two spaces, of which one was just released",
    { rows: [rowFacts({ state: "Cooling", space: "lab" }), rowFacts({ state: "Cooling", ...YOUNG })] },
    [],
  ],
  [
    "two NICs without records, and another address that was just released",
    {
      nics: [NIC, { ...NIC, netns: "/run/netns/b", ip: ip("10.6.0.9") }],
      rows: [rowFacts({ ip: ip("10.6.0.8"), ...YOUNG })],
      objects: undefined,
    },
    ["lost-record 10.6.0.7", "lost-record 10.6.0.9"],
  ],
  ["a NIC whose object cools", { rows: [], objects: new Map([[ADDRESS, COOLING]]) }, ["lost-record 10.6.0.7"]],
  [
    "a NIC whose address is another NIC's by the record",
    { rows: [rowFacts({ ifName: "net1" })], objects: undefined },
    ["lost-record 10.6.0.7"],
  ],
  ["nothing of a NIC whose record names no namespace", { rows: [rowFacts({ netns: undefined })] }, []],
  ["a record without an object", { objects: new Map() }, ["lost-object 10.6.0.7 web-0"]],
  [
    "nothing of a record that is not published yet",
    { objects: new Map(), rows: [rowFacts({ isConfirmed: false })] },
    [],
  ],
  ["a record whose object cools", { objects: new Map([[ADDRESS, COOLING]]) }, ["duplicate 10.6.0.7 web-0"]],
  ["nothing of an address that two pods share", { objects: new Map([[ADDRESS, SHARED]]) }, []],
  [
    "nothing of a record that was taken in, while another node has the object",
    { rows: [rowFacts({ containerId: UNKNOWN_CONTAINER })], objects: new Map([[ADDRESS, OTHER]]) },
    [],
  ],
  [
    "a record that was taken in, and whose object is another pod's of this node",
    {
      rows: [rowFacts({ containerId: UNKNOWN_CONTAINER })],
      objects: new Map([[ADDRESS, object({ holders: OTHER.spec.holders })]]),
    },
    ["duplicate 10.6.0.7 web-0"],
  ],
  ["an object without a record", { rows: [], nics: [] }, ["orphan 10.6.0.7 web-0"]],
  [
    "an object without a record beside those of other addresses and spaces",
    { rows: [rowFacts({ ip: ip("10.6.0.8"), ...YOUNG }), rowFacts({ space: "lab", ...YOUNG })], nics: [] },
    ["orphan 10.6.0.7 web-0"],
  ],
  [
    "nothing of another node's object, nor of one that is being deleted",
    {
      ...{ rows: [], nics: [] },
      objects: new Map([
        [ADDRESS, OTHER],
        ["10.6.0.8", { ...object({ ip: ip("10.6.0.8") }), deleting: true }],
      ]),
    },
    [],
  ],
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
  ["a pod of another UID", { rows: [rowFacts({}, { pod: pod("u2") })] }, ["leak 10.6.0.7 web-0"]],
  ["nothing of a pod whose UID is unknown", { rows: [rowFacts({}, { pod: pod(undefined) })] }, []],
  ["nothing of a static pod without a mirror", { rows: [rowFacts({ owner: STATIC }, { pod: GONE })], objects: new Map([[ADDRESS, object({ holders: [{ ...HOLDER, podUid: STATIC }] })]]) }, []], // biome-ignore format: one row
  ["nothing of a container without a pod", { rows: [rowFacts({ pod: "" }, { pod: GONE })] }, []],
  [
    "a container without a pod whose namespace is gone",
    { rows: [rowFacts({ pod: "" }, { pod: GONE, netns: "gone" })], nics: [] },
    ["leak 10.6.0.7 releasable"],
  ],
  [
    "nothing of an address that cools after its pod",
    { rows: [rowFacts({ state: "Cooling" }, { pod: GONE, netns: "gone" })], nics: [], objects: new Map() },
    [],
  ],
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
  [
    "an adopted address that its pool's subnet does not have, or another space's",
    {
      rows: [rowFacts({ network: "", ip: ip("10.9.0.7") }), rowFacts({ network: "", space: "lab" })],
      ...{ nics: [], objects: undefined, contains: () => false },
    },
    ["wrong-pool 10.9.0.7 web-0", "wrong-pool 10.6.0.7/lab web-0"],
  ],
  [
    "a pool of another space",
    { rows: [rowFacts({ space: "lab" })], nics: [], objects: undefined },
    ["wrong-pool 10.6.0.7/lab web-0"],
  ],
  ["a pool that does not have the address", { rows: [rowFacts({ pool: "lab" })] }, ["wrong-pool 10.6.0.7 web-0"]],
];

it.each(rows)("finds %s", (_what, changes, found) => {
  expect(check(changes)).toEqual(found);
});

it.each<[what: string, changes: Partial<NodeFacts>, text: RegExp, remedy: RegExp]>([
  ["the NICs of a duplicate", { nics: [NIC, { ...NIC, netns: "/run/netns/b" }] }, /^interface eth0 in .*b and interface eth0 in .*a have the address$/, /^Restart/], // biome-ignore format: one row
  ["the state of an object without a pod", { objects: new Map([[ADDRESS, COOLING]]) }, /says it is Cooling on node n1$/, /^Restart this pod/], // biome-ignore format: one row
  ["the pod that a NIC's address is allocated to", { rows: [], objects: new Map([[ADDRESS, OTHER]]) }, /is allocated to pod shop\/web-9 on node n2$/, /^Restart the pod/], // biome-ignore format: one row
  ["the pod of an object", { objects: new Map([[ADDRESS, OTHER]]) }, /says it is allocated to pod shop\/web-9 on node n2$/, /^Restart this pod/], // biome-ignore format: one row
  ["a pod that is gone", { rows: [rowFacts({}, { pod: GONE, netns: "gone" })], nics: [] }, /^its pod is gone$/, /release it$/], // biome-ignore format: one row
  ["the NIC of a pod that is gone", { rows: [rowFacts({}, { pod: GONE })] }, /^its pod is gone, and its NIC still has/, /release it$/], // biome-ignore format: one row
  ["a pool that is gone", { rows: [rowFacts({ pool: "old" })] }, /^pool "old" does not exist$/, /^Restore/],
  ["a pool without the address", { rows: [rowFacts({ pool: "lab" })] }, /^pool "lab" may not allocate it$/, /^Restore/],
  ["the way out without a cluster", { rows: [], objects: undefined }, /no record says so$/, /^Run "berthctl recover"$/],
  ["the way out in a cluster", { rows: [], objects: new Map() }, /no record says so$/, /^Restart the pod/],
])("names %s", (_what, changes, text, remedy) => {
  expect(find(changes)).toEqual([
    expect.objectContaining({ text: expect.stringMatching(text), remedy: expect.stringMatching(remedy) }),
  ]);
});
