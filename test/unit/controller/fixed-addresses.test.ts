/** The records of addresses that workloads name, and the answers to the workloads. */
import { expect, it, onTestFinished } from "vitest";
import { ConfigError } from "../../../host/config/config-error.ts";
import { decodeVendorConf } from "../../../host/config/vendor-conf.ts";
import type { CachedAllocation } from "../../../host/controller/cached-allocation.ts";
import { isOffered, openFixedPlan, openOffers } from "../../../host/controller/fixed-addresses.ts";
import { NamespaceShares } from "../../../host/controller/namespace-shares.ts";
import { decodeControlledPool, decodeControlledReservation } from "../../../host/controller/objects.ts";
import { startFixed } from "../../../host/controller/owners/fixed-controller.ts";
import type { Caches, NamingWorkload } from "../../../host/controller/types.ts";
import type { KubeEvent } from "../../../host/kubernetes/events.ts";
import type { Change } from "../../../host/kubernetes/mirror.ts";
import { Listeners } from "../../../host/lib/listeners.ts";
import { formatIp } from "../../../host/net/ip.ts";
import { API_VERSION } from "../../../host/resources/fields/metadata.ts";
import { decodeIpAllocation, type IpAllocationSpec, NO_NODE } from "../../../host/resources/ip-allocation.ts";
import { MemoryApiServer } from "../../fakes/memory-api-server.ts";
import { allocationObject, allocationSpec } from "../../lab/cluster/objects.ts";
import { recordLog } from "../../world/recorded-log.ts";

const berth = (kind: string, name: string, spec: object, metadata: object = {}) => ({
  ...{ apiVersion: API_VERSION, kind, metadata: { name, uid: name, resourceVersion: "1", ...metadata }, spec },
});

const POOLS = [
  berth("IPPool", "blue", {
    ...{ subnet: "10.6.0.0/24", gateway: "10.6.0.1", excludeIPs: ["10.6.0.70"] },
    ...{ multusName: ["lan"], nodeName: ["n1"] },
  }),
  berth("IPPool", "red", { subnet: "10.6.0.0/24", ips: ["10.6.0.70"], addressSpace: "red", namespaceName: ["red"] }),
  berth("IPPool", "gone", { subnet: "10.9.0.0/24" }, { deletionTimestamp: "2026-01-01T00:00:00Z" }),
  berth("IPPool", "six", { subnet: "fd06::/64" }),
  berth("IPPool", "off", { subnet: "10.7.0.0/24", disable: true }),
  berth("IPPool", "on", { subnet: "10.7.0.0/24", ips: ["10.7.0.6"] }),
  berth("IPPool", "high", { subnet: "10.5.0.0/24", ips: ["10.5.0.3-10.5.0.9"], addressSpace: "high" }),
  berth("IPPool", "low", { subnet: "10.5.0.0/24", ips: ["10.5.0.1-10.5.0.5"] }),
  berth("IPPool", "labelled", { subnet: "10.8.0.0/24", podAffinity: { matchLabels: { vm: "db" } } }),
];

const NAMESPACE_SIX = { "ipam.vendor.io/default-ipv4-ippool": '["six"]' };

interface WorldOf {
  readonly allocations?: readonly IpAllocationSpec[];
  readonly reserved?: readonly object[];
  readonly settings?: object;
  readonly annotations?: Readonly<Record<string, string>>;
}

const cacheOf = (all: readonly { readonly name: string }[]) => ({
  items: new Map(all.map((each) => [each.name, each])),
  subscribe: () => () => {},
});

function cachesOf({ allocations = [], reserved = [], settings = {}, annotations = {} }: WorldOf): Caches {
  const conf = { kind: "ConfigMap", name: "vendor-conf", conf: decodeVendorConf(settings, "the test"), text: "" };
  const service = { kind: "Service", namespace: "shop", name: "front", uid: "f", addresses: ["10.6.0.9"] };
  return {
    pools: cacheOf(POOLS.map(decodeControlledPool)),
    reserved: cacheOf(reserved.map((spec, at) => decodeControlledReservation(berth("ReservedIP", `r${at}`, spec)))),
    allocations: cacheOf(allocations.map((spec) => decodeIpAllocation(allocationObject(spec), "the test"))),
    namespaces: cacheOf([{ name: "shop", labels: {}, annotations } as never]),
    vendorConf: cacheOf([conf]),
    coordinators: cacheOf([]),
    nodes: cacheOf([]),
    services: cacheOf([service]),
    epoch: cacheOf([{ name: "epoch", epoch: "e", settled: "e" } as never]),
    apiServer: [],
  } as never;
}

