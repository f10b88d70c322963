import { describe, expect, it } from "vitest";
import {
  decideRecord,
  MAX_NODE_ADDRESSES,
  MAX_SERVICE_ADDRESSES,
  planRecords,
  readControlPlane,
  readEndpoints,
  readService,
} from "../../../host/controller/claimants.ts";
import { decodeControlledPool, decodeControlledReservation } from "../../../host/controller/objects.ts";
import type { Claimant } from "../../../host/controller/types.ts";
import { API_VERSION } from "../../../host/resources/fields/metadata.ts";
import {
  allocationName,
  decodeIpAllocation,
  type IpAllocationSpec,
  NO_NODE,
} from "../../../host/resources/ip-allocation.ts";
import { allocationObject, allocationSpec } from "../../lab/cluster/objects.ts";

type Caches = Parameters<typeof planRecords>[0];

const cacheOf = <T extends { readonly name?: string }>(all: readonly T[], keyOf = (each: T) => each.name ?? "") => ({
  items: new Map(all.map((each) => [keyOf(each), each])),
  subscribe: () => () => {},
  problems: [],
});

const pool = (name: string, subnet: string, ips: string[], more: object = {}, metadata: object = {}) =>
  decodeControlledPool({
    ...{ apiVersion: API_VERSION, kind: "IPPool", metadata: { name, uid: name, resourceVersion: "1", ...metadata } },
    spec: { subnet, ips, ...more },
  });

const claimant = (kind: Claimant["kind"], path: string, ...addresses: string[]): Claimant => {
  const [namespace = "", name = ""] = path.split("/");
  return { kind, namespace, name, uid: path, addresses };
};

const SERVER = claimant("Service", "default/kubernetes");

function cachesOf(world: {
  pools?: ReturnType<typeof pool>[];
  claimants?: Claimant[];
  apiServer?: string[];
  isSynced?: boolean;
  allocations?: IpAllocationSpec[];
  reserved?: string[];
}): Caches {
  const { pools = [BLUE], claimants = [], apiServer = [], isSynced = true, allocations = [], reserved = [] } = world;
  const reservation = {
    ...{ apiVersion: API_VERSION, kind: "ReservedIP", metadata: { name: "r", uid: "r", resourceVersion: "1" } },
    spec: { ips: reserved },
  };
  const objects = allocations.map((spec) => decodeIpAllocation(allocationObject(spec), "the test"));
  const of = (kind: Claimant["kind"]) => claimants.filter((each) => each.kind === kind);
  return {
    pools: cacheOf(pools),
    reserved: cacheOf(reserved.length > 0 ? [decodeControlledReservation(reservation)] : []),
    nodes: cacheOf(of("Node")) as never,
    services: cacheOf(of("Service"), ({ uid }) => uid),
    apiServer: [{ ...cacheOf([apiServer as never]), isSynced }] as never,
    allocations: cacheOf(objects),
  };
}

const BLUE = pool("blue", "10.6.0.0/24", ["10.6.0.5-10.6.0.9"]);

/** As the plan writes it. */
const recorded = (address: string, { kind, namespace, name, uid }: Claimant, changes: object = {}) =>
  allocationSpec(address, {
    ...{ pool: "blue", node: NO_NODE, state: "Kept", holders: [] },
    ...{ workload: { kind, namespace, name, uid, member: name }, ...changes },
  });

/** `ADDRESS in POOL for OWNER` of the missing records; and the names of the contested ones. */
function planOf(world: Parameters<typeof cachesOf>[0]) {
  const { missing, contested, problems } = planRecords(cachesOf(world));
  return {
    missing: missing
      .map(({ spec, claimant: { uid } }) => `${allocationName(spec.ip, spec.addressSpace)} in ${spec.pool} for ${uid}`)
      .sort(),
    contested: [...contested].map(([name, { uid }]) => `${name} by ${uid}`),
    problems,
  };
}

const [NODE, FRONT] = [claimant("Node", "/n1", "10.6.0.6"), claimant("Service", "shop/front", "10.6.0.5")];

