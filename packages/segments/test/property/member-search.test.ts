/**
 * The RangeMembers that a member's stolen token can make in up to four writes: a search over all writes that the hub's
 * policy permits, between states of two members.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { celValue } from "../../../../test/fakes/admission/kubernetes-cel.ts";
import { Policies, type PolicyDocument } from "../../../../test/fakes/admission/policies.ts";
import { root } from "../../../../test/unit/house/sources.ts";
import { searchWrites } from "../../../../test/world/search-writes.ts";

/** Without the condition that the writer may not change the member itself, which needs rights: a member may not. */
const text = readFileSync(join(root, "deploy/hub.yaml"), "utf8").replace(/ {2}matchConditions:\n(?: {4}.*\n)+/, "");
const policies = new Policies(parseAllDocuments(text).map((document) => document.toJS() as PolicyDocument));
const MAX_BLOCKS = 2;

/** Whose object it is, how many blocks it has, and whether they are the ones that it had. */
type State = readonly [member: string, blocks: number, others: boolean];
const STATES = ["a", "b"].flatMap((member) =>
  [0, 1, 2, 3, 4].flatMap((blocks) => [false, true].map((others): State => [member, blocks, others])),
);

function objectOf([member, count, others]: State) {
  const block = { pool: "lan", request: "r", since: "2026-01-01T00:00:00Z" };
  const blocks = Object.fromEntries(
    Array.from({ length: count }, (_, at) => [`10.${Number(others)}.0.${at}/32`, block]),
  );
  const spec = { range: "lan", member, user: `user-${member}`, maxBlocks: MAX_BLOCKS };
  const status = { cluster: member, token: "t", writes: 1, blocks };
  return celValue({ metadata: { name: `lan.${member}` }, spec, status });
}

it("a member changes nothing of another's, and has no more blocks than it may have, or had", () => {
  const target = { group: "ipam.vendor.io", resource: "rangemembers/status", operation: "UPDATE" };
  const request = { userInfo: { username: "user-a" } };
  const isAllowed = (before: State, after: State): boolean =>
    before[0] === after[0] &&
    policies.refusal(target, { request, oldObject: objectOf(before), object: objectOf(after) }) === undefined;
  const isBad = ([member, had]: State, [, has]: State): boolean => member === "b" || has > Math.max(MAX_BLOCKS, had);
  expect(searchWrites(STATES, isAllowed, isBad)).toEqual([]);
  expect(isAllowed(["a", 0, false], ["a", 2, true])).toBe(true);
  expect(isAllowed(["a", 4, false], ["a", 3, true])).toBe(true);
});