const setOf = (ips: unknown, more: Readonly<Record<string, string>> = {}, name = "db"): NamingWorkload => ({
  ...{ kind: "StatefulSet", apiVersion: "apps/v1", namespace: "shop", name, uid: `u-${name}`, labels: {} },
  annotations: { "ipam.vendor.io/ips": typeof ips === "string" ? ips : JSON.stringify(ips), ...more },
  ordinals: { start: 0, replicas: 2 },
});

const MEMBER = { kind: "StatefulSet", namespace: "shop", name: "db", uid: "u-db", member: "db-0", ifName: "eth0" };
const record = (address: string, changes: Partial<IpAllocationSpec> = {}) =>
  allocationSpec(address, {
    ...{ pool: "blue", node: NO_NODE, state: "Kept", holders: [], workload: MEMBER, number: 0, ...changes },
  });

/** `ADDRESS POOL MEMBER NIC` of the missing records, then the answers to the workloads. */
function planOf(all: readonly NamingWorkload[], world: WorldOf = {}): readonly string[] {
  const caches = cachesOf(world);
  const { missing, refused, add } = openFixedPlan(caches, new NamespaceShares(caches.allocations.items.values()));
  all.forEach(add);
  for (const { of, spec } of missing.values()) expect(isOffered(openOffers(caches)(of, spec.ip), spec)).toBe(true);
  const made = [...missing.values()].map(({ spec: { ip, pool, workload } }) =>
    [formatIp(ip), pool, workload?.member, workload?.ifName].join(" "),
  );
  return [...made, ...[...refused.values()].flat()];
}

const ONE = [{ ipv4: "10.6.0.50" }];
const DB = setOf(ONE);
const MADE = "10.6.0.50 blue db-0 eth0";
const POD = { node: "n1", namespace: "shop", pod: "web-0", podUid: "u1", ifName: "eth0" };
const BOUND = { node: "n1", state: "Bound", holders: [POD] } as const;
const MEMBERS = {
  "db-0": [{ ipv4: "10.6.0.50", ipv6: "fd06::50" }],
  "db-1": [{ interface: "net1", ipv4: "10.6.0.51" }],
  "db-7": ONE,
};
const TWICE = "10.6.0.50 and 10.6.0.51: a NIC gets one IPv4 address";
const DOUBLED = { "db-0": [...ONE, { interface: "eth0", ipv4: "10.6.0.51" }], "db-1": [{ ipv4: "10.6.0.52" }] };
const UNREAD = 'annotation "ipam.vendor.io/ips": found "x", want an object';
const OF_TWO_POOLS = { "db-0": [{ ipv4: "10.5.0.7" }], "db-1": [{ ipv4: "10.5.0.4" }] };
const SIX = { "ipam.vendor.io/ippool": '{"ipv4": ["six"], "ipv6": ["six"]}' };
const of = (changes?: Partial<IpAllocationSpec>): WorldOf => ({ allocations: [record("10.6.0.50", changes)] });
const quarantined = (reason: "Conflict" | "NodeLost"): Partial<IpAllocationSpec> => ({
  ...{ state: "Quarantined", workload: undefined, quarantine: { reason, mac: "", parent: "" } },
});
const reserved = (name: string): WorldOf => ({
  reserved: [{ ips: ["10.6.0.50"], owner: { namespace: "shop", name } }],
});
const NO_SETS = { settings: { enableStatefulSet: false } };
const SET = "StatefulSet shop/db";
const TAKEN = `it is taken: 10.6.0.50 (kept for ${SET}, member db-0)`;
const oldSet = { ...MEMBER, uid: "old" };

