import { expect, it } from "vitest";
import { describeShared, OTHER_KINDS } from "../../../../host/controller/conditions/other-allocators.ts";
import type { IpPool } from "../../../../host/resources/ip-pool.ts";
import { pool, reserved } from "./judged.ts";

const { IPAddressPool, CiliumLoadBalancerIPPool } = OTHER_KINDS;

it.each([
  ["MetalLB's", IPAddressPool, { addresses: ["10.6.0.8/30", "10.6.0.20 - 10.6.0.29", "x", "fd00::/120"] }],
  ["Cilium's", CiliumLoadBalancerIPPool, { blocks: [{ cidr: "10.6.0.8/30" }, { start: "10.6.0.20", stop: "10.6.0.29" }, {}] }], // biome-ignore format: one row
] as const)("%s ranges are found in a pool, without what it excludes or reserves", (_, { read }, spec) => {
  const blue = pool("blue", { subnet: "10.6.0.0/24", ips: ["10.6.0.9-10.6.0.24"], excludeIPs: ["10.6.0.24"] })
    .value as IpPool;
  const kept = reserved("kept", { ips: ["10.6.0.9"] }).value;
  const others = [
    { name: "A lan", ranges: read({ spec }) },
    { name: "A wan", ranges: read({ spec: { addresses: [], blocks: [] } }) },
  ];
  expect(describeShared(blue, kept === undefined ? [] : [kept], others)).toEqual([
    "6 addresses, from 10.6.0.10 on, are also in A lan",
  ]);
  expect(describeShared(blue, [], [])).toEqual([]);
});

it("one that is disabled, a single address, and an object of another form, give their ranges", () => {
  const { read } = CiliumLoadBalancerIPPool;
  expect(read({ spec: { disabled: true, blocks: [{ cidr: "10.6.0.8/30" }] } })).toEqual([]);
  expect(read({ spec: { blocks: [{ start: "10.6.0.8" }] } })).toHaveLength(1);
  for (const none of [{}, { spec: 3 }, { spec: { blocks: 3 } }]) expect(read(none)).toEqual([]);
  for (const none of [{}, { spec: { addresses: "x" } }]) expect(IPAddressPool.read(none)).toEqual([]);
});
