/** Which addresses of a pool the checker of histories expects to be taken before an ADD is refused. */
import { expect, it } from "vitest";
import { parseIp } from "../../../host/net/ip.ts";
import { decodeIpPool } from "../../../host/resources/ip-pool.ts";
import { decodeReservedIp } from "../../../host/resources/reserved-ip.ts";
import { Givable } from "../../lab/history/givable.ts";

const KIND = { apiVersion: "ipam.vendor.io/v1", metadata: { name: "x" } };

interface Given {
  readonly pool: object;
  readonly reserved?: readonly object[];
  readonly occupied?: readonly string[];
}

const rows: [string, Given, bigint, string][] = [
  ["a range", { pool: { subnet: "10.6.0.0/24", ips: ["10.6.0.7-10.6.0.9"] } }, 3n, "10.6.0.7-10.6.0.9"],
  [
    "a subnet without its first and last address and its gateway",
    { pool: { subnet: "10.6.0.0/29", gateway: "10.6.0.1", ips: ["10.6.0.0-10.6.0.7"] } },
    5n,
    "10.6.0.2-10.6.0.6",
  ],
  [
    "without what it excludes",
    { pool: { subnet: "10.6.0.0/24", ips: ["10.6.0.7-10.6.0.12"], excludeIPs: ["10.6.0.9-10.6.0.10"] } },
    4n,
    "10.6.0.7-10.6.0.8, 10.6.0.11-10.6.0.12",
  ],
  [
    "without reserved ones of its address space",
    {
      pool: { subnet: "10.6.0.0/24", ips: ["10.6.0.7-10.6.0.9"] },
      reserved: [{ ips: ["10.6.0.1-10.6.0.7"] }, { ips: ["10.6.0.8"], addressSpace: "lab" }],
    },
    2n,
    "10.6.0.8-10.6.0.9",
  ],
  [
    "without those of other machines",
    { pool: { subnet: "10.6.0.0/24", ips: ["10.6.0.7-10.6.0.9"] }, occupied: ["10.6.0.9", "10.7.0.9"] },
    2n,
    "10.6.0.7-10.6.0.8",
  ],
  ["of which none is left", { pool: { subnet: "10.6.0.0/24", ips: ["10.6.0.7"] }, occupied: ["10.6.0.7"] }, 0n, ""],
  [
    "too large to be listed",
    { pool: { subnet: "fd00:6::/64", ips: ["fd00:6::10-fd00:6::ffff:ffff:ffff:fff0"] } },
    2n ** 64n - 31n,
    "fd00:6::10-fd00:6::ffff:ffff:ffff:fff0",
  ],
];

it.each(rows)("a pool is %s", (_, { pool, reserved = [], occupied = [] }, size, text) => {
  const givable = new Givable(
    decodeIpPool({ ...KIND, kind: "IPPool", spec: pool }, "pool"),
    reserved.map((spec) => decodeReservedIp({ ...KIND, kind: "ReservedIP", spec }, "reserved")),
    occupied.flatMap((each) => parseIp(each) ?? []),
  );
  expect([givable.size, String(givable)]).toEqual([size, text]);
});
