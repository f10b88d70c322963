import { beforeEach, expect, it } from "vitest";
import type { CachedAllocation } from "../../../host/controller/cached-allocation.ts";
import { type FollowedAllocations, followAllocations } from "../../../host/controller/follow-allocations.ts";
import type { Change } from "../../../host/kubernetes/mirror.ts";
import { Listeners } from "../../../host/lib/listeners.ts";
import { TURN_MS } from "../../../host/lib/turns.ts";
import { allocation } from "./conditions/judged.ts";

type Pool = "blue" | "green";

let items: Map<string, CachedAllocation>;
let listeners: Listeners<Change<CachedAllocation>>;
let leading: AbortController;
/** What was taken: `10.6.0.1 - blue`, from one pool to the other. */
let taken: string[];

beforeEach(() => {
  items = new Map();
  listeners = new Listeners(expect.fail);
  leading = new AbortController();
  taken = [];
});

function set(address: string, pool: Pool): void {
  const value = { ...allocation(address, pool), name: address };
  const before = items.get(address);
  items.set(address, value);
  listeners.tell({ kind: "set", key: address, value, before });
}

function remove(address: string): void {
  const before = items.get(address) ?? expect.fail(address);
  items.delete(address);
  listeners.tell({ kind: "gone", key: address, before });
}

/** Each one taken takes a whole turn. */
function follow(take: (change: Change<CachedAllocation>) => void = () => {}): FollowedAllocations {
  let ms = 0;
  const allocations = {
    items,
    problems: [],
    subscribe: (listener: Parameters<typeof listeners.add>[0]) => listeners.add(listener),
  };
  const clock = { nowMs: () => ms, now: () => new Date() };
  return followAllocations({ caches: { allocations }, clock, leading: leading.signal }, (change) => {
    ms += TURN_MS;
    const [before, now] = [change.before, change.kind === "set" ? change.value : undefined];
    taken.push(`${change.key} ${before?.spec.pool ?? "-"} ${now?.spec.pool ?? "-"}`);
    take(change);
  });
}

it("takes what there is, what changed meanwhile, and then each change at once", async () => {
  for (const address of ["10.6.0.1", "10.6.0.2", "10.6.0.3"]) set(address, "blue");
  const { complete } = follow();
  expect(taken).toEqual(["10.6.0.1 - blue"]);
  set("10.6.0.1", "green");
  remove("10.6.0.3");
  set("10.6.0.4", "blue");
  expect(taken).toHaveLength(1);
  await complete;
  const all = ["10.6.0.1 - blue", "10.6.0.2 - blue", "10.6.0.3 - blue"];
  const changes = ["10.6.0.1 blue green", "10.6.0.3 blue -", "10.6.0.4 - blue"];
  expect(taken).toEqual([...all, ...changes]);
  remove("10.6.0.2");
  expect(taken.slice(6)).toEqual(["10.6.0.2 blue -"]);
});

it("takes a change that comes while changes are taken after all others", async () => {
  for (const address of ["10.6.0.1", "10.6.0.2"]) set(address, "blue");
  const { complete } = follow(({ before, key }) => {
    if (key === "10.6.0.1" && before !== undefined) set("10.6.0.2", "green");
  });
  set("10.6.0.1", "green");
  await complete;
  expect(taken.slice(2)).toEqual(["10.6.0.1 blue green", "10.6.0.2 blue green"]);
});

it.each([
  ["leading ends", () => leading.abort(new Error("It leads no more")), "It leads no more"],
  ["nobody follows", (followed: FollowedAllocations) => followed.end(), "The allocations are not followed any more"],
])("is never complete when %s first", async (_, stop, why) => {
  for (const address of ["10.6.0.1", "10.6.0.2"]) set(address, "blue");
  const followed = follow();
  stop(followed);
  await expect(followed.complete).rejects.toThrow(why);
  expect(taken).toHaveLength(1);
});

it("fails with what a part fails with", async () => {
  set("10.6.0.1", "blue");
  const { complete } = follow(() => {
    throw new Error("no way");
  });
  await expect(complete).rejects.toThrow("no way");
});
