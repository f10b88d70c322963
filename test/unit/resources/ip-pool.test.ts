import { describe, expect, it } from "vitest";
import { formatIp } from "../../../host/net/ip.ts";
import { formatPrefix } from "../../../host/net/prefix.ts";
import { formatRange } from "../../../host/net/range.ts";
import { decodeIpPool } from "../../../host/resources/ip-pool.ts";
import { poolShape } from "../../../host/resources/ip-pool-shape.ts";
import { decodeReservedIp } from "../../../host/resources/reserved-ip.ts";
import { decodeSubnet } from "../../../host/resources/subnet.ts";
import { costRatio } from "../../world/cpu-time.ts";
import { cases, rows } from "../../world/rows.ts";

const SUBNET = "10.6.0.0/24";

function frame(kind: string, spec: unknown, metadata: object = {}) {
  return { apiVersion: "ipam.vendor.io/v1", kind, metadata: { name: "blue", ...metadata }, spec };
}

function poolOf(spec: object, metadata: object = {}) {
  return decodeIpPool(frame("IPPool", spec, metadata), "pool");
}

it("a pool with a subnet alone is the whole subnet", () => {
  const { spec, ...rest } = poolOf({ subnet: SUBNET });
  expect(rest).toEqual({ kind: "IPPool", name: "blue", labels: {}, deleting: false });
  expect({ ...spec, subnet: formatPrefix(spec.subnet), ranges: spec.ranges.map(formatRange) }).toEqual({
    ...{ family: 4, subnet: SUBNET, ranges: ["10.6.0.0-10.6.0.255"], excluded: [], routes: [] },
    ...{ namespaceName: [], nodeName: [], multusName: [] },
    ...{ default: false, disable: false, addressSpace: "", selection: "hash" },
  });
});

it("a key whose value is null is absent, as the API server has it", () => {
  const spec = { subnet: SUBNET, ips: null, gateway: null, podAffinity: { matchLabels: null } };
  expect(poolOf(spec, { labels: null }).spec).toMatchObject({
    ...poolOf({ subnet: SUBNET }).spec,
    podAffinity: { matchLabels: {} },
  });
});

it("networks are ranges of all their addresses", () => {
  const ips = ["10.6.0.64/26", "10.6.0.9/32"];
  const { ranges, excluded } = poolOf({ subnet: SUBNET, ips, excludeIPs: ["10.6.0.64/31"] }).spec;
  expect(ranges.map(formatRange)).toEqual(["10.6.0.64-10.6.0.127", "10.6.0.9"]);
  expect(excluded.map(formatRange)).toEqual(["10.6.0.64-10.6.0.65"]);
});

it("an empty list of ranges is no address", () => expect(poolOf({ subnet: SUBNET, ips: [] }).spec.ranges).toEqual([]));

it.each<[status: unknown, wanted: string | undefined]>([
  [{ wanted: "n1 7", used: 3 }, "n1 7"],
  [{ wanted: 7 }, undefined],
  ["nonsense", undefined],
])("of the status %j the wish of an agent is read, and nothing is refused", (status, wanted) =>
  expect(decodeIpPool({ ...frame("IPPool", { subnet: SUBNET }), status }, "pool").wanted).toBe(wanted),
);

const SHORTFALL = 'has 1 of 3 addresses wanted (2 replicas and 1 more): Subnet "blue" has 0 free of 254';
const supplied = (status: string): object => ({ type: "Supplied", status, message: SHORTFALL });

it.each<[status: unknown, shortfall: string | undefined]>([
  [{ conditions: [{ type: "Ready", status: "True", message: "" }, supplied("False")] }, SHORTFALL],
  [{ conditions: [supplied("True")] }, undefined],
  [{ conditions: [7, { type: "Supplied" }, supplied("False")], wanted: 7 }, SHORTFALL],
  [{ conditions: "nonsense" }, undefined],
  ["nonsense", undefined],
])("of the status %j a generated pool's shortfall is read, and nothing is refused", (status, shortfall) =>
  expect(decodeIpPool({ ...frame("IPPool", { subnet: SUBNET }), status }, "pool").shortfall).toBe(shortfall),
);

