/** A namespace's retained addresses are bounded by its running pods. */
import { expect, it } from "vitest";
import { NamespaceShares } from "../../../host/controller/namespace-shares.ts";
import { cases } from "../../world/rows.ts";
import { HOLDER, ipAllocation } from "../../world/subjects.ts";

const member = (at: number, state: "Bound" | "Kept", namespace: string) =>
  ipAllocation(`10.0.0.${at}`, {
    state,
    holders: state === "Bound" ? [{ ...HOLDER, namespace }] : [],
    workload: { kind: "IPAMClaim", namespace, name: `c${at}`, uid: `u${at}`, member: `c${at}` },
  });

it("a record of another namespace may come in the place of one", () => {
  const [before, value] = [member(1, "Kept", "shop"), member(1, "Kept", "bank")];
  const shares = new NamespaceShares([before]);
  shares.apply({ kind: "set", key: value.name, value, before });
  expect(shares.full(1)).toEqual([{ name: "bank", addresses: 1 }]);
  shares.apply({ kind: "gone", key: value.name, before: value });
  expect(shares.full(-1)).toEqual([]);
});

/** `run 1-50`: these members get pods; `stop`: they lose them; `each`: each gets one, and loses it before the next. */
function stepsOf(text: string): (readonly [state: "Bound" | "Kept", at: number])[] {
  const [what, range = ""] = text.split(" ");
  const [first = 0, last = first] = range.split("-").map(Number);
  const states = what === "each" ? (["Bound", "Kept"] as const) : ([what === "run" ? "Bound" : "Kept"] as const);
  const all = Array.from({ length: last - first + 1 }, (_, at) => first + at);
  return all.flatMap((at) => states.map((state) => [state, at] as const));
}

it.each(cases<readonly [before: string, steps: string, namespace?: string]>`
  one at a time: few, and what was retained first goes first ${["", "each 1-11"]} => 1 2 3
  one that came again meanwhile is younger ${["", "each 1-9, each 1"]} => 2
  a set that is down has all ${["", "run 1-50, stop 1-50"]} => none
  two sets by turns have all ${["", "run 1-20, stop 1-20, run 31-50, stop 31-50"]} => none
  and no third ${["", "run 1-20, stop 1-20, run 31-50, stop 31-50, each 60"]} => 1
  what a new leader finds stays ${["stop 1-30", "run 7, stop 7"]} => none
  and nothing more ${["stop 1-30", "each 40-41"]} => 1 2
  others' pods are no reason ${["run 100-129", "each 1-9", "other"]} => 1
`)("%s", (_, [before, steps, namespace = "shop"], wanted) => {
  const all = (text: string) => (text === "" ? [] : text.split(", ").flatMap(stepsOf));
  const known = new Map(all(before).map(([state, at]) => [at, member(at, state, namespace)]));
  const shares = new NamespaceShares(known.values());
  for (const [state, at] of all(steps)) {
    const value = member(at, state, "shop");
    shares.apply({ kind: "set", key: value.name, value, before: known.get(at) });
    known.set(at, value);
  }
  const excess = [...known].flatMap(([at, each]) => (shares.isExcess(each) ? [at] : []));
  expect(excess.join(" ") || "none").toBe(wanted);
});
