/** Each kind of damage is found; objects in order or changing are not. */
import { expect, it } from "vitest";
import { findDamage, type NodeFacts, STEADY_MS } from "../../../../host/findings/node/find-damage.ts";
import { prefixContains } from "../../../../host/net/prefix.ts";
import type { Finding } from "../../../../host/records/finding.ts";
import { UNKNOWN_CONTAINER } from "../../../../host/registry/journal.ts";
import type { Allocation } from "../../../../host/registry/registry.ts";
import type { IpAllocationSpec } from "../../../../host/resources/ip-allocation.ts";
import { cases } from "../../../world/rows.ts";
import { HOLDER, ipAllocation, pool, poolsByName } from "../../../world/subjects.ts";
import { ip } from "../../../world/values.ts";

type RowFacts = NodeFacts["rows"][number];

const POOLS = poolsByName(pool("blue", "10.6.0.0/24"), pool("lab", "10.7.0.0/24", { addressSpace: "lab" }));
const POOLS_MOVED = poolsByName(pool("blue", "10.6.0.0/24", { formerRouters: [ip("10.6.0.1")] }));
const NOW = 1_000_000;
const ADDRESS = "10.6.0.7";

const NIC = { netns: "/run/netns/a", ifName: "eth0", ip: ip(ADDRESS), macs: [] };
const OTHER_NIC = { ...NIC, netns: "/run/netns/b" };
const LAB_NIC = { ...NIC, ifName: "net1", ip: ip("10.7.0.3") };
const YOUNG = { sinceMs: NOW - STEADY_MS + 1 };
const GONE: Partial<RowFacts> = { pod: { kind: "absent" } };
const LOST: Partial<RowFacts> = { ...GONE, netns: "gone" };

function rowFacts(changes: Partial<Allocation> = {}, facts: Partial<RowFacts> = {}): RowFacts {
  const row: Allocation = {
    ...{ space: "", ip: ip(ADDRESS), prefixLength: 24, pool: "blue", state: "Bound", owner: "u1", ifName: "eth0" },
    ...{ containerId: "c1", network: "lan", namespace: "shop", pod: "web-0", netns: "/run/netns/a", isConfirmed: true },
    ...{ sinceMs: NOW - STEADY_MS, version: 1, ...changes },
  };
  return { row, pod: podOf("u1"), netns: "inUse", ...facts };
}

const podOf = (uid: string | undefined): RowFacts["pod"] => ({
  kind: "present",
  pod: { uid, configHash: undefined, deleting: false, phase: "Running" },
});

/** One record, and no NIC unless it is said that there is one. */
const recorded = (...given: Parameters<typeof rowFacts>) => ({ rows: [rowFacts(...given)] });
const bare = (...given: Parameters<typeof rowFacts>) => ({ rows: [rowFacts(...given)], nics: [] });
/** Without a cluster. */
const alone = (facts: Partial<NodeFacts>) => ({ ...facts, objects: undefined });
const object = (spec: Partial<IpAllocationSpec> = {}) => ipAllocation(ADDRESS, spec);
const published = (spec: Partial<IpAllocationSpec> = {}) => ({ objects: new Map([[ADDRESS, object(spec)]]) });
const NONE = { rows: [], nics: [] };
const UNPUBLISHED = { objects: new Map() };
const THERE = { ...HOLDER, pod: "web-9", podUid: "u9", node: "n2" };
const OTHER = published({ node: "n2", holders: [THERE] });
const COOLING = published({ state: "Cooling", holders: [] });
const STATIC = "0".repeat(32);
const OF_STATIC = { ...HOLDER, podUid: STATIC };
const TAKEN_IN = { containerId: UNKNOWN_CONTAINER };
const ELSEWHERE = {
  ...recorded({}, { netnsId: "4 1" }),
  nics: [{ ...NIC, netns: "/var/run/netns/a", netnsId: "4 1" }],
};
const TWO_SPACES = { rows: [{ space: "lab" }, YOUNG].map((row) => rowFacts({ state: "Cooling", ...row })) };

function find(changes: Partial<NodeFacts>): Finding[] {
  const contains: NodeFacts["contains"] = (name, address) => {
    const found = POOLS.get(name);
    return found !== undefined && prefixContains(found.spec.subnet, address);
  };
  const facts = { node: "n1", nowMs: NOW, rows: [rowFacts()], nics: [NIC], ...published(), pools: POOLS, contains };
  return findDamage({ ...facts, ...changes });
}

