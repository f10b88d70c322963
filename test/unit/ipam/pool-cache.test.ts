import { describe, expect, it, vi } from "vitest";
import { PoolTally } from "../../../host/controller/usage/usage-counter.ts";
import { PoolCache } from "../../../host/ipam/pool-cache.ts";
import type { IpPool } from "../../../host/resources/ip-pool.ts";
import { poolShape } from "../../../host/resources/ip-pool-shape.ts";
import type { ReservedIp } from "../../../host/resources/reserved-ip.ts";
import { openCore, pool, poolsByName } from "../../world/subjects.ts";
import { ip } from "../../world/values.ts";

const space = openCore();

const range = (first: number, last: number) =>
  Array.from({ length: last - first + 1 }, (_, index) => `10.6.0.${first + index}`);

/** An IPv4 address as the registry lists it. */
const packed = (address: string): Uint8Array => Uint8Array.from(address.split(".").map(Number));

describe("the pool cache after a survey", () => {
  it("keeps reservations and frees addresses without an owner, in all pools of the subnet", () => {
    const pools = [pool("a", "10.6.0.0/24"), pool("b", "10.6.0.0/24", { ips: ["10.6.0.1-10.6.0.9"] })];
    const poolCache = new PoolCache(space);
    poolCache.apply(poolsByName(...pools), []);
    const [a, b] = pools;
    if (a === undefined || b === undefined) throw new Error("Two pools");
    expect(poolCache.neighboursOf(b).map(({ name }) => name)).toEqual(["a", "b"]);
    poolCache.mark("", ip("10.6.0.1"));
    expect(poolCache.takeExactly(b, ip("10.6.0.2"))).toBe("claimed");
    for (const each of pools) poolCache.replaceUsed(each, packed("10.6.0.3"));
    const state = range(1, 4).map((address) => poolCache.takeExactly(b, ip(address)));
    expect(state).toEqual(["claimed", "taken", "taken", "claimed"]);
    poolCache.cancel([{ space: "", ip: ip("10.6.0.2") }]);
    expect(poolCache.takeExactly(a, ip("10.6.0.2"))).toBe("claimed");
  });

  it("is told of the pools that share addresses with one, by way of others too, and of no other pool of the subnet", () => {
    const ranges = { a: "10-19", b: "19-29", c: "29-39", d: "40-49" };
    const pools = Object.entries(ranges).map(([name, ips]) => {
      const [first, last] = ips.split("-").map((end) => `10.6.0.${end}`);
      return pool(name, "10.6.0.0/24", { ips: [`${first}-${last}`] });
    });
    const poolCache = new PoolCache(space);
    poolCache.apply(poolsByName(...pools), []);
    const neighbours = pools.map((each) => poolCache.neighboursOf(each).map(({ name }) => name));
    expect(neighbours.map((names) => names.join(""))).toEqual(["abc", "abc", "abc", "d"]);
  });

  it("knows used addresses, and routers, when one pool of a segment is wider, and moves none when it becomes so", () => {
    const [near, far] = [{ ips: ["10.6.0.1-10.6.0.4"], gatewayIp: "10.6.0.1" }, { ips: ["10.6.0.1-10.6.0.4"] }];
    const [a, b, wide] = [pool("a", "10.6.0.0/24", near), pool("b", "10.6.0.0/24", far), pool("b", "10.6.0.0/23", far)];
    const poolCache = new PoolCache(space);
    poolCache.apply(poolsByName(a, b), []);
    expect(poolCache.takeExactly(b, ip("10.6.0.2"))).toBe("claimed");
    expect(poolCache.apply(poolsByName(a, wide), []).map(({ name }) => name)).toEqual(["b"]);
    const took = [a, b, wide].map((pool) =>
      range(1, 3)
        .map((address) => poolCache.takeExactly(pool, ip(address)))
        .join(),
    );
    expect(took).toEqual(["outside,taken,claimed", "outside,taken,taken", "outside,taken,taken"]);
    expect(poolCache.neighboursOf(wide).map(({ name }) => name)).toEqual(["b", "a"]);
    poolCache.cancel([{ space: "", ip: ip("10.6.0.2") }]);
    expect(poolCache.takeExactly(a, ip("10.6.0.2"))).toBe("claimed");
    expect(poolCache.apply(poolsByName(pool("a", "10.7.0.0/24"), wide), []).map(({ name }) => name)).toEqual([
      "a",
      "b",
    ]);
    expect(poolCache.takeExactly(wide, ip("10.6.0.1"))).toBe("claimed");
  });

  it("gives no pool of the segment, such as a Subnet's others, a gateway by which pods of one still route", () => {
    const [plain, other] = [pool("a", "10.6.0.0/24"), pool("b", "10.6.0.0/24", { ips: ["10.6.0.1-10.6.0.2"] })];
    const poolCache = new PoolCache(space);
    poolCache.apply(poolsByName({ ...plain, spec: { ...plain.spec, formerRouters: [ip("10.6.0.1")] } }, other), []);
    expect(poolCache.findExclusion("b", ip("10.6.0.1"))).toBe('pods of IPPool "a" still route by it');
    expect([poolCache.take(other, 0), poolCache.take(other, 0)]).toEqual([ip("10.6.0.2"), undefined]);
    expect(poolCache.apply(poolsByName(plain, other), []).map(({ name }) => name)).toEqual(["a", "b"]);
    expect(poolCache.take(other, 0)).toEqual(ip("10.6.0.1"));
  });

  it("looks at no reservation for a pool of another subnet: a node's check asks each pool about each address", () => {
    const poolCache = new PoolCache(space);
    const get = vi.fn(() => ({ family: 4, addressSpace: "", ranges: [] }));
    const reserved = Object.defineProperty({ name: "r" }, "spec", { get }) as ReservedIp;
    poolCache.apply(poolsByName(pool("a", "10.6.0.0/24"), pool("b", "10.7.0.0/24")), [reserved]);
    get.mockClear();
    expect([poolCache.contains("b", ip("10.6.0.9"), true), get.mock.calls]).toEqual([false, []]);
  });

  it.each([
    ["a list", (cache: PoolCache, blue: IpPool) => cache.replaceUsed(blue, packed("10.6.0.2"))],
    [
      "a usage summary",
      (cache: PoolCache, blue: IpPool) => {
        const tally = new PoolTally(space, poolShape(blue, []));
        tally.take(ip("10.6.0.2"), true);
        const states = { Bound: 1, Cooling: 0, Kept: 0, Quarantined: 0 };
        const { rangesHash, bitmap = new Uint8Array() } = tally.usage(states);
        expect(cache.loadEstimate(blue, { rangesHash, bitmap }, new Uint8Array())).toBe(true);
      },
    ],
  ])(
    "a reservation of an address that another owner has by %s is dropped: giving it back does not free it",
    (_, load) => {
      const blue = pool("blue", "10.6.0.0/24");
      const poolCache = new PoolCache(space);
      poolCache.apply(poolsByName(blue), []);
      poolCache.takeExactly(blue, ip("10.6.0.2"));
      load(poolCache, blue);
      poolCache.cancel([{ space: "", ip: ip("10.6.0.2") }]);
      expect(poolCache.takeExactly(blue, ip("10.6.0.2"))).toBe("taken");
    },
  );
});
