import { expect, it } from "vitest";
import { rangesOf } from "../../../../../host/core/spans.ts";
import { formatRange } from "../../../../../host/net/range.ts";
import { encodeRelease, hasWritten, refuseRelease } from "../../../blocks/plan-release.ts";
import { givenOf } from "../../../blocks/range-leases.ts";
import { memberOf, rangeOf } from "./range-object.ts";

const lost = memberOf("b", ["10.6.0.16/28"]);

it("no router, node, excluded or other address than the range's is probed of a lost cluster", () => {
  const range = rangeOf({ gateway: "10.6.0.17", nodeIPs: ["10.6.0.20-10.6.0.22"], excludeIPs: ["10.6.0.31"] });
  const given = rangesOf(givenOf(range, ["10.6.0.16/28", "10.7.0.0/16"]), 4);
  expect(given.map(formatRange)).toEqual(["10.6.0.16", "10.6.0.18-10.6.0.19", "10.6.0.23-10.6.0.30"]);
});

it.each<[what: string, member: typeof lost, cluster: string, why: string | undefined]>([
  ["another cluster", lost, "uid-a", undefined],
  ["the own cluster", lost, "uid-b", "it is this cluster"],
  ["one that was released", memberOf("b", []), "uid-a", "it has no blocks"],
])("%s may be released unless there is a reason", (_, member, cluster, why) => {
  expect(refuseRelease(member, cluster)).toBe(why);
});

it.each<[what: string, now: typeof lost | undefined, wanted: boolean]>([
  ["nothing", memberOf("b", ["10.6.0.16/28"]), false],
  ["another token", memberOf("b", ["10.6.0.16/28"], { token: "u" }), true],
  ["another block", memberOf("b", ["10.6.0.32/28"]), true],
  ["its object is gone", undefined, true],
])("a cluster may be alive after %s", (_, now, wanted) => expect(hasWritten(lost, now)).toBe(wanted));

it("a released cluster has no block, and another token than it remembers", () => {
  expect(encodeRelease(lost, () => "new")).toEqual({
    ...{ token: "new", writes: 2, contested: true, blocks: { "10.6.0.16/28": null } },
  });
});