it.each<[string, WorldOf, string, ...NamingWorkload[]]>([
  ["a list is for the first member", {}, MADE],
  ["a map is for the members", {}, `${MADE}, fd06::50 six db-0 eth0, 10.6.0.51 blue db-1 net1`, setOf(MEMBERS)],
  ["no pod has that name", {}, `10.6.0.50 for bd-0: no pod of ${SET} has that name`, setOf({ "bd-0": ONE })],
  ["the member's own record is enough", of(), ""],
  ["and what its pod has", of({ ...BOUND, holders: [{ ...POD, pod: "db-0" }] }), ""],
  ["that of the set before it is its own", of({ workload: oldSet }), MADE],
  ["but not what a pod had", of({ node: "n1", workload: oldSet }), TAKEN],
  ["the first of two gets it", {}, `${MADE}, 10.6.0.50 for web-0: ${TAKEN}`, DB, setOf(ONE, {}, "web")],
  ["one of two cannot be read", {}, `${MADE}, ${UNREAD}`, setOf('"x"', {}, "web"), DB],
  ["it waits for what cools", of({ state: "Cooling" }), ""],
  ["another machine has it", of(quarantined("Conflict")), "another machine answers for it"],
  ["a lost node may have it", of(quarantined("NodeLost")), "a pod of a lost node may have it"],
  ["a pod has it", of({ ...BOUND, workload: undefined }), "it is taken: 10.6.0.50 (pod shop/web-0)"],
  ["another namespace is not named", of({ workload: { ...MEMBER, namespace: "bank" } }), "another namespace has it"],
  ["a Node has it", of({ workload: { ...MEMBER, kind: "Node", namespace: "" } }), "a Node has it"],
  ["a Service has it", {}, "10.6.0.9 for db-0: a Node or a Service has it", setOf([{ ipv4: "10.6.0.9" }])],
  ["it is the gateway", {}, '10.6.0.1 for db-0: pool "blue": it is the gateway', setOf([{ ipv4: "10.6.0.1" }])],
  ["its pool is disabled for now", {}, "10.7.0.5 off db-0 eth0", setOf([{ ipv4: "10.7.0.5" }])],
  ["one of its pools is", {}, "10.7.0.6 on db-0 eth0", setOf([{ ipv4: "10.7.0.6" }])],
  ["its pool is being deleted", {}, "10.9.0.5 for db-0: no pool has it", setOf([{ ipv4: "10.9.0.5" }])],
  ["several pools have it", {}, "10.5.0.7 high db-0 eth0, 10.5.0.4 high db-1 eth0", setOf(OF_TWO_POOLS)],
  [
    "it is another namespace's",
    {},
    '10.6.0.70 for db-0: pool "blue": spec.excludeIPs has it; pool "red": is for other namespaces (spec.namespaceName)',
    setOf([{ ipv4: "10.6.0.70" }]),
  ],
  ["it is reserved for another", reserved("web-0"), 'pool "blue": ReservedIP "r0" has it'],
  ["it is reserved for it", reserved("db-0"), MADE],
  ["a member's NIC has two entries, not another's", {}, `10.6.0.52 blue db-1 eth0, ${TWICE}`, setOf(DOUBLED)],
  ["a family of its is disabled", { settings: { enableIPv6: false } }, MADE, setOf(MEMBERS["db-0"])],
  ["its template names another pool", {}, "no pool that its pods select has it", setOf(ONE, SIX)],
  [
    "its pods are not the pool's",
    {},
    '10.8.0.5 for db-0: pool "labelled": podAffinity does not match the labels of the pod',
    setOf([{ ipv4: "10.8.0.5" }]),
  ],
  [
    "its template names Subnets",
    {},
    'Annotation "ipam.vendor.io/subnet" cannot be followed: generated pools belong to workloads, and no address is reserved in them; name pools with "ipam.vendor.io/ippool"',
    setOf(ONE, { "ipam.vendor.io/subnet": '{"ipv4": ["lan"], "ipv6": ["six"]}' }),
  ],
  ["so does the namespace", { annotations: NAMESPACE_SIX }, "no pool that its pods select has it"],
  ["members are no workload's", NO_SETS, "vendor-conf has it that a StatefulSet keeps no addresses"],
])("%s", (_, world, wanted, ...all) => {
  const text = planOf(all.length > 0 ? all : [DB], world).join(", ");
  expect(text.replace(/^10.6.0.50 for db-0: /, "")).toBe(wanted);
});

it("a namespace gets as many as it may retain", () => {
  const ips = (from: number) => [{ ipv4: `10.6.0.${from}` }];
  const all = Array.from({ length: 10 }, (_, at) => setOf(ips(50 + at), {}, `s${at}`));
  expect(planOf(all, { allocations: [record("10.6.0.49")] }).filter((text) => text.includes(" for "))).toEqual(
    [57, 58, 59].map((last, at) => `10.6.0.${last} for s${at + 7}-0: namespace shop has as many addresses as it may`),
  );
});