it("every field is read", () => {
  const same = {
    nodeAffinity: { matchExpressions: [{ key: "rack", operator: "In", values: ["1"] }] },
    namespaceName: ["shop"],
    nodeName: ["n1.example.com"],
    multusName: ["Net_a", "kube-system/net-b"],
    ...{ default: true, disable: true, addressSpace: "lab", selection: "ascending" },
  };
  const { spec } = poolOf({
    ...same,
    ipVersion: 6,
    subnet: "fd00::/64",
    ips: ["fd00::10-fd00::1f", "fd00::5"],
    excludeIPs: ["fd00::11"],
    gateway: "fd00::1",
    routes: [{ dst: "fd01::/48", gw: "fd00::2" }],
    podAffinity: { matchLabels: { app: "web" } },
    namespaceAffinity: {},
    cooldown: "1m30s",
  });
  expect(spec.family).toBe(6);
  expect(spec.ranges.map(formatRange)).toEqual(["fd00::10-fd00::1f", "fd00::5"]);
  expect(spec.excluded.map(formatRange)).toEqual(["fd00::11"]);
  expect(spec.gateway && formatIp(spec.gateway)).toBe("fd00::1");
  expect(spec.routes.map(({ dst, gw }) => [formatPrefix(dst), formatIp(gw)])).toEqual([["fd01::/48", "fd00::2"]]);
  expect(spec).toMatchObject({
    ...same,
    podAffinity: { matchLabels: { app: "web" }, matchExpressions: [] },
    namespaceAffinity: { matchLabels: {}, matchExpressions: [] },
    cooldownMs: 90_000,
  });
});

describe("metadata", () => {
  it("the API server's additions are accepted", () => {
    const metadata = {
      ...{ labels: { a: "b" }, annotations: null, uid: "u", resourceVersion: "1", generation: 2 },
      ...{ creationTimestamp: null, deletionTimestamp: "2026-01-01T00:00:00Z", managedFields: [{}], finalizers: ["x"] },
    };
    expect(poolOf({ subnet: SUBNET }, metadata)).toMatchObject({ labels: { a: "b" }, deleting: true });
  });

  const refused: [metadata: object, message: string][] = [
    [{ name: undefined }, 'field "metadata.name": found nothing'],
    [{ name: "Blue" }, 'field "metadata.name": found "Blue", want a name'],
    [{ name: "a".repeat(254) }, "at most 253 characters"],
    [{ name: "a..b" }, 'found "a..b"'],
    [{ labels: { a: true } }, 'field "metadata.labels.a": found true, want text'],
    [{ Annotations: {} }, 'field "metadata.Annotations": found an unknown key, want the key "annotations"'],
  ];
  it.each(refused)("%j is refused", (metadata, message) =>
    expect(() => poolOf({ subnet: SUBNET }, metadata)).toThrow(message),
  );
});

const many = Array.from({ length: 1_025 }, (_, i) => `10.0.${i >> 8}.${i & 255}`);

/** test/cluster/crds has the other rows, for this decoder and an API server. */
it.each(rows`
  {"subnet":"FD00:0::/64"} => field "spec.subnet": found "FD00:0::/64" (that is "fd00::/64"), want its canonical form
  {"ips":["10.6.0.1/28"]} => found "10.6.0.1/28", want a network without host bits
  {"ips":["10.6.0.0/23"]} => want addresses inside 10.6.0.0/24
  {"ips":["::ffff:10.6.0.0/120"]} => want an address or a range first-last
  {"ips":["10.6.0.1","10.6.0.2","10.6.0.1"]}
    => field "spec.ips[2]": found "10.6.0.1", want addresses apart from 10.6.0.1
  {"ips":["10.6.0.1-10.6.0.9","10.6.0.2-10.6.0.3","10.6.0.8-10.6.0.12"]}
    => field "spec.ips[2]": found "10.6.0.8-10.6.0.12", want addresses apart from 10.6.0.1-10.6.0.9
  {"excludeIPs":["10.6.0.1","10.6.0.1"]} => field "spec.excludeIPs[1]": found "10.6.0.1", want addresses apart
  {"__proto__":{"disable":true}} => field "spec.__proto__": found an unknown key
`)("a spec with %s is refused", (keys, message) => {
  const spec = JSON.parse(`{"subnet":"${SUBNET}",${keys.slice(1)}`);
  expect(() => poolOf(keys.includes('"subnet"') ? JSON.parse(keys) : spec)).toThrow(message);
});

it("a Subnet is read", () => {
  const spec = { subnet: "fd00::/48", ips: ["fd00::-fd00::ff"], gateway: "fd00::1", addressSpace: "lab" };
  const value = { ...frame("Subnet", spec), status: { x: 1 } };
  const subnet = { kind: "Subnet", name: "blue", deleting: false, spec: { family: 6 } };
  expect(decodeSubnet(value, "subnet")).toMatchObject(subnet);
  expect(() => decodeSubnet({ ...value, spec: { ...spec, disable: true } }, "subnet")).toThrow("unknown key");
});

const ALL = { subnet: "::/0", ips: ["::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"] };
const eight = (ips: string[]) => ({ subnet: "10.0.0.0/8", ips });

