import { expect, it } from "vitest";
import { addAddresses } from "../../../../host/agent/ipam/add.ts";
import { identifyRequest, type NicClaim } from "../../../../host/agent/ipam/pod-identity.ts";
import { formatIp } from "../../../../host/net/ip.ts";
import { decodeIpamClaim } from "../../../../host/resources/workloads/ipam-claim.ts";
import { clusterIpam } from "../../../world/cluster-ipam.ts";
import { addRequest, openNode } from "../../../world/node.ts";
import { decodedSnapshot, ipPool, vendorConf } from "../../../world/subjects.ts";

const IPPOOLS = [
  { interface: "eth0", ipv4: ["blue"] },
  { interface: "net1", ipv4: ["green"] },
];
const POD = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: {
    ...{ namespace: "shop", name: "web-0", uid: "uid-1" },
    annotations: { "ipam.vendor.io/ippools": JSON.stringify(IPPOOLS), "k8s.v1.cni.cncf.io/networks": "lab" },
  },
};

function reservedIp(address: string, name: string): object {
  const spec = { ips: [address], owner: { namespace: "shop", name } };
  return { apiVersion: "ipam.vendor.io/v1", kind: "ReservedIP", metadata: { name: "one" }, spec };
}

function claimOf(ifName: string, spec: object, status: object): NicClaim {
  const name = `web.${ifName}`;
  const managedFields = [
    { manager: "berth-controller", subresource: "status", fieldsV1: { "f:status": { "f:ips": {} } } },
  ];
  const metadata = { namespace: "shop", name, uid: `uid-${name}`, managedFields };
  const claim = { metadata, spec: { network: "lab", interface: ifName, ...spec }, status };
  return { namespace: "shop", name, claim: decodeIpamClaim({ ...claim, apiVersion: "", kind: "IPAMClaim" }, name) };
}

interface Circumstances {
  /** By NIC. */
  readonly statuses?: Record<string, object>;
  /** The first address of pool blue is reserved for this pod. */
  readonly reservedFor?: string;
  readonly isMigrationTarget?: boolean;
}

/** ADDs of the NICs of a pod whose NICs have IPAMClaims, in order. Returns the bound addresses after each. */
async function bound(
  ifNames: readonly string[],
  specs: Record<string, object>,
  { statuses = {}, reservedFor: name, isMigrationTarget = false }: Circumstances = {},
) {
  const pools = [ipPool("blue", "10.6.0.0/24"), ipPool("green", "10.7.0.0/24")];
  const reserved = name === undefined ? [] : [reservedIp("10.6.0.1", name)];
  const snapshot = decodedSnapshot(vendorConf("enableIPv6: false"), ...pools, ...reserved, POD);
  const node = await openNode({ snapshot });
  const claims = new Map(
    ["eth0", "net1"].map((each) => [each, claimOf(each, specs[each] ?? {}, statuses[each] ?? {})]),
  );
  const { identifier } = node.ipam();
  const identify = async (...[request]: Parameters<typeof identifier.identify>) => ({
    ...identifyRequest(request, snapshot),
    ...{ claims, isMigrationTarget },
  });
  const deps = node.ipam({ identifier: { ...identifier, identify } });
  const seen: string[] = [];
  for (const ifName of ifNames) {
    await addAddresses(deps, addRequest(ifName), new AbortController().signal);
    const rows = await node.registry.list(undefined, 10);
    seen.push(rows.map((row) => `${row.ifName}=${formatIp(row.ip)}`).join(" "));
  }
  return seen;
}

it.each<[what: string, ifName: string, other: string, specs: Record<string, object>, statuses: Record<string, object>]>(
  [
    ["of the second NIC", "eth0", "net1=10.7.0.9", { net1: { ipRequests: ["10.7.0.9/24"] } }, {}],
    ["of the first NIC, attached later", "net1", "eth0=10.6.0.9", { eth0: { ipRequests: ["10.6.0.9/24"] } }, {}],
    ["that has been given an address", "eth0", "net1=10.7.0.9", {}, { net1: { ips: ["10.7.0.9/24"] } }],
  ],
)("the addresses of an IPAMClaim %s are claimed by that NIC's ADD alone", async (_, ifName, other, specs, statuses) => {
  const [otherName = ""] = other.split("=");
  const [first, second] = await bound([ifName, otherName], specs, { statuses });
  expect(first).toMatch(new RegExp(`^${ifName}=[0-9.]+$`));
  expect(second?.split(" ")).toContain(other);
});

it("those of an IPAMClaim that requests none are claimed with the first NIC's", async () => {
  const [first] = await bound(["eth0"], {});
  expect(first).toMatch(/^eth0=10\.6\.0\.\d+ net1=10\.7\.0\.\d+$/);
});