it.each<[what: string, changes: Partial<NodeFacts>]>([
  ["when all agree", {}],
  ["without a cluster", alone({})],
  ["of a NIC whose namespace has another path", ELSEWHERE],
  ["of a NIC whose record names an unreadable path", recorded({ netns: "/proc/7/ns/net" }, { netns: "unknown" })],
  ["of an address of no pool", { nics: [NIC, { ...NIC, ip: ip("192.0.2.1") }] }],
  [
    "of private networks in two pods",
    { nics: [NIC, ...[NIC, OTHER_NIC].map((nic) => ({ ...nic, ip: ip("10.0.2.1") }))] },
  ],
  ["of a NIC that is claimed and not attached", bare({ containerId: "" }, LOST)],
  ["of a NIC whose DEL is under way", alone(recorded({ state: "Cooling", ...YOUNG }))],
  ["of a NIC whose DEL is under way while its object is there", recorded({ state: "Cooling", ...YOUNG })],
  ["of a NIC with the address of two spaces, of which one was just released", TWO_SPACES],
  ["of a NIC whose record names no namespace", recorded({ netns: undefined })],
  ["of a record that is not published yet", { ...recorded({ isConfirmed: false }), ...UNPUBLISHED }],
  ["of an address that two pods share", published({ holders: [THERE, HOLDER] })],
  ["of a record that was taken in, while another node has the object", { ...recorded(TAKEN_IN), ...OTHER }],
  ["of another node's object", { ...NONE, ...OTHER }],
  ["of an object that is being deleted", { ...NONE, objects: new Map([[ADDRESS, { ...object(), deleting: true }]]) }],
  ["of an object that cools", { ...NONE, ...published({ state: "Cooling" }) }],
  ["of a pod that is gone just now", bare(YOUNG, LOST)],
  ["of a pod whose UID is unknown", recorded({}, { pod: podOf(undefined) })],
  ["of a static pod without mirror", { ...recorded({ owner: STATIC }, GONE), ...published({ holders: [OF_STATIC] }) }],
  ["of a container without a pod", recorded({ pod: "" }, GONE)],
  ["of an address that cools after its pod", { ...bare({ state: "Cooling" }, LOST), ...UNPUBLISHED }],
  ["of a pod that cannot be read", recorded({}, { pod: { kind: "unknown" } })],
  ["of a NIC that is being made", bare(YOUNG, { netns: "there" })],
  ["of a pool that does not have the address, of which a condition tells", recorded({ pool: "lab" })],
  ["of an adopted address that its pool does not allocate", { ...recorded({ network: "" }), contains: () => false }],
])("finds nothing %s", (_what, changes) => expect(find(changes)).toEqual([]));

