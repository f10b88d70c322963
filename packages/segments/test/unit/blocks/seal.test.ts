import { expect, it } from "vitest";
import { NO_LEASES, type Seal } from "../../../blocks/own-leases.ts";
import { barOf, sealWrite } from "../../../blocks/seal.ts";

const seal: Seal = { member: "east", token: "t5", writes: 5, next: "t6" };
const found = (token: string, writes: number, change: object = {}) => {
  return { cluster: "c", token, writes, isContested: false, ...change };
};

it.each<[what: string, known: Seal, found: ReturnType<typeof found>, bar: string | undefined]>([
  ["nothing that was written", NO_LEASES.seal, found("", 0, { cluster: "" }), undefined],
  ["the write before", seal, found("t5", 5), undefined],
  ["the last write", seal, found("t6", 6), undefined],
  ["fewer writes", seal, found("t4", 4), undefined],
  ["nothing, where it has written", seal, found("", 0, { cluster: "" }), undefined],
  ["another token after as many writes", seal, found("x", 5), "contested"],
  ["more writes", seal, found("x", 9), "contested"],
  ["an unknown one", NO_LEASES.seal, found("t5", 5), "contested"],
  ["the mark", seal, found("t6", 6, { isContested: true }), "contested"],
  ["another cluster", seal, found("t5", 5, { cluster: "z" }), "otherCluster"],
])("a cluster that finds %s", (_, known, hub, bar) => expect(barOf(known, hub, "c")?.kind).toBe(bar));

it("a write that may come late has the same token as the next one", () => {
  const by = { member: "east", newId: () => "t7" };
  expect(sealWrite(NO_LEASES.seal, found("", 0), by)).toEqual({ member: "east", token: "", writes: 0, next: "t7" });
  expect(sealWrite(seal, found("t5", 5), by)).toBe(seal);
  expect(sealWrite(seal, found("t3", 3), by)).toBe(seal);
  expect(sealWrite(seal, found("t6", 6), by)).toEqual({ member: "east", token: "t6", writes: 6, next: "t7" });
});