describe("the plan of records", () => {
  it("has addresses that pools would give, of each address space once, and of the first pool that has it", () => {
    const pools = [
      pool("wide", "10.6.0.0/24", ["10.6.0.1-10.6.0.20"], { excludeIPs: ["10.6.0.11"], gateway: "10.6.0.12" }),
      BLUE,
      pool("red", "10.6.0.0/24", ["10.6.0.5-10.6.0.9"], { addressSpace: "red" }),
      pool("leaving", "10.7.0.0/24", ["10.7.0.1"], {}, { deletionTimestamp: "2026-01-01T00:00:00Z" }),
      pool("six", "fd00::/64", ["fd00::5-fd00::9"]),
    ];
    const given = ["10.6.0.11", "10.6.0.12", "10.6.0.13", "10.7.0.1", "192.0.2.1", "fd00::7", "n1"];
    const claimants = [claimant("Node", "/n1", "10.6.0.6", ...given), { ...SERVER, addresses: [] }];
    const apiServer = ["10.6.0.14", "api.example.org", ""];
    expect(planOf({ pools, claimants, apiServer, reserved: ["10.6.0.13"] })).toEqual({
      missing: [
        "10.6.0.14 in wide for default/kubernetes",
        "10.6.0.6 in blue for /n1",
        "10.6.0.6.red in red for /n1",
        "fd00-0000-0000-0000-0000-0000-0000-0007 in six for /n1",
      ],
      contested: [],
      problems: [],
    });
  });

  it("has for a Node and for a namespace so many, recorded ones first, and names those that have more", () => {
    const many = Array.from({ length: 40 }, (_, at) => `10.1.0.${at + 1}`);
    const late = many.map((text) => text.replace("10.1", "10.2"));
    const claimants = [
      ...[claimant("Node", "/n1", ...many), claimant("Node", "/n2", "10.3.0.1")],
      ...late.map((text, at) => claimant("Service", `evil/s${at}`, text)),
      claimant("Service", "shop/front", "10.3.0.2"),
    ];
    const pools = [pool("blue", "10.0.0.0/8", ["10.1.0.0-10.3.255.255"])];
    const last = recorded("10.1.0.40", claimant("Node", "/n1"), { prefixLength: 8 });
    const { missing, problems } = planOf({ pools, claimants, allocations: [last] });
    const of = (uid: string) => missing.filter((text) => text.includes(` for ${uid}`)).length;
    expect([of("/n1"), of("/n2"), of("evil/"), of("shop/")]).toEqual([
      ...[MAX_NODE_ADDRESSES - 1, 1],
      ...[MAX_SERVICE_ADDRESSES, 1],
    ]);
    expect(problems).toEqual([
      expect.stringContaining('Node "n1" has 40 addresses'),
      expect.stringContaining('Services of namespace "evil" have 40 addresses'),
    ]);
  });

  const holder = { node: "n1", namespace: "shop", pod: "web-0", podUid: "u1", ifName: "eth0" };
  const bound = allocationSpec("10.6.0.6", { pool: "blue", node: "n1", holders: [holder] });
  const kept = { kind: "StatefulSet", namespace: "shop", name: "web", uid: "s", member: "web-0" };
  const other = claimant("Service", "shop/other", "10.6.0.6");
  const quarantine = { reason: "Conflict", mac: "", parent: "" } as const;
  it.each<[string, IpAllocationSpec, Partial<Parameters<typeof cachesOf>[0]>, string]>([
    ["its own record is as it should be", recorded("10.6.0.6", NODE), {}, ""],
    ["its own record names another pool", recorded("10.6.0.6", NODE, { pool: "old" }), {}, "write"],
    ["a pod has it", bound, {}, "contested"],
    ["it is retained for a member", { ...bound, state: "Kept", holders: [], workload: kept }, {}, "contested"],
    ["it is reserved for one", recorded("10.6.0.6", NODE, { workload: kept, number: 0 }), {}, "contested"],
    ["it cools", { ...bound, state: "Cooling", holders: [] }, {}, ""],
    ["it cools on no node", { ...bound, state: "Cooling", holders: [], node: NO_NODE }, {}, "write"],
    ["it is in quarantine", { ...bound, state: "Quarantined", holders: [], quarantine }, {}, ""],
    ["another that has it, too, has the record", recorded("10.6.0.6", other), { claimants: [NODE, other] }, ""],
    ["the record is of one that has it no longer", recorded("10.6.0.6", other), {}, "write"],
    ["the same, of the Node that had the name before", recorded("10.6.0.6", { ...NODE, uid: "old" }), {}, "write"],
    ["the record is the API server's, which is unread", recorded("10.6.0.6", SERVER), { isSynced: false }, ""],
  ])("%s", (_, allocation, world, wanted) => {
    const { missing, contested } = planOf({ claimants: [NODE], allocations: [allocation], ...world });
    expect([...missing.map(() => "write"), ...contested.map(() => "contested")].join()).toBe(wanted);
  });
});

