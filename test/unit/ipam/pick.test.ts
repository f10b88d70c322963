import { describe, expect, it } from "vitest";
import type { Candidate, NicDemand } from "../../../host/ipam/model.ts";
import {
  findWithholding,
  type Picked,
  pickAddresses,
  proposalOf,
  takesFirstAddress,
  withheldFrom,
} from "../../../host/ipam/pick.ts";
import { PoolCache } from "../../../host/ipam/pool-cache.ts";
import { MAX_DETAIL_LINES, noPoolMatches } from "../../../host/ipam/refusal.ts";
import { findUnservable } from "../../../host/ipam/selection.ts";
import type { PoolShortage } from "../../../host/ipam/subnet-capacity.ts";
import { formatIp } from "../../../host/net/ip.ts";
import type { IpPool } from "../../../host/resources/ip-pool.ts";
import { LEASED, leasingPool, seenAt } from "../../world/leasing-pool.ts";
import { openCore, pool, poolsByName } from "../../world/subjects.ts";
import { ip } from "../../world/values.ts";

function cacheOf(...pools: IpPool[]): PoolCache {
  const poolCache = new PoolCache(openCore());
  poolCache.apply(poolsByName(...pools), []);
  return poolCache;
}

function nic(ifName: string, ...families: (readonly IpPool[])[]): NicDemand {
  return {
    ifName,
    rule: "a test",
    cleanGateway: false,
    families: families.map((pools) => ({
      family: pools[0]?.spec.family ?? 4,
      candidates: pools.map((each) => ({ name: each.name, pool: each })),
    })),
  };
}

function pick(poolCache: PoolCache, ...nics: NicDemand[]): Picked {
  return pickAddresses(poolCache, { nics, seedOf: () => 0, assigned: [] });
}

function addresses(picked: Picked): string[] {
  if (picked.kind === "short") throw new Error("nothing was picked");
  return picked.picked.map((each) => `${each.ifName}=${formatIp(each.ip)}`);
}

const four = pool("four", "10.0.0.0/30");
const six = pool("six", "fd00::/126");
const none = pool("none", "10.9.0.0/24", { ips: [] });