it("a claim's request is for the claim, whatever the namespace names and pods are labelled", () => {
  const claim = { ...DB, kind: "IPAMClaim", name: "c", annotations: {}, requested: ["10.6.0.50"], ifName: "net1" };
  expect(planOf([claim], { annotations: NAMESPACE_SIX })).toEqual(["10.6.0.50 blue c net1"]);
  expect(planOf([{ ...claim, requested: ["10.8.0.5"] }])).toEqual(["10.8.0.5 labelled c net1"]);
  expect(planOf([{ ...claim, requested: ["10.6.0.50", "fd06::50", "10.6.0.51"] }])).toEqual([TWICE]);
});

it("names and patterns of a tenant take a short turn", () => {
  const racks = Array.from({ length: 256 }, (_, at) => berth("IPPool", `pool-${at}`, { subnet: `10.${at}.0.0/24` }));
  const pools = cacheOf(racks.map(decodeControlledPool));
  const caches = { ...cachesOf({ settings: { enableIPv6: false } }), pools } as never;
  const patterns = Array.from({ length: 60 }, (_, at) => `*p*o*o*l*${"?".repeat(at % 3)}*${at % 10}*`);
  const named = Array.from({ length: 350 }, (_, at) => [`db-${at}`, [{ ipv4: `10.${at % 256}.0.9` }]]);
  const set = setOf(Object.fromEntries(named), { "ipam.vendor.io/ippool": JSON.stringify({ ipv4: patterns }) });
  const before = process.threadCpuUsage();
  openFixedPlan(caches, new NamespaceShares([])).add({ ...set, ordinals: { start: 0, replicas: 350 } });
  // Searched anew for each address it takes far longer.
  expect(process.threadCpuUsage(before).user).toBeLessThan(500_000);
});

it("others have their turn: their change is seen in the next pass, and their time is no reason to rest", async () => {
  const caches = cachesOf(of({ ...BOUND, workload: undefined }));
  const items = new Map(caches.allocations.items);
  const listeners = new Listeners<Change<CachedAllocation>>(() => {});
  const allocations = { ...caches.allocations, items, subscribe: listeners.add.bind(listeners) };
  let nowMs = 0;
  const seen: (string | number)[] = [];
  const part = startFixed({
    ...{ api: new MemoryApiServer({ isOpen: true }).client(), log: recordLog().log, random: () => 0 },
    ...{ caches: { ...caches, allocations }, leading: new AbortController().signal },
    clock: { nowMs: () => nowMs, now: () => new Date() },
    owners: { addresses: { findNaming, subscribe: () => () => {} } },
    events: { emit: ({ note }: KubeEvent) => seen.push(note) },
  } as never);
  onTestFinished(() => part.close());
  function* findNaming() {
    yield DB;
    setImmediate(() => {
      nowMs += 1_000_000;
      for (const [key, before] of items) if (items.delete(key)) listeners.tell({ kind: "gone", key, before });
    });
    yield { ...DB, annotations: {} };
    seen.push(items.size);
  }
  await expect.poll(() => seen, { timeout: 3_000 }).toContain("Reserved: 10.6.0.50 for db-0");
  expect(seen[0]).toBe(0);
});

it("a record is named as long as its pool gives the address to the member's NIC", () => {
  const isNamed = (of: NamingWorkload, changes: Partial<IpAllocationSpec> = {}, world: WorldOf = {}) => {
    const own = record("10.6.0.50", changes);
    return isOffered(openOffers(cachesOf(world))(of, own.ip), own);
  };
  expect(isNamed(DB)).toBe(true);
  for (const other of [[{ ipv4: "10.6.0.51" }], [{ interface: "net1", ipv4: "10.6.0.50" }]])
    expect(isNamed(setOf(other))).toBe(false);
  expect(isNamed(DB, { pool: "red" })).toBe(false);
  expect(isNamed(DB, {}, { reserved: [{ ips: ["10.6.0.50"] }] })).toBe(false);
  // A text that cannot be read may name it.
  const fault = new ConfigError("the claim", [{ path: "", got: "x", wanted: "an address" }]);
  expect(() => isNamed({ ...DB, fault })).toThrow(fault);
  expect(() => isNamed(setOf('[{"ipv4": "db"}]'))).toThrow(ConfigError);
  const broken = { "ipam.vendor.io/default-ipv4-ippool": "[" };
  expect(() => isNamed(DB, {}, { annotations: broken })).toThrow(ConfigError);
  const single = { "ipam.vendor.io/ippool": '{"ipv4": ["blue"]}' };
  expect(() => isNamed(setOf(ONE, single), {}, { settings: { enableIPv6: true } })).toThrow(ConfigError);
});
