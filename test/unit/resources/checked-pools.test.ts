/** Pools that come, change and go one by one: which of them may be used from then on. */
import { describe, expect, it } from "vitest";
import { CheckedPools } from "../../../host/resources/checked-pools.ts";
import { decodeIpPool, type IpPool } from "../../../host/resources/ip-pool.ts";
import { cases } from "../../world/rows.ts";

const poolOf = (name: string, subnet: string, more: object = {}, creationTimestamp?: string): IpPool => {
  const metadata = { name, creationTimestamp };
  return decodeIpPool({ apiVersion: "ipam.vendor.io/v1", kind: "IPPool", metadata, spec: { subnet, ...more } }, "pool");
};

const OLD = "2026-01-01T00:00:00Z";
const NEW = "2026-01-01T00:00:01Z";

function checkedOf(...pools: readonly IpPool[]): CheckedPools {
  const checked = new CheckedPools();
  checked.apply(pools.map((pool) => [pool.name, pool]));
  return checked;
}

/** The names of the usable pools, and of the others behind a stroke. */
const stateOf = ({ accepted, refused }: CheckedPools) =>
  `${[...accepted.keys()].join(" ")} / ${[...refused.keys()].join(" ")}`;

const LAB = { addressSpace: "x" };
const inWide = (name: string, more = {}, age?: string) => poolOf(name, "10.0.0.0/16", more, age);
const narrow = (name: string, more = {}, age?: string) => poolOf(name, "10.0.0.0/24", more, age);

it.each(cases<IpPool[]>`
  in disjoint subnets ${[poolOf("b", "10.0.1.0/24"), narrow("a")]} => a b /
  in the same subnet ${[narrow("b"), narrow("a")]} => a b /
  in a subnet of two address spaces ${[inWide("a"), narrow("b", LAB)]} => a b /
  one inside another, of one age: the first name counts ${[inWide("b"), narrow("a")]} => a / b
  one around another, of one age: the first name counts ${[narrow("b"), inWide("a")]} => a / b
  one inside another: the older counts ${[narrow("a", {}, NEW), inWide("b", {}, OLD)]} => b / a
  of a space of its own, one inside another ${[narrow("a", LAB), inWide("b", LAB)]} => a / b
`)("pools %s", (_, pools, wanted) => expect(stateOf(checkedOf(...pools)).trim()).toBe(wanted));

const wide = inWide("wide", {}, NEW);
const inner = narrow("inner", {}, OLD);
const second = narrow("second", {}, NEW);
const apart = poolOf("apart", "10.9.0.0/24", {}, OLD);

describe("when a pool changes", () => {
  type Changes = Record<string, IpPool | undefined>;
  const gone = (name: string): Changes => ({ [name]: undefined });
  const moved = poolOf("inner", "10.8.0.0/24", {}, OLD);
  const replaced = { wide: undefined, inner, apart: undefined };
  /** What may be used then, and the names of what changed. */
  it.each(cases<[before: IpPool[], changes: Changes]>`
    a refused one may be used as soon as the other is gone ${[[wide, inner], gone("inner")]} => wide / | inner wide
    it stays refused while another of that subnet is left ${[[wide, inner, second], gone("inner")]}
      => second / wide | inner wide
    one that comes may refuse another ${[[wide, apart], { inner }]} => apart inner / wide | inner wide
    one of another network is not touched ${[[wide, inner, apart], gone("apart")]} => inner / wide | apart
    one that moves to another subnet leaves its former ${[[wide, inner], { inner: moved }]} => inner wide / | inner wide
    one that moves to another space leaves its former ${[[wide, inner], { inner: narrow("inner", LAB, OLD) }]}
      => inner wide / | inner wide
    the same object changes nothing ${[[wide, inner], { inner }]} => inner / wide |
    one that was never there changes nothing ${[[wide, inner], gone("other")]} => inner / wide |
    a refused one that is gone is no longer named ${[[wide, inner], gone("wide")]} => inner / | wide
    several changes are decided together ${[[wide, apart], replaced]} => inner / | apart inner wide
  `)("%s", (_, [before, changes], wanted) => {
    const checked = checkedOf(...before);
    const changed = checked.apply(Object.entries(changes));
    expect(`${stateOf(checked).trim()} | ${[...changed].sort().join(" ")}`.trim()).toBe(wanted);
  });

  it("tells of a pool that stays usable with another specification, which is the one to use", () => {
    const checked = checkedOf(inner);
    const other = narrow("inner", { ips: ["10.0.0.9"] }, OLD);
    expect([...checked.apply([["inner", other]])]).toEqual(["inner"]);
    expect(checked.accepted.get("inner")).toBe(other);
  });

  it("gives another reason when the pool in the way is another", () => {
    const checked = checkedOf(wide, inner);
    expect(checked.refused.get("wide")).toMatch(/partly overlaps 10.0.0.0\/24 of IPPool "inner"/);
    const older = poolOf("narrow", "10.0.7.0/24", {}, "2025-01-01T00:00:00Z");
    expect([...checked.apply([["narrow", older]])].sort()).toEqual(["narrow", "wide"]);
    expect(checked.refused.get("wide")).toMatch(/partly overlaps 10.0.7.0\/24 of IPPool "narrow"/);
  });
});

describe("a change costs a look at pools of networks that overlap, and at no others", () => {
  /** `reads`: since the last change. */
  function watched(pool: IpPool) {
    const watch = { reads: 0, pool };
    watch.pool = new Proxy(pool, {
      get(target, key) {
        watch.reads++;
        return Reflect.get(target, key);
      },
    });
    return watch;
  }

  it.each<[string, IpPool[], [string, IpPool | undefined], boolean]>([
    ["of the same network", [narrow("a")], ["a", narrow("a")], false],
    ["of a network apart", [apart], ["apart", undefined], false],
    ["of a network around it", [wide], ["wide", undefined], true],
  ])("one %s", (_, others, change, isSeen) => {
    const watch = watched(inner);
    const checked = checkedOf(watch.pool, ...others);
    watch.reads = 0;
    checked.apply([change]);
    expect(watch.reads > 0).toBe(isSeen);
  });

  it("one of a network that a third one linked with it until that was gone", () => {
    const watch = watched(inner);
    const other = poolOf("other", "10.0.7.0/24");
    const checked = checkedOf(watch.pool, other, wide);
    watch.reads = 0;
    checked.apply([["other", poolOf("other", "10.0.7.0/24")]]);
    expect(watch.reads).toBeGreaterThan(0);
    checked.apply([["wide", undefined]]);
    watch.reads = 0;
    checked.apply([["other", undefined]]);
    expect(watch.reads).toBe(0);
  });
});

it("says nothing any more about pools that are gone", () => {
  const checked = checkedOf(wide, inner);
  expect(checked.problems).toHaveLength(1);
  checked.apply([["wide", undefined]]);
  expect(checked.problems).toEqual([]);
});

it("says what is wrong with all of them, in the order of their names", () => {
  const shared = [poolOf("z", "10.9.0.0/24", { ips: ["10.9.0.7"] }), poolOf("y", "10.9.0.0/24", { ips: ["10.9.0.7"] })];
  expect(checkedOf(wide, inner, ...shared).problems).toEqual([
    expect.stringMatching(/^IPPool "wide" is refused: its subnet 10.0.0.0\/16 partly overlaps/),
    expect.stringMatching(/^IPPools "y" and "z" share addresses of 10.9.0.7/),
  ]);
});
