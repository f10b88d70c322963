/** Pools that come, change and go one by one: which of them may be used from then on. */
import { describe, expect, it } from "vitest";
import { CheckedPools } from "../../../host/resources/checked-pools.ts";
import { decodeIpPool, type IpPool } from "../../../host/resources/ip-pool.ts";

function poolOf(name: string, subnet: string, more: object = {}, creationTimestamp?: string): IpPool {
  const metadata = { name, creationTimestamp };
  return decodeIpPool({ apiVersion: "ipam.vendor.io/v1", kind: "IPPool", metadata, spec: { subnet, ...more } }, "pool");
}

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

describe("pools", () => {
  it.each([
    ["in disjoint subnets", [poolOf("b", "10.0.1.0/24"), poolOf("a", "10.0.0.0/24")], "a b / "],
    ["in the same subnet", [poolOf("b", "10.0.0.0/24"), poolOf("a", "10.0.0.0/24")], "a b / "],
    [
      "in a subnet of two address spaces",
      [poolOf("a", "10.0.0.0/16"), poolOf("b", "10.0.0.0/24", { addressSpace: "x" })],
      "a b / ",
    ],
    [
      "one inside another, of one age: the first name counts",
      [poolOf("b", "10.0.0.0/16"), poolOf("a", "10.0.0.0/24")],
      "a / b",
    ],
    [
      "one around another, of one age: the first name counts",
      [poolOf("b", "10.0.0.0/24"), poolOf("a", "10.0.0.0/16")],
      "a / b",
    ],
    [
      "one inside another: the older counts",
      [poolOf("a", "10.0.0.0/24", {}, NEW), poolOf("b", "10.0.0.0/16", {}, OLD)],
      "b / a",
    ],
    [
      "of a space of its own, one inside another",
      [poolOf("a", "10.0.0.0/24", { addressSpace: "x" }), poolOf("b", "10.0.0.0/16", { addressSpace: "x" })],
      "a / b",
    ],
  ])("%s", (_, pools, wanted) => expect(stateOf(checkedOf(...pools))).toBe(wanted));
});

const wide = poolOf("wide", "10.0.0.0/16", {}, NEW);
const inner = poolOf("inner", "10.0.0.0/24", {}, OLD);
const second = poolOf("second", "10.0.0.0/24", {}, NEW);
const apart = poolOf("apart", "10.9.0.0/24", {}, OLD);

describe("when a pool changes", () => {
  it.each<[string, IpPool[], [string, IpPool | undefined][], string, string[]]>([
    [
      "a refused one may be used as soon as the other is gone",
      [wide, inner],
      [["inner", undefined]],
      "wide / ",
      ["inner", "wide"],
    ],
    [
      "it stays refused while another of that subnet is left",
      [wide, inner, second],
      [["inner", undefined]],
      "second / wide",
      ["inner", "wide"],
    ],
    ["one that comes may refuse another", [wide, apart], [["inner", inner]], "apart inner / wide", ["inner", "wide"]],
    ["one of another network is not touched", [wide, inner, apart], [["apart", undefined]], "inner / wide", ["apart"]],
    [
      "one that moves to another subnet leaves its former",
      [wide, inner],
      [["inner", poolOf("inner", "10.8.0.0/24", {}, OLD)]],
      "inner wide / ",
      ["inner", "wide"],
    ],
    [
      "one that moves to another space leaves its former",
      [wide, inner],
      [["inner", poolOf("inner", "10.0.0.0/24", { addressSpace: "x" }, OLD)]],
      "inner wide / ",
      ["inner", "wide"],
    ],
    ["the same object changes nothing", [wide, inner], [["inner", inner]], "inner / wide", []],
    ["one that was never there changes nothing", [wide, inner], [["other", undefined]], "inner / wide", []],
    ["a refused one that is gone is no longer named", [wide, inner], [["wide", undefined]], "inner / ", ["wide"]],
    [
      "several changes are decided together",
      [wide, apart],
      [
        ["wide", undefined],
        ["inner", inner],
        ["apart", undefined],
      ],
      "inner / ",
      ["apart", "inner", "wide"],
    ],
  ])("%s", (_, before, changes, wanted, names) => {
    const checked = checkedOf(...before);
    const changed = checked.apply(changes);
    expect(stateOf(checked)).toBe(wanted);
    expect([...changed].sort()).toEqual(names);
  });

  it("tells of a pool that stays usable with another specification, which is the one to use", () => {
    const checked = checkedOf(inner);
    const other = poolOf("inner", "10.0.0.0/24", { ips: ["10.0.0.9"] }, OLD);
    expect([...checked.apply([["inner", other]])]).toEqual(["inner"]);
    expect(checked.accepted.get("inner")).toBe(other);
  });

  it("gives another reason when the pool in the way is another", () => {
    const checked = checkedOf(wide, inner);
    expect(checked.refused.get("wide")).toMatch(/partly overlaps 10.0.0.0\/24 of IPPool "inner"/);
    const narrow = poolOf("narrow", "10.0.7.0/24", {}, "2025-01-01T00:00:00Z");
    expect([...checked.apply([["narrow", narrow]])].sort()).toEqual(["narrow", "wide"]);
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
    ["of the same network", [poolOf("a", "10.0.0.0/24")], ["a", poolOf("a", "10.0.0.0/24")], false],
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