describe("pick", () => {
  it("passes over a block that is being drained while the pool has another address, and leaves it free", () => {
    const draining = leasingPool("seg", "10.6.0.0/24", ["10.6.0.0/30 Draining", "10.6.0.4/31 Active"]);
    const poolCache = cacheOf(draining);
    poolCache.followRegistry(() => seenAt("e1"));
    const seen = Array.from({ length: 4 }, () => addresses(pick(poolCache, nic("eth0", [draining])))[0]);
    expect(seen).toEqual(["eth0=10.6.0.4", "eth0=10.6.0.5", "eth0=10.6.0.1", "eth0=10.6.0.2"]);
    expect(poolCache.counts("seg")?.free).toBe(1n);
  });

  const UNCONFIRMED = ["10.6.0.0/28 Active"];
  const until = "gives no address until the hub has confirmed its blocks";
  const reach = `${until}: the cluster was off, had no controller, or was out of this node's reach, since ${LEASED}`;
  it.each<[what: string, blocks: readonly string[], epoch: string, minutes: number, reason: string]>([
    ["no block", [], "e1", 0, "has leased no block yet"],
    ["blocks at rest", ["10.6.0.0/28 Resting"], "e1", 7, "has no block that gives addresses (1 Resting)"],
    ["blocks that are not confirmed", UNCONFIRMED, "e2", 0, `${until} in this epoch of the registry`],
    ["blocks of a cluster that was off", UNCONFIRMED, "e1", 8, reach],
  ])(
    "goes to the next pool when the one before has %s, and says so when there is none",
    (_what, blocks, epoch, minutes, reason) => {
      const leasing = leasingPool("seg", "10.6.0.0/24", blocks);
      const poolCache = cacheOf(leasing, four);
      poolCache.followRegistry(() => seenAt(epoch, minutes));
      expect(addresses(pick(poolCache, nic("eth0", [leasing, four])))).toEqual(["eth0=10.0.0.1"]);
      const short = pick(poolCache, nic("eth0", [leasing]));
      expect(short.kind === "short" && short.shortage.reasons.get("seg")).toBe(reason);
    },
  );

  it.each([
    ["a family", [nic("eth0", [six], [none])]],
    ["a NIC", [nic("eth0", [six]), nic("net1", [none])]],
  ])("all or nothing: %s without an address gives the other one's back", (_, nics) => {
    const poolCache = cacheOf(six, none);
    expect([pick(poolCache, ...nics).kind, poolCache.counts("six")?.used]).toEqual(["short", 0]);
  });

  it("goes to the next pool only when the one before has none for the NIC, and says how full they are", () => {
    const edges = pool("edges", "10.8.0.0/24", { ips: ["10.8.0.1"], gatewayIp: "10.8.0.1" });
    const leasing = leasingPool("seg", "10.6.0.0/24", ["10.6.0.0/31 Active"]);
    const poolCache = cacheOf(four, none, edges, leasing);
    poolCache.followRegistry(() => seenAt("e1"));
    const unknown = [pool("new", "10.7.0.0/24"), leasingPool("lease", "10.6.1.0/24", [])];
    const refused = [{ space: "", ip: ip("10.0.0.2"), why: "it is another's" }];
    const demand = { ...nic("eth0", [four, none, edges, leasing, ...unknown]), refused };
    expect([1, 2].flatMap(() => addresses(pick(poolCache, demand)))).toEqual(["eth0=10.0.0.1", "eth0=10.6.0.1"]);
    const short = pick(poolCache, demand);
    const notFor = "10.0.0.2 is not for this NIC: the coordinator refused it for this pod: it is another's";
    expect(short.kind === "short" && [...short.shortage.reasons]).toEqual([
      ["four", `has no free address (1 of 2 in use or cooling); ${notFor}`],
      ["none", "has no address that may be handed out"],
      ["edges", "has no address that may be handed out; 10.8.0.1 is none: it is the gateway"],
      ["seg", "has no free address (1 of 1 in use or cooling)"],
      ["new", "has no address that may be handed out"],
      ["lease", "has leased no block yet"],
    ]);
  });

  it("keeps assigned addresses for their NIC and family alone", () => {
    const poolCache = cacheOf(four, six);
    const own = proposalOf(four, { ifName: "net1", ip: ip("10.0.0.2") });
    poolCache.takeExactly(four, own.ip);
    const nics = [nic("eth0", [four], [six]), nic("net1", [six], [four])];
    const picked = pickAddresses(poolCache, { nics, seedOf: () => 0, assigned: [own] });
    expect(addresses(picked)).toEqual(["eth0=10.0.0.1", "eth0=fd00::", "net1=fd00::1", "net1=10.0.0.2"]);
  });

  it("names the address owner of a NIC with one of its own, and the routers of the pool as it is now", () => {
    const [own, now] = [{ kind: "IPAMClaim", namespace: "shop", name: "c", uid: "c", member: "c" }, "10.0.0.1"];
    const poolCache = cacheOf(pool("four", "10.0.0.0/29", { gatewayIp: now }));
    const assigned = [proposalOf(four, { ifName: "eth0", ip: ip("10.0.0.2") })];
    const nics = [nic("eth0", [four]), nic("net1", [four])];
    const workloads = new Map([["net1", own]]);
    const picked = pickAddresses(poolCache, { nics, seedOf: () => 0, assigned, workloads });
    expect(picked).toMatchObject({ picked: [{ workload: undefined }, { workload: own }] });
    expect(picked).toMatchObject({ picked: [{ routers: [now] }, { routers: [now] }] });
  });

  it("does not give back an assigned address when another NIC falls short", () => {
    const poolCache = cacheOf(four, none);
    const assigned = [proposalOf(four, { ifName: "eth0", ip: ip("10.0.0.2") })];
    poolCache.takeExactly(four, ip("10.0.0.2"));
    const nics = [nic("eth0", [four]), nic("net1", [none])];
    expect(pickAddresses(poolCache, { nics, seedOf: () => 0, assigned }).kind).toBe("short");
    expect(poolCache.counts("four")?.used).toBe(1);
  });

  it("begins at the seed of NIC and family, and in an ascending pool only when that is to be spread", () => {
    const wide = pool("wide", "10.2.0.0/24", { selection: "ascending" });
    const begin = (each: IpPool, isSpread: boolean) =>
      addresses(
        pickAddresses(cacheOf(each), {
          nics: [nic("eth0", [each])],
          seedOf: (ifName, family) => (ifName === "eth0" && family === 4 ? 7 : 0),
          assigned: [],
          randomize: (name) => isSpread && name === "wide",
        }),
      );
    const hashed = pool("hashed", "10.2.0.0/24");
    expect([begin(wide, false), begin(wide, true), begin(hashed, false)].flat()).toEqual([
      ...["eth0=10.2.0.1", "eth0=10.2.0.7", "eth0=10.2.0.7"],
    ]);
  });

  it("passes over refused candidates, and does not explain them", () => {
    const refused = { name: "refused", refusal: "is of another node" } as Candidate;
    const demand = { ...nic("eth0", [none]), families: [{ family: 4 as const, candidates: [refused] }] };
    const short = pick(cacheOf(), demand);
    expect(short.kind === "short" && [...short.shortage.reasons]).toEqual([]);
    const candidates = [refused, ...(nic("eth0", [four]).families[0]?.candidates ?? [])];
    const picked = pick(cacheOf(four), { ...demand, families: [{ family: 4, candidates }] });
    expect(addresses(picked)).toEqual(["eth0=10.0.0.1"]);
  });
});

