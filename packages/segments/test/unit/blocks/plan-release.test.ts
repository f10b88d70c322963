import { describe, expect, it } from "vitest";
import { formatRange } from "../../../../../host/net/range.ts";
import { encodeLoss, exemptOf, findLost, hasWritten, refuseLoss } from "../../../blocks/plan-release.ts";
import { rangeOf } from "./range-object.ts";

const B = { member: "b", pool: "lan" };
const member = (change: object = {}) => ({ cluster: "uid-b", token: "t", writes: 5, epoch: "e1", ...change });
const status = (change: object = {}) => ({
  ...{ sequence: 9, epoch: "e1", leases: { "10.6.0.0/28": { member: "a", pool: "lan" }, "10.6.0.16/28": B } },
  members: { b: member() },
  ...change,
});
const lost = (before: object, name = "b", spec: object = {}) =>
  findLost(rangeOf({ subnet: "10.6.0.0/26", ...spec }, before), name);

describe("what is probed of a lost cluster", () => {
  const all = ["10.6.0.16/28", "10.6.0.32/28", "10.6.0.48/28"];
  const gone = { epoch: "e2", members: { b: member({ gone: true }) } };
  it.each<[what: string, before: object, blocks: readonly string[] | undefined]>([
    ["the blocks that it has", {}, all.slice(0, 1)],
    ["all that no other has, if it has not written since the hub was restored", { epoch: "e2", restored: true }, all],
    ["the same if the restored hub does not know it", { restored: true, members: {} }, all],
    ["nothing, if it has never written", { leases: {}, members: {} }, []],
    ["what is left of it after it was declared gone", gone, all.slice(0, 1)],
  ])("is %s", (_, change, blocks) => expect(lost(status(change))?.blocks).toEqual(blocks));

  it("is nothing of a name that no range knows", () => expect(lost(status(), "z")).toBeUndefined());

  it("is no router, node or excluded address", () => {
    const range = rangeOf({ gateway: "10.6.0.17", nodeIPs: ["10.6.0.20-10.6.0.22"], excludeIPs: ["10.6.0.31"] });
    expect(exemptOf(range).map(formatRange)).toEqual(["10.6.0.31", "10.6.0.20-10.6.0.22", "10.6.0.17"]);
  });
});

it.each<[what: string, before: object, cluster: string, why: string | undefined]>([
  ["another cluster", {}, "uid-a", undefined],
  ["the own cluster", {}, "uid-b", "it is this cluster"],
  ["one that is gone", { leases: {}, members: { b: member({ gone: true }) } }, "uid-a", "it was declared gone already"],
  ["one that was declared gone by hand, with leases", { members: { b: member({ gone: true }) } }, "uid-a", undefined],
])("%s may be declared gone unless there is a reason", (_, change, cluster, why) => {
  const found = lost(status(change));
  expect(found && refuseLoss(found, cluster)).toBe(why);
});

it.each<[what: string, after: object, wanted: boolean]>([
  ["nothing", {}, false],
  ["a write of another member", { sequence: 10, members: { b: member(), a: member({ cluster: "uid-a" }) } }, false],
  ["another token", { members: { b: member({ token: "u" }) } }, true],
  ["another lease", { leases: { "10.6.0.16/28": B, "10.6.0.32/28": B } }, true],
  ["its end", { leases: {}, members: {} }, true],
])("a lost cluster that may be alive is found by %s", (_, after, wanted) => {
  const before = lost(status());
  expect(before && hasWritten(before, lost(status(after)))).toBe(wanted);
});

it("the tombstone keeps the cluster, and ends its leases and disputes", () => {
  const before = status({ members: { b: member({ contested: true, disputed: ["10.6.0.0/28"] }) } });
  expect(encodeLoss(rangeOf({}, before), "b")).toEqual({
    ...{ sequence: 10, epoch: "e1", leases: { "10.6.0.16/28": null } },
    members: { b: { ...member(), contested: null, gone: true, disputed: null } },
  });
});

it("a member that a restored hub does not know gets a tombstone, too", () => {
  expect(encodeLoss(rangeOf({}, status({ leases: {}, members: {} })), "b")).toMatchObject({
    members: { b: { cluster: "", gone: true } },
  });
});
