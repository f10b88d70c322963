/**
 * Pools that come, change and go one by one: what is told of a change, and what it costs. Which of them may be used
 * from then on: test/property/agent/changing-pools.test.ts.
 */
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

const inWide = (name: string, more = {}, age?: string) => poolOf(name, "10.0.0.0/16", more, age);
const narrow = (name: string, more = {}, age?: string) => poolOf(name, "10.0.0.0/24", more, age);

const wide = inWide("wide", {}, NEW);
const inner = narrow("inner", {}, OLD);
const apart = poolOf("apart", "10.9.0.0/24", {}, OLD);

describe("when a pool changes", () => {
  type Changes = Record<string, IpPool | undefined>;
  const gone = (name: string): Changes => ({ [name]: undefined });
  /** What may be used then, and the names of what changed. */
  it.each(cases<[before: IpPool[], changes: Changes]>`
    a refused one may be used as soon as the other is gone ${[[wide, inner], gone("inner")]} => wide / | inner wide
    the same object changes nothing ${[[wide, inner], { inner }]} => inner / wide |
    one that was never there changes nothing ${[[wide, inner], gone("other")]} => inner / wide |
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