it("cancelled reservations give back nothing that another pool of the subnet knew before", () => {
  const wide = pool("wide", "10.0.0.0/30");
  const poolCache = cacheOf(four, wide);
  poolCache.mark("", ip("10.0.0.1"));
  poolCache.apply(poolsByName(pool("four", "10.0.0.0/30", { ips: ["10.0.0.2"] }), wide), []);
  poolCache.apply(poolsByName(four, wide), []);
  expect(formatIp(poolCache.take(four, 0) ?? ip("::"))).toBe("10.0.0.1");
  poolCache.cancel([{ space: "", ip: ip("10.0.0.1") }]);
  expect([wide, four].map((each) => poolCache.takeExactly(each, ip("10.0.0.1")))).toEqual(["taken", "claimed"]);
});

describe("a refusal", () => {
  const refused: NicDemand = {
    ...nic("eth0", [four]),
    families: [
      {
        family: 4,
        candidates: [
          { name: "ghost", refusal: "does not exist" },
          { name: "four", pool: four, refusal: "is disabled (spec.disable)" },
        ],
      },
    ],
  };

  it("lists every candidate with its reason", () => {
    const unservable = findUnservable([refused]);
    if (unservable === undefined) throw new Error("found servable");
    const error = noPoolMatches({ nics: [refused], ...unservable });
    expect(error.code).toBe(100);
    expect(error.message).toBe(
      'No pool may serve IPv4 of interface "eth0" (a test): pool "ghost" does not exist; pool "four" is disabled (spec.disable)',
    );
    expect(error.details).toBe(
      'eth0: by a test\neth0 IPv4 pool "ghost": does not exist\neth0 IPv4 pool "four": is disabled (spec.disable)',
    );
  });

  const matched = (count: number, brief: string): Candidate[] =>
    Array.from({ length: count }, (_, at) => ({
      name: `x-${brief[0]}${at}`,
      refusal: `for "bank/${at}"`,
      brief,
      isMatched: true,
    }));
  const attack = (nics: number): PoolShortage => {
    const candidates: Candidate[] = [
      ...matched(600, "other nodes"),
      ...Array.from(
        { length: 12 },
        (_, at): Candidate => ({ name: `p${at}`, refusal: 'namespaceName is "bank"', brief: "other namespaces" }),
      ),
      ...matched(400, "a workload"),
    ];
    const families = [{ family: 4 as const, candidates }];
    const all = Array.from({ length: nics }, (_, at) => ({
      ...refused,
      ifName: at === 0 ? "eth0" : `n${at}`,
      families,
    }));
    const [first] = all;
    if (first?.families[0] === undefined) throw new Error("no demand");
    return noPoolMatches({ nics: all, nic: first, demand: first.families[0] });
  };

  it("of many pools counts the reasons, and leaves out the names of others' objects", () => {
    const { message, details = "", forLog = "" } = attack(1);
    const named = Array.from({ length: 8 }, (_, at) => `pool "p${at}" other namespaces`).join("; ");
    expect(message).toBe(
      `No pool may serve IPv4 of interface "eth0" (a test): ${named}; 600 more pools: other nodes; 400 more pools: a workload; 4 more pools: other namespaces`,
    );
    expect(`${message}${details}`).not.toContain("bank");
    expect(forLog).toContain('pool "x-o0" for "bank/0"; pool "x-o1" for "bank/1"');
    expect(forLog).toMatch(
      /pool "x-o31" for "bank\/31"; 568 more pools: other nodes; 400 more pools: a workload; 12 more pools: other namespaces$/,
    );
  });

  it("of many NICs does not grow with them", () => {
    const { message, details = "", forLog = "" } = attack(32);
    expect(details.split("\n")).toHaveLength(MAX_DETAIL_LINES + 1);
    expect(details).toMatch(/\nand 344 more lines$/);
    expect(message.length + details.length + forLog.length).toBeLessThan(8_000);
  });
});