const ITS = { workload: recorded("10.6.0.5", SERVER).workload };
const decide = (found: Claimant | undefined, changes: object = {}, world: Parameters<typeof cachesOf>[0] = {}) =>
  decideRecord(cachesOf(world), recorded("10.6.0.5", FRONT, changes), found);
it.each<[string, Parameters<typeof decide>, string]>([
  ["stays while its Service has the address", [FRONT], "alive"],
  ["ends with its Service", [undefined], "gone"],
  ["ends when the Service is another one", [{ ...FRONT, uid: "later" }], "gone"],
  ["ends when the Service has another address", [{ ...FRONT, addresses: ["10.6.0.6"] }], "gone"],
  ["ends when its pool is gone", [FRONT, { pool: "old" }], "gone"],
  ["ends when the address is reserved", [FRONT, {}, { reserved: ["10.6.0.5"] }], "gone"],
  ["of the API server stays while an EndpointSlice has it", [SERVER, ITS, { apiServer: ["10.6.0.5"] }], "alive"],
  ["of the API server ends by what was read", [SERVER, ITS], "gone"],
  ["of the API server never ends by what was not read", [SERVER, ITS, { isSynced: false }], "unknown"],
])("a record %s", (_, args, wanted) => expect(decide(...args)).toBe(wanted));

describe("the API server", () => {
  it("has the addresses of its EndpointSlices", () => {
    const addresses = ["10.0.0.1", "10.0.0.2"];
    expect(readEndpoints({ endpoints: addresses.map((each) => ({ addresses: [each] })) })).toEqual(addresses);
    expect(readEndpoints({})).toEqual([]);
  });

  it.each([
    ["10.0.0.1:6443", ["10.0.0.1"]],
    ["10.0.0.1", ["10.0.0.1"]],
    ["'[fd00::1]:6443'", ["fd00::1"]],
    ["api.example.org:6443", ["api.example.org"]],
    ["''", [""]],
  ])("has addresses that kubeadm names: %s", (text, wanted) =>
    expect(readControlPlane({ data: { ClusterConfiguration: `controlPlaneEndpoint: ${text}\n` } })).toEqual(wanted),
  );

  it("has nothing of settings that name none", () => expect(readControlPlane({ data: {} })).toEqual([]));
});

it("a Service has the addresses of its load balancers, and none that its author writes", () => {
  const metadata = { namespace: "shop", name: "front", uid: "u1" };
  const spec = { clusterIP: "10.96.0.1", externalIPs: ["10.0.0.1"], loadBalancerIP: "10.0.0.2" };
  const ingress = [{ ip: "10.0.0.4" }, { hostname: "lb" }, { ip: "10.0.0.3" }];
  expect(readService({ metadata, spec, status: { loadBalancer: { ingress } } })).toEqual({
    kind: "Service",
    ...metadata,
    addresses: ["10.0.0.4", "10.0.0.3"],
  });
  expect(readService({ metadata, spec, status: { loadBalancer: {} } })).toBeUndefined();
});