it("an address reserved for a machine, or reported of its claim, parts it from nothing while it migrates", async () => {
  expect((await bound(["eth0"], {}, { reservedFor: "web-0" }))[0]).toContain("eth0=10.6.0.1");
  const [migrated] = await bound(["eth0"], {}, { reservedFor: "web-0", isMigrationTarget: true });
  expect(migrated).toMatch(/eth0=10\.6\.0\.(?!1\b)/);
  // The status of its claim may be one start behind.
  const statuses = { eth0: { ips: ["10.6.0.9/24"] } };
  expect((await bound(["eth0"], {}, { statuses }))[0]).toContain("eth0=10.6.0.9");
  const [behind] = await bound(["eth0"], {}, { statuses, isMigrationTarget: true });
  expect(behind).toMatch(/eth0=10\.6\.0\.(?!9\b)/);
});

it("an address that Berth gave to an IPAMClaim, and that is reserved for another pod since, is no demand", async () => {
  const [first] = await bound(["eth0"], {}, { statuses: { eth0: { ips: ["10.6.0.1/24"] } }, reservedFor: "nobody" });
  expect(first).toMatch(/eth0=10\.6\.0\.(?!1\b)/);
});

it.each([
  [
    "an annotation",
    // IPv6 is disabled.
    {
      ...POD,
      metadata: { ...POD.metadata, annotations: { "ipam.vendor.io/ips": '[{"ipv4":"10.6.0.9","ipv6":"fd00::9"}]' } },
    },
  ],
  ["a reservation", reservedIp("10.6.0.9", "web-0")],
])("an address is demanded by %s alone", async (_, manifest) => {
  const pools = [ipPool("blue", "10.6.0.0/24", { default: true })];
  const six = { ...reservedIp("fd00::8", "web-0"), metadata: { name: "six" } };
  const node = await openNode({ snapshot: decodedSnapshot(vendorConf("enableIPv6: false"), ...pools, six, manifest) });
  await addAddresses(node.ipam(), addRequest("eth0"), new AbortController().signal);
  expect((await node.states()).Bound).toEqual(["10.6.0.9"]);
});

it.each([false, true])(
  "an ascending pool is searched from the pod's place after a proxy ARP: %s",
  async (isSuspect) => {
    const pools = [ipPool("blue", "10.6.0.0/24", { selection: "ascending", default: true })];
    const node = await openNode({ snapshot: decodedSnapshot(vendorConf("enableIPv6: false"), ...pools) });
    const { detection } = node.ipam();
    const prober = { salt: "", hasSuspect: () => isSuspect } as unknown as typeof detection.prober;
    const deps = node.ipam({ detection: { ...detection, prober } });
    await addAddresses(deps, addRequest("eth0"), new AbortController().signal);
    expect((await node.states()).Bound?.join() === "10.6.0.1").toBe(!isSuspect);
  },
);

/**
 * An ADD for which there is no pool, while these happen one after the other. Returns the refusal, or "served", and
 * how often pools were selected.
 */
async function selections(...events: ("freed" | "other pools" | "the pool")[]) {
  const others = ipPool("green", "10.7.0.0/24", { namespaceName: ["bank"] });
  const settings = vendorConf("enableIPv6: false");
  const node = await openNode({ snapshot: decodedSnapshot(settings, others) });
  const happen = {
    freed: () => {},
    "other pools": () => node.follow(decodedSnapshot(settings, others)),
    "the pool": () => node.follow(decodedSnapshot(settings, others, ipPool("blue", "10.6.0.0/24", { default: true }))),
  };
  let changeCount = 0;
  const poolChanges = {
    get changeCount() {
      return changeCount;
    },
    changed: async () => {
      const event = events.shift();
      if (event === undefined) return false;
      happen[event]();
      changeCount++;
      return true;
    },
  };
  let selected = 0;
  const { networks } = node.ipam();
  const definitionOf: typeof networks.definitionOf = (nic) => {
    selected++;
    return networks.definitionOf(nic);
  };
  const deps = node.ipam({ networks: { ...networks, definitionOf }, cluster: clusterIpam({ poolChanges }) });
  const outcome = await addAddresses(deps, addRequest("eth0"), new AbortController().signal).then(
    () => "served",
    ({ code }) => code,
  );
  return [outcome, selected, events.length];
}

it("an ADD that no pool can serve selects anew when pools change, and not when addresses become free", async () => {
  expect(await selections()).toEqual([100, 1, 0]);
  expect(await selections("freed", "freed", "freed")).toEqual([100, 1, 0]);
  expect(await selections("freed", "other pools", "freed", "freed")).toEqual([100, 2, 0]);
  expect(await selections("freed", "the pool", "freed")).toEqual(["served", 2, 1]);
});
