import { describe, expect, it } from "vitest";
import { learn, pickFree } from "../../../../../host/agent/ipam/allocate.ts";
import { LIVE_USAGE_MISSES } from "../../../../../host/agent/ipam/live-usage.ts";
import { FreeAddresses } from "../../../../../host/agent/ipam/sources/free.ts";
import { ReleasedAddresses, TAKE_OVER_CHOICES } from "../../../../../host/agent/ipam/sources/released.ts";
import type { Setback } from "../../../../../host/agent/ipam/sources/source.ts";
import type { Picked } from "../../../../../host/ipam/pick.ts";
import { formatIp } from "../../../../../host/net/ip.ts";
import type { Allocation } from "../../../../../host/registry/registry.ts";
import { RECORDS } from "../../../../world/cluster-ipam.ts";
import { CLAIMANT, openSearch, rowOf, shortOf, WEB } from "../../../../world/search.ts";
import { pool, poolsByName, proposal } from "../../../../world/subjects.ts";
import { ip } from "../../../../world/values.ts";

const BLUE = pool("blue", "10.6.0.0/24", { selection: "ascending" });
const NIC = { ifName: "eth0", rule: "test", cleanGateway: false, families: [] };
const APPLICATION = { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name: "web", uid: "u" };

function open(options: Partial<Parameters<typeof openSearch>[0]> = {}) {
  let expired = 0;
  const registry = { expire: async () => void expired++ };
  const { search } = openSearch({ pools: [BLUE], registry, ...options });
  let reserved: Picked["reserved"] = [];
  const picked = (): string[] => {
    const pick = pickFree(search, search.demand.nics);
    reserved = pick.reserved;
    return pick.kind === "picked" ? pick.picked.map((each) => formatIp(each.ip)) : [];
  };
  const isFree = (address: string): boolean => {
    const state = search.poolCache.takeExactly(BLUE, ip(address));
    if (state === "claimed") search.poolCache.cancel([{ space: "", ip: ip(address) }]);
    return state === "claimed";
  };
  const cancel = (): void => search.poolCache.cancel(reserved);
  return { search, free: new FreeAddresses(search), picked, cancel, isFree, expired: () => expired };
}

