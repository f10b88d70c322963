/** AddressRanges of hubs that have another version, or that no rule of the API server has checked. */
import { expect, it } from "vitest";
import { decodeAddressRange } from "../../address-range.ts";

const metadata = { name: "lan", uid: "r", resourceVersion: "1" };
const spec = { subnet: "10.6.0.0/24", blockSize: 28 };
const RANGE = { apiVersion: "ipam.vendor.io/v1", kind: "AddressRange", metadata, spec };
const STATUS = { sequence: 1, epoch: "e1", leases: {}, members: {} };
const EAST = { cluster: "c", token: "t", writes: 1, epoch: "e1" };

const decode = (change: object) => decodeAddressRange({ ...RANGE, ...change }, 'AddressRange "lan"');

it("a range is read, without a status as one that nobody has written", () => {
  expect(decode({}).status).toEqual({ sequence: 0, epoch: "", isRestored: false, leases: {}, members: {} });
  expect(decode({ status: { ...STATUS, members: { east: EAST } } }).status.members.east).toMatchObject(EAST);
});

it("a status may have more than this version knows", () => {
  const status = { ...STATUS, later: 1, members: { east: { ...EAST, later: true } } };
  expect(decode({ status }).status.sequence).toBe(1);
});

it.each<[what: string, change: object, why: RegExp]>([
  ["of another version", { apiVersion: "ipam.vendor.io/v2" }, /apiVersion.*found "ipam\.vendor\.io\/v2"/],
  ["with a field that this version does not know", { spec: { ...RANGE.spec, blockSizes: [28] } }, /blockSizes/],
  ["with a block size that does not fit", { spec: { ...RANGE.spec, blockSize: 23 } }, /blockSize.*24 to 32/],
  ["of too many blocks", { spec: { subnet: "10.0.0.0/8", blockSize: 28 } }, /blockSize.*1 to 2048 blocks/],
  ["with blocks of the other family", { spec: { subnet: "fd00::/64", blockSize: 28 } }, /blockSize.*120 to 128/],
  ["without leases that can be read", { status: { ...STATUS, leases: { "10.6.0.0/28": "east" } } }, /leases/],
  ["without a sequence", { status: { epoch: "e1" } }, /sequence/],
])("a range %s is refused as a whole: nothing is leased from it", (_what, change, why) => {
  expect(() => decode(change)).toThrow(why);
  expect(() => decode(change)).toThrow(/^AddressRange "lan"/);
});
