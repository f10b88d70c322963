/**
 * What a member's stolen token makes of an AddressRange in up to four writes: a search over all that the hub's policy
 * lets through, between states of one block and two members.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { celValue } from "../../../../test/fakes/admission/kubernetes-cel.ts";
import { Policies, type PolicyDocument } from "../../../../test/fakes/admission/policies.ts";
import { root } from "../../../../test/unit/house/sources.ts";
import { searchWrites } from "../../../../test/world/search-writes.ts";

/** Without the condition that the writer may not change the range itself, which needs rights: a member may not. */
const text = readFileSync(join(root, "deploy/hub.yaml"), "utf8").replace(/ {2}matchConditions:\n(?: {4}.*\n)+/, "");
const policies = new Policies(parseAllDocuments(text).map((document) => document.toJS() as PolicyDocument));
const BLOCK = "10.6.0.0/29";
const members = ["a", "b"].map((name) => ({ name, user: `user-${name}`, maxBlocks: 2 }));
const spec = { subnet: "10.6.0.0/28", blockSize: 29, members };

/** Who has the block, what a and b are, the epoch, and whether the hub was restored. */
type State = readonly [holder: string, a: string, b: string, epoch: string, restored: boolean];
const STATES = ["", "a", "b"].flatMap((holder) =>
  ["", "in", "contested", "gone"].flatMap((a) =>
    ["", "in", "disputed", "gone"].flatMap((b) =>
      ["e1", "e2"].flatMap((epoch) => [true, false].map((restored): State => [holder, a, b, epoch, restored])),
    ),
  ),
);

/** As the hub has it after so many writes. */
function rangeOf([holder, a, b, epoch, restored]: State, writes: number) {
  const entry = (cluster: string, is: string, more: object) =>
    is === "" ? {} : { [cluster]: { cluster, ...more, [is]: is === "disputed" ? [BLOCK] : true } };
  const entries = {
    ...entry("a", a, { token: `t${writes}`, writes, epoch }),
    ...entry("b", b, { token: "t", writes: 1, epoch: "e1" }),
  };
  const leases = holder === "" ? {} : { [BLOCK]: { member: holder, pool: "lan" } };
  const status = { sequence: writes, epoch, restored, leases, members: entries };
  return celValue({ metadata: { name: "lan" }, spec, status });
}

it("a member changes nothing of another's, takes no block that it uses, and does not come back by itself", () => {
  const target = { group: "ipam.vendor.io", resource: "addressranges/status", operation: "UPDATE" };
  const request = { userInfo: { username: "user-a" } };
  const isAllowed = (before: State, after: State): boolean =>
    policies.refusal(target, { request, oldObject: rangeOf(before, 1), object: rangeOf(after, 2) }) === undefined;
  const isBad = ([holder, a, b]: State, [after, aAfter, bAfter]: State): boolean =>
    (holder === "b" && after !== "b") ||
    b !== bAfter ||
    (b === "disputed" && holder !== "a" && after === "a") ||
    (a === "gone" && aAfter !== "gone");
  expect(searchWrites(STATES, isAllowed, isBad)).toEqual([]);
  expect(isAllowed(["", "in", "in", "e1", false], ["a", "in", "in", "e1", false])).toBe(true);
});
