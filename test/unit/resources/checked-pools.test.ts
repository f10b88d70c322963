/**
 * Pools that come, change and go one by one: the cost of a change. Which of them may be used from then on, and the
 * words about it: test/property/agent/changing-pools.test.ts.
 */
import { describe, expect, it } from "vitest";
import { CheckedPools } from "../../../host/resources/checked-pools.ts";
import { decodeIpPool, type IpPool } from "../../../host/resources/ip-pool.ts";
import { ipPool } from "../../world/subjects.ts";

const poolOf = (name: string, subnet: string): IpPool => decodeIpPool(ipPool(name, subnet, {}), "pool");

function checkedOf(...pools: readonly IpPool[]): CheckedPools {
  const checked = new CheckedPools();
  checked.apply(pools.map((pool) => [pool.name, pool]));
  return checked;
}

const narrow = (name: string) => poolOf(name, "10.0.0.0/24");
const wide = poolOf("wide", "10.0.0.0/16");
const inner = narrow("inner");
const apart = poolOf("apart", "10.9.0.0/24");

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