describe("free addresses", () => {
  it("are reserved with the assigned ones until the claim is over", () => {
    const { search, cancel, picked, isFree } = open();
    const [first = ""] = picked();
    expect(isFree(first)).toBe(false);
    cancel();
    expect(isFree(first)).toBe(true);
    search.assignments.assign([proposal("10.6.0.5")]);
    expect([picked(), isFree("10.6.0.5")]).toEqual([["10.6.0.5"], false]);
    cancel();
    cancel();
    expect(isFree("10.6.0.5")).toBe(true);
  });

  it("of an explanation pass over foreseen ones, and nothing is kept from an ADD", () => {
    const foreseen = rowOf("10.6.0.1");
    const { search, picked, isFree } = open({ view: { foreseen: [foreseen] } });
    expect([picked(), isFree("10.6.0.1"), isFree("10.6.0.2")]).toEqual([["10.6.0.2"], true, true]);
    learn(search, { kind: "bound", held: [], created: [foreseen], previous: [] });
    learn(search, { kind: "taken", by: [rowOf("10.6.0.2", { version: -7 })] });
    expect([isFree("10.6.0.1"), isFree("10.6.0.2")]).toEqual([true, false]);
    const source = new ReleasedAddresses(search);
    const released = rowOf("10.6.0.9", { state: "Cooling" });
    const usable = () => source.usable([released], BLUE, search.demand.nics[0] ?? NIC).length;
    expect([usable(), source.choose([released]), usable()]).toEqual([1, released, 0]);
    expect(search.poolCache.takeOvers.size).toBe(0);
  });

  it("an assigned one that the pool has lost since is not picked, unless it is requested", () => {
    const { search, picked } = open();
    const assign = (rest: object): void => search.assignments.assign([proposal("10.6.0.5", rest)]);
    assign({ source: "retained", replaces: -5 });
    search.poolCache.apply(poolsByName(pool("blue", "10.6.0.0/24", { ips: ["10.6.0.7-10.6.0.9"] })), []);
    expect([picked(), search.assignments.all]).toEqual([["10.6.0.7"], []]);
    assign({ requested: true });
    expect(picked()).toEqual(["10.6.0.5"]);
  });

  it("for an address that another pool has recorded that pool's name is remembered, not for a row of this node", () => {
    const { search } = open();
    const names = () => [...search.poolCache.otherNamesOf(BLUE)];
    learn(search, { kind: "taken", by: [rowOf("10.6.0.5", { pool: "former", version: 0 })] });
    expect(names()).toEqual([]);
    learn(search, { kind: "taken", by: [rowOf("10.6.0.6", { pool: "former", version: -3 })] });
    expect(names()).toEqual(["former"]);
  });

  it("an assigned one that is in use already is still in use afterwards", () => {
    const { search, cancel, picked, isFree } = open();
    search.poolCache.mark("", ip("10.6.0.5"));
    search.assignments.assign([proposal("10.6.0.5", { replaces: 3 })]);
    picked();
    cancel();
    expect(isFree("10.6.0.5")).toBe(false);
  });

  it("an assigned one that another search has reserved stays reserved", () => {
    const { search, cancel, picked, isFree } = open();
    expect(search.poolCache.takeExactly(BLUE, ip("10.6.0.5"))).toBe("claimed");
    search.assignments.assign([proposal("10.6.0.5", { requested: true })]);
    expect(picked()).toEqual(["10.6.0.5"]);
    cancel();
    expect(isFree("10.6.0.5")).toBe(false);
  });

  it("are in use when they are bound, or another owner has them", () => {
    const { search, cancel, picked, isFree } = open();
    const [first = ""] = picked();
    learn(search, { kind: "bound", held: [], created: [rowOf(first)], previous: [] });
    expect(isFree(first)).toBe(false);
    const [second = ""] = picked();
    expect(second).not.toBe(first);
    learn(search, { kind: "taken", by: [rowOf(second, { owner: "u9" })] });
    expect(isFree(second)).toBe(false);
    for (const outcome of [
      { kind: "bound", held: [], created: [], previous: [] },
      { kind: "cooling", own: [rowOf("10.6.0.9")] },
    ] as const) {
      const [third = ""] = picked();
      learn(search, outcome);
      cancel();
      expect(isFree(third)).toBe(true);
    }
  });

  const start = (seedText: string, demand: object = {}): string | undefined => {
    const { picked } = open({ pools: [pool("blue", "10.6.0.0/16")], demand: { seedText, ...demand } });
    return picked()[0];
  };
  it("are searched from the same place for pods of one name, and for one member's NIC whatever the pod's name", () => {
    expect(start("a")).toBe(start("a"));
    expect(start("a")).not.toBe(start("b"));
    const workloads = new Map([["eth0", WEB]]);
    expect(start("a", { workloads })).toBe(start("b", { workloads }));
    expect(start("a", { workloads })).not.toBe(start("a"));
    expect(start("a", { workloads: new Map([["net1", WEB]]) })).toBe(start("a"));
  });

  it("are not the first of the pool where one machine answers for those", () => {
    expect(open().picked()).toEqual(["10.6.0.1"]);
    expect(open({ demand: { randomize: () => true } }).picked()).not.toEqual(["10.6.0.1"]);
    expect(open({ demand: { randomize: () => false } }).picked()).toEqual(["10.6.0.1"]);
  });
});

