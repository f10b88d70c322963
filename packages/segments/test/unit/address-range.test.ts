/** AddressRanges and RangeMembers of hubs that have another version, or that no rule of the API server has checked. */
import { expect, it } from "vitest";
import { formatRange } from "../../../../host/net/range.ts";
import { decodeAddressRange } from "../../address-range.ts";
import { decodeRangeMember } from "../../range-member.ts";

const metadata = { name: "lan", uid: "r", resourceVersion: "1" };
const spec = { subnet: "10.6.0.0/24", blockSize: 28 };
const RANGE = { apiVersion: "ipam.vendor.io/v1", kind: "AddressRange", metadata, spec };
const BLOCK = { pool: "lan", request: "r", since: "2026-01-01T00:00:00Z" };
const STATUS = { cluster: "c", token: "t", writes: 1, blocks: { everything: BLOCK, "10.6.0.0/28": BLOCK } };
const MEMBER = {
  ...{ apiVersion: "ipam.vendor.io/v1", kind: "RangeMember", metadata: { ...metadata, name: "lan.east" } },
  ...{ spec: { range: "lan", member: "east", user: "u", maxBlocks: 3 }, status: STATUS },
};

it.each<[what: string, change: object, why: RegExp]>([
  ["of another version", { apiVersion: "ipam.vendor.io/v2" }, /apiVersion.*found "ipam\.vendor\.io\/v2"/],
  ["with a field that this version does not know", { spec: { ...RANGE.spec, blockSizes: [28] } }, /blockSizes/],
  ["with a block size that does not fit", { spec: { ...RANGE.spec, blockSize: 23 } }, /blockSize.*24 to 32/],
  ["of too many blocks", { spec: { subnet: "10.0.0.0/8", blockSize: 28 } }, /blockSize.*1 to 2048 blocks/],
  ["with blocks of the other family", { spec: { subnet: "fd00::/64", blockSize: 28 } }, /blockSize.*120 to 128/],
])("a range %s is refused as a whole: nothing is leased from it", (_what, change, why) => {
  const decode = () => decodeAddressRange({ ...RANGE, ...change }, 'AddressRange "lan"');
  expect(decode).toThrow(why);
  expect(decode).toThrow(/^AddressRange "lan"/);
});

it("nodes' addresses of the other family are passed over", () => {
  const { nodes } = decodeAddressRange({ ...RANGE, spec: { ...spec, nodeIPs: ["10.6.0.9", "fd00::9"] } }, "it").spec;
  expect(nodes.map(formatRange)).toEqual(["10.6.0.9"]);
});

it("a member is read, also with a text that is no block; without a status as one that has written nothing", () => {
  const { status: _, ...fresh } = MEMBER;
  expect(decodeRangeMember(fresh, "m").status).toEqual({
    ...{ cluster: "", token: "", writes: 0, isContested: false, blocks: {} },
  });
  const status = { ...STATUS, later: 1, contested: true };
  expect(decodeRangeMember({ ...MEMBER, status }, "m").status).toEqual({ ...STATUS, isContested: true });
});

it.each<[what: string, change: object, why: RegExp]>([
  ["of another version", { spec: { ...MEMBER.spec, role: "x" } }, /role/],
  ["with blocks that cannot be read", { status: { ...STATUS, blocks: { "10.6.0.0/28": "lan" } } }, /blocks/],
  ["without a number of writes", { status: { cluster: "c", token: "t" } }, /writes/],
])("a member %s is refused: it may have blocks", (_what, change, why) => {
  expect(() => decodeRangeMember({ ...MEMBER, ...change }, "m")).toThrow(why);
});