it.each(cases<Partial<NodeFacts>>`
  a NIC of another namespace at the record's path ${alone({ ...recorded({}, { netnsId: "4 1" }), nics: [{ ...NIC, netnsId: "4 2" }] })}
    => lost-record 10.6.0.7 → interface eth0 in /run/netns/a has the address, and no record says so → Run "berthctl recover"
  two NICs with one address ${{ nics: [NIC, OTHER_NIC] }}
    => duplicate 10.6.0.7 → interface eth0 in /run/netns/b and interface eth0 in /run/netns/a have the address → Restart the pod whose record is missing
  three NICs with one address, and no record ${alone({ rows: [], nics: [NIC, OTHER_NIC, { ...NIC, netns: "/run/netns/c" }] })}
    => duplicate 10.6.0.7, duplicate 10.6.0.7
  a NIC whose address is another node's pod's ${{ rows: [], ...OTHER }}
    => duplicate 10.6.0.7 → interface eth0 in /run/netns/a has the address, which is allocated to pod shop/web-9 on node n2 → Restart the pod of that namespace, which gets another address
  a record whose object is another pod's ${OTHER}
    => duplicate 10.6.0.7 web-0 → this node's record says it is this pod's, the API server says it is allocated to pod shop/web-9 on node n2 → Restart this pod, which gets another address
  a NIC without a record ${{ rows: [], ...UNPUBLISHED }}
    => lost-record 10.6.0.7 → interface eth0 in /run/netns/a has the address, and no record says so → Restart the pod of that namespace
  a NIC of a space without a record ${{ nics: [NIC, LAB_NIC] }} => lost-record 10.7.0.3/lab
  a NIC that was released long ago ${alone(recorded({ state: "Cooling" }))} => lost-record 10.6.0.7
  two NICs without records, and another address that was just released ${alone({ ...recorded({ ip: ip("10.6.0.8"), ...YOUNG }), nics: [NIC, { ...OTHER_NIC, ip: ip("10.6.0.9") }] })}
    => lost-record 10.6.0.7, lost-record 10.6.0.9
  a NIC whose object cools ${{ rows: [], ...COOLING }} => lost-record 10.6.0.7
  a NIC whose address is another NIC's by the record ${alone(recorded({ ifName: "net1" }))} => lost-record 10.6.0.7
  a record without an object ${UNPUBLISHED} => lost-object 10.6.0.7 web-0
  a record whose object cools ${COOLING}
    => duplicate 10.6.0.7 web-0 → this node's record says it is this pod's, the API server says it is Cooling on node n1 → Restart this pod, which gets another address
  a record that was taken in, and whose object is another pod's of this node ${{ ...recorded({ containerId: UNKNOWN_CONTAINER }), ...published({ holders: [THERE] }) }}
    => duplicate 10.6.0.7 web-0
  an object without a record ${NONE} => orphan 10.6.0.7 web-0
  an object without a record beside those of other addresses and spaces ${{ rows: [rowFacts({ ip: ip("10.6.0.8"), ...YOUNG }), rowFacts({ space: "lab", ...YOUNG })], nics: [] }}
    => orphan 10.6.0.7 web-0
  a pod that is gone ${bare({}, LOST)}
    => leak 10.6.0.7 web-0 releasable → its pod is gone → Garbage collection releases it; if it does not, see the agent's log, or release it
  a pod that is gone and still has its NIC ${recorded({}, GONE)}
    => leak 10.6.0.7 web-0 → its pod is gone, and its NIC still has the address → Garbage collection releases it; if it does not, see the agent's log, or release it
  a pod of another UID ${recorded({}, { pod: podOf("u2") })} => leak 10.6.0.7 web-0
  a container without a pod whose namespace is gone ${bare({ pod: "" }, LOST)} => leak 10.6.0.7 releasable
  a namespace that is gone, without a cluster ${alone(bare({}, { netns: "gone" }))} => leak 10.6.0.7 web-0 releasable
  a NIC that lost its address ${bare({}, { netns: "there" })} => missing-address 10.6.0.7 web-0
  a pool that is gone ${recorded({ pool: "old" })}
    => wrong-pool 10.6.0.7 web-0 → pool "old" does not exist → Restore the pool's addresses, or restart the pod, which gets another one
  an adopted address that its pool's subnet does not have, or another space's ${alone({ ...{ nics: [], contains: () => false }, rows: [rowFacts({ network: "", ip: ip("10.9.0.7") }), rowFacts({ network: "", space: "lab" })] })}
    => AddressesOutside → in use and not among the addresses that the pool gives out now: 10.9.0.7 (pod shop/web-0), 10.6.0.7 (pod shop/web-0); each goes when it is released → Restart the pods, which get other addresses, or give the pool these back
  a pool of another space ${alone(bare({ space: "lab" }))} => AddressesOutside
  a pod with a former router ${alone({ ...recorded({ routers: ["10.6.0.1"] }), pools: POOLS_MOVED })}
    => PodsWithOtherGateway → pods route by 10.6.0.1, which the pool does not name any more: 10.6.0.7 (pod shop/web-0); until they end no pod gets 10.6.0.1 → Restart the pods, which get the new routes
  one of a pool that is gone ${alone({ ...recorded({ routers: ["10.6.0.1"], pool: "red" }), pools: POOLS_MOVED })} => wrong-pool 10.6.0.7 web-0, PodsWithOtherGateway
`)("finds %s", (_what, changes, found) => {
  const words = find(changes).map(({ kind, address, pod, isReleasable, text, remedy }) => {
    const said = found.includes("→") ? ` → ${text} → ${remedy}` : "";
    return [kind, address, pod, isReleasable ? "releasable" : ""].filter(Boolean).join(" ") + said;
  });
  expect(words.join(", ")).toBe(found);
});