describe("a search for free addresses", () => {
  it("has cooled ones freed once, before anything else", async () => {
    const { search, free, expired } = open();
    expect(await free.next({ kind: "cooling", own: [] })).toBe(false);
    expect([await free.next(shortOf(search, [BLUE])), expired()]).toEqual([true, 1]);
    await free.next(shortOf(search, [BLUE]));
    expect(expired()).toBe(1);
  });

  it("goes on when another owner has an address", async () => {
    const { search, free, expired } = open();
    const taken: Setback = { kind: "taken", by: [rowOf("10.6.0.1")], picked: [], nics: search.demand.nics };
    expect([await free.next(taken), expired()]).toEqual([true, 0]);
  });

  it.each<[what: string, versions: readonly number[], lists: number]>([
    ["of another node, among others", [4, -1], 1],
    ["of this node", [0, 4], 0],
  ])("has the pool's use listed after two misses in a row, if the owner is one %s", async (_, versions, lists) => {
    let listed = 0;
    const records = { ...RECORDS, listUsed: async () => void listed++ };
    const { search, free } = open({ cluster: { records: records as never } });
    const by = versions.map((version) => rowOf("10.6.0.1", { version }));
    const picked = [proposal("10.6.0.1")];
    const taken: Setback = { kind: "taken", by, picked, nics: search.demand.nics };
    for (let miss = 0; miss < LIVE_USAGE_MISSES; miss++) {
      expect(listed).toBe(0);
      await free.next(taken);
    }
    expect(listed).toBe(lists);
  });

  const REQUEST = { application: APPLICATION, ifName: "eth0", family: 4, subnets: ["s"] };
  it.each<[what: string, generated: object | undefined, skips: boolean | undefined, isEnded: boolean]>([
    ["at once where the ADD waits for a generated pool", REQUEST, true, true],
    ["not where the ADD does not wait", REQUEST, false, false],
    ["not where the ADD does not say whether it waits", REQUEST, undefined, false],
    ["not in a pool made by hand", undefined, true, false],
  ])("ends %s", async (_, generated, skips, isEnded) => {
    const { search, free } = open({ demand: skips === undefined ? {} : { skipIfFull: () => skips } });
    const short = shortOf(search, [BLUE]) as Extract<Setback, { kind: "short" }>;
    const demand = { ...short.shortage.demand, ...(generated && { generated }) } as never;
    const answer = free.next({ ...short, shortage: { ...short.shortage, demand } });
    if (isEnded) await expect(answer).rejects.toMatchObject({ code: 101 });
    else expect(await answer).toBe(true);
  });
});

describe("addresses that searches take over", () => {
  const released = (last: number, rest: Partial<Allocation> = {}) =>
    rowOf(`10.6.0.${last}`, { state: "Cooling", owner: "u9", version: last, ...rest });

  it("are passed over by other searches until this one ends", () => {
    const { search } = open();
    const [one, other] = [new ReleasedAddresses(search), new ReleasedAddresses(search)];
    const row = released(9);
    expect([one.usable([row], BLUE, NIC), one.choose([row])]).toEqual([[row], row]);
    expect(other.usable([row], BLUE, NIC)).toEqual([]);
    other.end();
    expect(other.usable([row], BLUE, NIC)).toEqual([]);
    one.end();
    expect(other.usable([row], BLUE, NIC)).toEqual([row]);
    expect(one.choose([])).toBeUndefined();
  });

  it("are not those that are about to be retained on this node; another node's are", () => {
    const source = new ReleasedAddresses(open().search);
    const rows = [9, 0, -4].map((version) => released(9, { version, workload: WEB }));
    expect(source.usable(rows, BLUE, NIC).map(({ version }) => version)).toEqual([-4]);
  });

  it("are among the first eight, not the same for all owners", () => {
    const rows = Array.from({ length: TAKE_OVER_CHOICES + 4 }, (_, index) => released(index + 1));
    const chosen = Array.from({ length: 60 }, (_, at) => {
      const { search } = open({ demand: { claimant: { ...CLAIMANT, owner: `owner-${at}` } } });
      return new ReleasedAddresses(search).choose(rows)?.version;
    });
    expect(new Set(chosen)).toEqual(new Set(rows.slice(0, TAKE_OVER_CHOICES).map(({ version }) => version)));
  });
});
