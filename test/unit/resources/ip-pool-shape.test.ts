import { expect, it } from "vitest";
import { formatRange } from "../../../host/net/range.ts";
import { decodeIpPool } from "../../../host/resources/ip-pool.ts";
import { poolShape } from "../../../host/resources/ip-pool-shape.ts";
import { decodeReservedIp } from "../../../host/resources/reserved-ip.ts";

const frame = (kind: string, spec: object) => ({
  apiVersion: "ipam.vendor.io/v1",
  kind,
  metadata: { name: "x" },
  spec,
});

function shapeOf(spec: object, reserved: object[] = []) {
  const pool = decodeIpPool(frame("IPPool", spec), "pool");
  const shape = poolShape(
    pool,
    reserved.map((other) => decodeReservedIp(frame("ReservedIP", other), "reserved")),
  );
  return { ranges: shape.ranges.map(formatRange), masked: shape.masked.map(formatRange) };
}

const EDGES = ["10.0.0.0", "10.0.0.255"];
const rows: [title: string, spec: object, reserved: object[], ranges: string[], masked: string[]][] = [
  ["a whole /24", { subnet: "10.0.0.0/24" }, [], ["10.0.0.0-10.0.0.255"], EDGES],
  ["nothing", { subnet: "10.0.0.0/24", ips: [] }, [], [], EDGES],
  ["a /30", { subnet: "10.0.0.4/30" }, [], ["10.0.0.4-10.0.0.7"], ["10.0.0.4", "10.0.0.7"]],
  ["a /31 has no edges", { subnet: "10.0.0.4/31" }, [], ["10.0.0.4-10.0.0.5"], []],
  ["a /32 has no edges", { subnet: "10.0.0.4/32" }, [], ["10.0.0.4"], []],
  ["a /0", { subnet: "0.0.0.0/0", ips: [] }, [], [], ["0.0.0.0", "255.255.255.255"]],
  ["IPv6 keeps its first and last address", { subnet: "fd00::/126" }, [], ["fd00::-fd00::3"], []],
  [
    "ranges are sorted",
    { subnet: "10.0.0.0/24", ips: ["10.0.0.9", "10.0.0.1-10.0.0.3"] },
    [],
    ["10.0.0.1-10.0.0.3", "10.0.0.9"],
    EDGES,
  ],
  [
    "the gateway is masked",
    { subnet: "10.0.0.0/24", gateway: "10.0.0.1" },
    [],
    ["10.0.0.0-10.0.0.255"],
    ["10.0.0.0-10.0.0.1", "10.0.0.255"],
  ],
  [
    "an IPv6 gateway is masked",
    { subnet: "fd00::/64", gateway: "fd00::1" },
    [],
    ["fd00::-fd00::ffff:ffff:ffff:ffff"],
    ["fd00::1"],
  ],
  [
    "excluded, gateway and edges are joined where they overlap",
    { subnet: "10.0.0.0/24", gateway: "10.0.0.3", excludeIPs: ["10.0.0.0-10.0.0.5", "10.0.0.250-10.0.0.255"] },
    [],
    ["10.0.0.0-10.0.0.255"],
    ["10.0.0.0-10.0.0.5", "10.0.0.250-10.0.0.255"],
  ],
  [
    "reserved addresses of the subnet are masked, others ignored",
    { subnet: "10.0.0.0/24" },
    [{ ips: ["10.0.0.7-10.0.0.8", "10.9.0.1"] }, { ips: ["fd00::1"] }, { ips: ["10.0.0.8-10.0.0.20"] }],
    ["10.0.0.0-10.0.0.255"],
    ["10.0.0.0", "10.0.0.7-10.0.0.20", "10.0.0.255"],
  ],
  [
    "reserved addresses of another space are not masked",
    { subnet: "10.0.0.0/24", addressSpace: "lab" },
    [{ ips: ["10.0.0.7"] }, { ips: ["10.0.0.9"], addressSpace: "lab" }, { ips: ["10.0.0.11"], addressSpace: "other" }],
    ["10.0.0.0-10.0.0.255"],
    ["10.0.0.0", "10.0.0.9", "10.0.0.255"],
  ],
  [
    "a reserved range is masked as far as the subnet goes",
    { subnet: "10.0.1.0/24" },
    [{ ips: ["10.0.0.0-10.0.9.255"] }],
    ["10.0.1.0-10.0.1.255"],
    ["10.0.1.0-10.0.1.255"],
  ],
];

it.each(rows)("the shape of a pool: %s", (_title, spec, reserved, ranges, masked) => {
  expect(shapeOf(spec, reserved)).toEqual({ ranges, masked });
});

it("a /8 of 1,024 ranges has its shape in less than 50 ms", () => {
  const ips = Array.from(
    { length: 1_024 },
    (_, i) => `10.${i >> 2}.${(i & 3) * 64}.0-10.${i >> 2}.${(i & 3) * 64 + 31}.255`,
  );
  const pool = decodeIpPool(frame("IPPool", { subnet: "10.0.0.0/8", ips }), "pool");
  const times = Array.from({ length: 5 }, () => {
    const began = performance.now();
    expect(poolShape(pool, []).ranges).toHaveLength(1_024);
    return performance.now() - began;
  });
  expect(Math.min(...times)).toBeLessThan(50);
});
