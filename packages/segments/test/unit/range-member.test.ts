import { expect, it } from "vitest";
import { decodeRangeMember } from "../../range-member.ts";

const BLOCK = { pool: "lan", request: "1e6f0000-0000-4000-8000-000000000000", since: "2026-01-01T00:00:00Z" };
const object = (blocks: object) => ({
  ...{ apiVersion: "ipam.vendor.io/v1", kind: "RangeMember", metadata: { name: "lan.west", uid: "u" } },
  spec: { range: "lan", member: "west", user: "west", maxBlocks: 3 },
  status: { cluster: BLOCK.request, token: BLOCK.request, writes: 1, blocks },
});

it("a member that writes no block keeps no other from reading it", () => {
  const { status } = decodeRangeMember(object({ everything: BLOCK, "10.6.0.0/28": BLOCK }), "it");
  expect(Object.keys(status.blocks)).toEqual(["everything", "10.6.0.0/28"]);
});

it("a status that cannot be read is refused: its addresses must not be taken for free", () =>
  expect(() => decodeRangeMember(object({ "10.6.0.0/28": {} }), "it")).toThrow(/pool/));
