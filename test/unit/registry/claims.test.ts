import { expect, it } from "vitest";
import {
  claimAfter,
  claimOver,
  compareRecords,
  isNewClaim,
  numberOf,
  renewClaim,
  rowOf,
} from "../../../host/registry/claims.ts";
import { type Allocation, type ClaimName, UNNAMED } from "../../../host/registry/registry.ts";
import { claim, proposal } from "../../world/subjects.ts";

const WEB = { kind: "StatefulSet", namespace: "shop", name: "web", uid: "w", member: "web-0" };
const named = (number: number, id = "c", ...earlier: readonly string[]): ClaimName => ({ id, number, earlier });
const row: Allocation = {
  ...{ ...proposal("10.0.0.1"), state: "Bound", owner: "a", containerId: "c", network: "net", namespace: "shop" },
  ...{ pod: "web-0", sinceMs: 0, version: 7 },
};
const idle: Allocation = { ...row, state: "Cooling", owner: "before" };

type Record = Pick<Allocation, "claim" | "workload" | "isInUse" | "createdAt" | "version">;
const [EARLY, LATE] = ["2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"];

it.each<[what: string, first: Partial<Record>, second: Partial<Record>]>([
  ["the higher number, whatever else", { claim: named(2), createdAt: LATE, version: -9 }, { claim: named(1) }],
  ["any number before none", { claim: named(1), createdAt: LATE }, { claim: named(0) }],
  ["what an older release has retained", { workload: WEB, createdAt: LATE }, { claim: named(0) }],
  ["any number before what an older release has not", { claim: named(1), createdAt: LATE }, {}],
  ["of equal numbers the one created first", { claim: named(0), version: -9 }, { claim: named(0), createdAt: LATE }],
  ["of those created in one second the one written first", { version: -5 }, { version: -9 }],
  ["what a live pod shares, whatever its number", { isInUse: true, claim: named(0) }, { claim: named(9) }],
])("of two records comes first %s", (_, first, second) => {
  const complete = (record: Partial<Record>): Record => ({ createdAt: EARLY, version: -7, ...record });
  expect(compareRecords(complete(first), complete(second))).toBeLessThan(0);
  expect(compareRecords(complete(second), complete(first))).toBeGreaterThan(0);
});

it("a row is of its NIC's address owner, else of the claim's; only that of the claim's NIC has its attachment", () => {
  const own = { ...WEB, kind: "IPAMClaim" };
  const proposals = [proposal("10.0.0.1"), proposal("10.0.0.2", { ifName: "net1", workload: own })];
  const wanted = claim("a", proposals, { workload: WEB, netns: "/run/netns/a", netnsCookie: 7n });
  const rows = proposals.map((each) => rowOf(each, wanted));
  expect(
    rows.map(({ ifName, containerId, network, netns, netnsCookie, workload }) => [
      ...[ifName, containerId, network, netns, netnsCookie, workload],
    ]),
  ).toEqual([
    ["eth0", "c-a", "net", "/run/netns/a", 7n, WEB],
    ["net1", "", "", undefined, undefined, own],
  ]);
});

const member = { workload: WEB };

it.each<[what: string, row: Allocation, before: Allocation | undefined, number: number, claim: ClaimName]>([
  ["of a free address", row, undefined, 0, named(0, "new")],
  ["of a free address, after its member's others were read", { ...row, ...member }, undefined, 3, named(3, "new")],
  ["of the same NIC is the same", row, { ...idle, owner: "a", claim: named(2) }, 0, named(2, "c", "c")],
  ["of the same NIC, whatever was read", row, { ...idle, owner: "a", claim: named(0) }, 4, named(0, "c", "c")],
  ["of the same NIC, without a name", row, { ...idle, owner: "a" }, 0, named(0, UNNAMED, UNNAMED)],
  ["of another pod is another", row, { ...idle, claim: named(2) }, 0, named(0, "new", "c")],
  ["of the member's next pod", { ...row, ...member }, { ...idle, claim: named(2) }, 0, named(3, "new", "c")],
  ["of what was never answered", { ...row, ...member }, { ...idle, claim: named(0) }, 0, named(0, "new", "c")],
  ["of an older release's row", { ...row, ...member }, idle, 0, named(2, "new", UNNAMED)],
  ["of a quarantined address", row, { ...idle, state: "Quarantined", owner: "" }, 0, named(0, "new", UNNAMED)],
  ["remembers those before", row, { ...idle, claim: named(0, "c", "b", "c") }, 0, named(0, "new", "b", "c")],
])("the claim %s", (_, of, before, number, claim) => {
  expect(claimOver(of, before, { number, id: "new" })).toEqual(claim);
});

it("no more than eight claims are remembered", () => {
  const earlier = Array.from({ length: 9 }, (_, at) => `${at}`);
  const claim = { id: "9", number: 0, earlier };
  const { earlier: remembered } = claimOver(row, { ...idle, claim }, { number: 0, id: "new" });
  expect(remembered?.join(" ")).toBe("2 3 4 5 6 7 8 9");
});

it("a take-over has a number above that of the object, unless that has none", () => {
  const numbers = [undefined, 0, 4].map((before) => claimAfter({ ...row, claim: named(2) }, before).number);
  expect(numbers).toEqual([2, 2, 5]);
  // That of a record that was read is none of a new one.
  expect([0, 1].map((number) => claimAfter({ ...row, claim: named(number) }, 0).number)).toEqual([0, 2]);
  expect(claimAfter(row, undefined)).toEqual(named(2, UNNAMED));
});

it("a renewed claim has another name and the same number", () => {
  expect(renewClaim({ ...row, claim: named(4, "c", "b") }, "new")).toEqual(named(4, "new", "b", "c"));
  expect(renewClaim({ ...row, workload: WEB }, "new")).toEqual(named(1, "new", UNNAMED));
});

it("a claim is new until it is answered, and where the NIC did not have the address before", () => {
  const claims = [named(0), named(0, "c", "b"), named(0, "c", "c"), undefined];
  expect(claims.map((claim) => isNewClaim({ ...row, claim }))).toEqual([true, true, false, false]);
  expect(isNewClaim({ ...row, claim: named(0), isConfirmed: true })).toBe(false);
  expect([numberOf(row), numberOf({ ...row, workload: WEB })]).toEqual([0, 1]);
});