describe("a main plugin", () => {
  it.each<[type: string, raw: Record<string, unknown>, takes: boolean]>([
    ["bridge", { isGateway: true }, true],
    ["bridge", { isDefaultGateway: true }, true],
    ["bridge", { isGateway: false }, false],
    ["bridge", {}, false],
    ["macvlan", { isGateway: true }, false],
  ])("%s with %j takes an address itself: %j", (type, raw, takes) =>
    expect(takesFirstAddress({ type, raw })).toBe(takes),
  );

  const taking = { ...nic("eth0"), takesFirst: true };
  it.each<[what: string, subnet: string, spec: object, cleanGateway: boolean, wanted: string[]]>([
    ["of a pool without gateway", "10.6.0.0/24", {}, false, ["10.6.0.1"]],
    ["of IPv6 as well", "fd00:6::/64", {}, false, ["fd00:6::1"]],
    ["not of a pool with one", "10.6.0.0/24", { gateway: "10.6.0.254" }, false, []],
    ["of a pool whose gateway the result leaves out", "10.6.0.0/24", { gateway: "10.6.0.254" }, true, ["10.6.0.1"]],
    ["not where the ranges lack it", "10.6.0.0/24", { ips: ["10.6.0.5"] }, false, []],
  ])("takes the first one %s", (_what, subnet, spec, cleanGateway, wanted) => {
    const found = withheldFrom({ ...taking, cleanGateway }, pool("blue", subnet, spec));
    expect(found.map((each) => formatIp(each.ip))).toEqual(wanted);
  });
});

it("a refused address is withheld in its address space, with the reason", () => {
  const refusing = { ...nic("eth0"), refused: [{ space: "lab", ip: ip("10.6.0.7"), why: "it is another pod's" }] };
  const [blue, lab] = [pool("blue", "10.6.0.0/24"), pool("lab", "10.6.0.0/24", { addressSpace: "lab" })];
  expect(findWithholding(refusing, blue, ip("10.6.0.7"))).toBeUndefined();
  expect(findWithholding(refusing, lab, ip("10.6.0.8"))).toBeUndefined();
  expect(findWithholding(refusing, lab, ip("10.6.0.7"))).toBe(
    "the coordinator refused it for this pod: it is another pod's",
  );
});