it.each([
  ["fd00::/64 as one of 254 addresses", { subnet: "10.6.0.0/24" }, { subnet: "fd00::/64" }],
  ["::/0 as one of 254 addresses", { subnet: "10.6.0.0/24" }, ALL],
  ["8 times as many ranges", eight(many.slice(1, 129)), eight(many.slice(1))],
])("decoding takes as long as the text: %s", (_title, small, large) => {
  const decode = (spec: object) => () => {
    for (let time = 0; time < 20; time++) poolOf(spec);
  };
  expect(costRatio(decode(small), decode(large))).toBeLessThan(24);
});

const NET = { subnet: "10.0.0.0/24" };
const SPECIAL = ["223.255.255.250-224.0.0.5", "240.0.0.1"];
const JOINED = { gateway: "10.0.0.3", excludeIPs: ["10.0.0.0-10.0.0.5", "10.0.0.250-10.0.0.255"] };
const near = [{ ips: ["10.0.0.7-10.0.0.8", "10.9.0.1"] }, { ips: ["fd00::1"] }, { ips: ["10.0.0.8-10.0.0.20"] }];
const [own, other] = ["lab", "other"].map((addressSpace, at) => ({ ips: [`10.0.0.${9 + 2 * at}`], addressSpace }));
/** Its ranges, and behind a stroke the masked ones. */
it.each(cases<[spec: object, ...reserved: (object | undefined)[]]>`
  a /30 ${[{ subnet: "10.0.0.4/30" }]} => 10.0.0.4-10.0.0.7 | 10.0.0.4 10.0.0.7
  a /31 has no edges ${[{ subnet: "10.0.0.4/31" }]} => 10.0.0.4-10.0.0.5 |
  a /32 has no edges ${[{ subnet: "10.0.0.4/32" }]} => 10.0.0.4 |
  a /0 ${[{ subnet: "0.0.0.0/0", ips: [] }]} => | 0.0.0.0 255.255.255.255
  IPv6 keeps its first and last address ${[{ subnet: "fd00::/126" }]} => fd00::-fd00::3 |
  ranges are sorted ${[{ ...NET, ips: ["10.0.0.9", "10.0.0.1-10.0.0.3"] }]}
    => 10.0.0.1-10.0.0.3 10.0.0.9 | 10.0.0.0 10.0.0.255
  the gateway is masked ${[{ ...NET, gateway: "10.0.0.1" }]} => 10.0.0.0-10.0.0.255 | 10.0.0.0-10.0.0.1 10.0.0.255
  an IPv6 gateway is masked ${[{ subnet: "fd00::/64", gateway: "fd00::1" }]}
    => fd00::-fd00::ffff:ffff:ffff:ffff | fd00::1
  excluded, gateway and edges are joined where they overlap ${[{ ...NET, ...JOINED }]}
    => 10.0.0.0-10.0.0.255 | 10.0.0.0-10.0.0.5 10.0.0.250-10.0.0.255
  a link-local gateway is no address of the pool ${[{ subnet: "fd00::/120", gateway: "fe80::1" }]} => fd00::-fd00::ff |
  special addresses are no addresses of the pool ${[{ subnet: "192.0.0.0/2", ips: SPECIAL }]}
    => 223.255.255.250-223.255.255.255 240.0.0.1 | 192.0.0.0 255.255.255.255
  reserved addresses of the subnet are masked, others ignored ${[NET, ...near]}
    => 10.0.0.0-10.0.0.255 | 10.0.0.0 10.0.0.7-10.0.0.20 10.0.0.255
  reserved addresses of another space are not masked ${[{ ...NET, addressSpace: "lab" }, { ips: ["10.0.0.7"] }, own, other]}
    => 10.0.0.0-10.0.0.255 | 10.0.0.0 10.0.0.9 10.0.0.255
`)("the shape of a pool: %s", (_title, [spec, ...reserved], wanted) => {
  const { ranges, masked } = poolShape(
    decodeIpPool(frame("IPPool", spec), "pool"),
    reserved.map((each) => decodeReservedIp(frame("ReservedIP", each), "reserved")),
  );
  expect([...ranges.map(formatRange), "|", ...masked.map(formatRange)].join(" ")).toBe(wanted);
});

it("the shape of 1,024 ranges takes less than a fourth of 64 times as long as that of 16", () => {
  const shape = (length: number) => {
    const place = (i: number, more: number) => `10.${i >> 2}.${(i & 3) * 64 + more}`;
    const ips = Array.from({ length }, (_, i) => `${place(i, 0)}.0-${place(i, 31)}.255`);
    const pool = decodeIpPool(frame("IPPool", { subnet: "10.0.0.0/8", ips }), "pool");
    return () => expect(poolShape(pool, []).ranges).toHaveLength(length);
  };
  expect(costRatio(shape(16), shape(1_024), 8)).toBeLessThan(16 * 64);
});
