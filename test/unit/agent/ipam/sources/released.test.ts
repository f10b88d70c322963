import { describe, expect, it } from "vitest";
import {
  OTHERS_COOLING_POLL_MS,
  QUARANTINE_MAX_MS,
  ReleasedAddresses,
  TAKE_OVER_CHOICES,
} from "../../../../../host/agent/ipam/sources/released.ts";
import { RequestedAddresses } from "../../../../../host/agent/ipam/sources/requested.ts";
import { MIN_COOLING_MS, OTHERS_COOLING_WAIT_MS } from "../../../../../host/agent/request/add-deadline.ts";
import type { Mac } from "../../../../../host/net/mac.ts";
import type { Allocation, QuarantineQuery } from "../../../../../host/registry/registry.ts";
import { RECORDS } from "../../../../world/cluster-ipam.ts";
import { assignedOf, CLAIMANT, openSearch, rowOf, shortOf } from "../../../../world/search.ts";
import { pool, proposal } from "../../../../world/subjects.ts";
import { ip, mac } from "../../../../world/values.ts";

const BLUE = pool("blue", "10.6.0.0/24");
const GREEN = pool("green", "10.7.0.0/24");
const WEB = { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name: "web", uid: "u" };
const GENERATED = { subnet: "s", application: WEB, interface: "eth0", reclaim: true, wanted: 2, reason: "" };
const NOW_MS = 1_000_000;

function open(options: Partial<Parameters<typeof openSearch>[0]> & { readonly cooling?: readonly Allocation[] } = {}) {
  const limits: number[] = [];
  const findCooling = async (_spans: unknown, limit: number, name?: string): Promise<Allocation[]> => {
    limits.push(limit);
    return (options.cooling ?? []).filter((each) => each.pool === name);
  };
  const { search, clock } = openSearch({ pools: [BLUE, GREEN], registry: { findCooling }, ...options });
  return { search, clock, cooling: new ReleasedAddresses(search), assigned: () => assignedOf(search), limits };
}

const released = (address: string, agoMs: number, rest: Partial<Allocation> = {}) =>
  rowOf(address, { state: "Cooling", owner: "u9", sinceMs: NOW_MS - agoMs, ...rest });

const YOUNG_AND_OLD = [released("10.6.0.8", MIN_COOLING_MS - 1), released("10.6.0.9", 9_000)];

describe("cooling-visibility: a released address is taken over", () => {
  it.each<[what: string, rows: readonly Allocation[], wanted: string]>([
    ["of this node", [released("10.6.0.9", MIN_COOLING_MS)], "eth0 10.6.0.9 7 cooling"],
    ["of another node", [released("10.6.0.9", 9_000, { version: -4 })], "eth0 10.6.0.9 -4 others-cooling"],
    ["with the first version of a row", [released("10.6.0.9", 9_000, { version: 0 })], "eth0 10.6.0.9 0 cooling"],
    ["that has cooled for two seconds", YOUNG_AND_OLD, "eth0 10.6.0.9 7 cooling"],
  ])("%s", async (_, rows, wanted) => {
    const { search, cooling, assigned, limits } = open({ cooling: rows });
    expect(await cooling.next(shortOf(search, [BLUE]))).toBe(true);
    expect([assigned(), limits]).toEqual([[wanted], [TAKE_OVER_CHOICES * 8]]);
  });

  it("not when the pod's own addresses are the matter", async () => {
    const { cooling, assigned } = open({ cooling: [released("10.6.0.9", 9_000)] });
    expect([await cooling.next({ kind: "cooling", own: [] }), assigned()]).toEqual([false, []]);
  });

  it("after a wait until it has cooled, and no longer", async () => {
    const { search, cooling, clock, assigned } = open({ cooling: [released("10.6.0.9", 500)] });
    expect(await cooling.next(shortOf(search, [BLUE]))).toBe(true);
    expect([clock.ms, assigned()]).toEqual([NOW_MS + MIN_COOLING_MS - 500, []]);
    await cooling.next(shortOf(search, [BLUE]));
    expect(assigned()).toEqual(["eth0 10.6.0.9 7 cooling"]);
  });

  it.each([
    [true, MIN_COOLING_MS],
    [false, MIN_COOLING_MS + OTHERS_COOLING_WAIT_MS],
  ])("alone %s: a search waits for %i ms in all, then it looks in the next pool", async (isAlone, longestMs) => {
    const { search, cooling, clock, assigned } = open({
      isAlone,
      cooling: [released("10.6.0.9", -60_000), released("10.7.0.9", 9_000, { pool: "green" })],
    });
    await cooling.next(shortOf(search, [BLUE, GREEN]));
    expect([clock.ms, assigned()]).toEqual([NOW_MS + longestMs, []]);
    expect(await cooling.next(shortOf(search, [BLUE, GREEN]))).toBe(true);
    expect([clock.ms, assigned()]).toEqual([NOW_MS + longestMs, ["eth0 10.7.0.9 7 cooling"]]);
    expect(await cooling.next(shortOf(search, [BLUE]))).toBe(false);
  });

  it.each([
    ["waits for other nodes before the next pool", false, [true, []]],
    ["goes on to the next pool where there are none", true, [true, ["eth0 10.7.0.9 7 cooling"]]],
  ])("%s", async (_, isAlone, wanted) => {
    const asked: string[] = [];
    const { search, cooling, assigned } = open({
      isAlone,
      cooling: [released("10.7.0.9", 9_000, { pool: "green" })],
      cluster: { records: { ...RECORDS, markWanted: async (pool) => void asked.push(pool) } },
    });
    expect([await cooling.next(shortOf(search, [BLUE, GREEN])), assigned()]).toEqual(wanted);
    expect(asked).toEqual(isAlone ? [] : ["blue"]);
  });
});

describe("cooling-visibility: addresses that other nodes are to publish are waited for", () => {
  it("in short steps, until two seconds are over", async () => {
    const { search, cooling, clock } = open();
    const waits: number[] = [];
    for (let beganMs = clock.ms; await cooling.next(shortOf(search, [BLUE])); beganMs = clock.ms)
      waits.push(clock.ms - beganMs);
    expect(waits).toEqual(Array(OTHERS_COOLING_WAIT_MS / OTHERS_COOLING_POLL_MS).fill(OTHERS_COOLING_POLL_MS));
  });

  it("not longer, and for no other setback", async () => {
    const { search, cooling, clock } = open();
    clock.jump(OTHERS_COOLING_WAIT_MS - 100);
    expect(await cooling.next({ kind: "cooling", own: [] })).toBe(false);
    expect([await cooling.next(shortOf(search, [BLUE])), clock.ms]).toEqual([true, NOW_MS + OTHERS_COOLING_WAIT_MS]);
    expect([await cooling.next(shortOf(search, [BLUE])), clock.ms]).toEqual([false, NOW_MS + OTHERS_COOLING_WAIT_MS]);
  });

  it.each([
    [
      "for a generated pool, whose changes the ADD awaits",
      { ...BLUE, spec: { ...BLUE.spec, generated: GENERATED } },
      false,
    ],
    ["on a node that is alone", BLUE, true],
  ])("not %s", async (_, each, isAlone) => {
    const { search, cooling, clock } = open({ isAlone });
    expect([await cooling.next(shortOf(search, [each])), clock.ms]).toEqual([false, NOW_MS]);
  });
});

describe("conflict: an address that has been in quarantine for an hour", () => {
  const PROBES = { canProbe: () => true };
  const row = rowOf("10.6.0.9", { state: "Quarantined", owner: "" });
  const next = async (demand: object, rows = [row], kind?: "cooling") => {
    const queries: QuarantineQuery[] = [];
    const findQuarantined = async (query: QuarantineQuery): Promise<Allocation[]> => {
      queries.push(query);
      return rows;
    };
    const registry = { findCooling: async () => [], findQuarantined };
    const { search, cooling, assigned } = open({ registry, demand, isAlone: true });
    const isFound = await cooling.next(kind === undefined ? shortOf(search, [BLUE]) : { kind, own: [] });
    return { isFound, assigned: assigned(), queries };
  };

  it("is taken where it can be probed", async () => {
    const { isFound, assigned, queries } = await next(PROBES);
    expect([isFound, assigned]).toEqual([true, ["eth0 10.6.0.9 7 quarantined"]]);
    expect(queries).toMatchObject([{ untilMs: NOW_MS - QUARANTINE_MAX_MS, limit: TAKE_OVER_CHOICES * 8 }]);
  });

  it.each<[what: string, demand: object, rows?: Allocation[], kind?: "cooling"]>([
    ["where it cannot be probed now", { canProbe: () => false }],
    ["where it can never be", {}],
    ["for a NIC that is not the request's", { ...PROBES, claimant: { ...CLAIMANT, ifName: "net1" } }],
    ["outside the pool", PROBES, [rowOf("10.9.0.9", { state: "Quarantined" })]],
    ["when another setback is the matter", PROBES, [row], "cooling"],
  ])("is not taken %s", async (_, demand, rows, kind) => {
    expect(await next(demand, rows, kind)).toMatchObject({ isFound: false, assigned: [] });
  });
});

const CLAIM = { kind: "IPAMClaim", namespace: "shop", name: "c", uid: "c-1", member: "c" };

describe("a requested address that another owner has", () => {
  const REQUEST = { ip: ip("10.6.0.9"), source: "CNI_ARGS IP" as const };
  const replace = (holder: Allocation, isRequested = true, isAlone = true) => {
    const workloads = new Map([["eth0", CLAIM]]);
    const opened = open({ demand: { requested: isRequested ? [REQUEST] : [], workloads }, isAlone });
    const source = new RequestedAddresses(opened.search, opened.cooling);
    opened.search.assignments.assign([proposal("10.6.0.9", isRequested ? { requested: true } : {})]);
    return { opened, answer: source.replace(holder) };
  };

  it("is waited for until it has cooled", async () => {
    const { opened, answer } = replace(released("10.6.0.9", 500, { version: 4 }));
    expect([await answer, opened.clock.ms]).toEqual([true, NOW_MS + MIN_COOLING_MS - 500]);
    expect(opened.search.assignments.all).toMatchObject([{ replaces: 4, requested: true }]);
  });

  it("is taken at once when it has cooled", async () => {
    const { opened, answer } = replace(released("10.6.0.9", MIN_COOLING_MS + 1));
    expect([await answer, opened.clock.ms]).toEqual([true, NOW_MS]);
  });

  it("in another space is no matter of the request: another NIC has that one", async () => {
    const { search, cooling } = open({ demand: { requested: [REQUEST] } });
    search.assignments.assign([proposal("10.6.0.9", { ifName: "net1", space: "lab", source: "cooling" })]);
    const source = new RequestedAddresses(search, cooling);
    expect(await source.replace(rowOf("10.6.0.9", { owner: "u9", space: "lab" }))).toBe(false);
  });

  it.each([
    ["cools for too long", released("10.6.0.9", -60_000)],
    ["is about to be retained for a member", released("10.6.0.9", 9_000, { workload: { ...CLAIM, member: "d" } })],
    ["is about to be retained for another NIC", released("10.6.0.9", 9_000, { workload: CLAIM, ifName: "net1" })],
  ])("is refused for another attempt when it %s", async (_, holder) => {
    const { answer } = replace(holder);
    await expect(answer).rejects.toMatchObject({ code: 11, message: /10\.6\.0\.9 was released only just now$/ });
  });

  it("is no matter of the request when it was not requested, or is another one", async () => {
    expect(await replace(released("10.6.0.9", 9_000), false).answer).toBe(false);
    expect(await replace(released("10.6.0.10", 9_000)).answer).toBe(false);
  });

  it.each<[what: string, holder: Allocation, isDropped: boolean]>([
    ["another pod's", rowOf("10.6.0.9", { owner: "u9", pod: "db-0" }), true],
    ["one that cools", released("10.6.0.9", 500), true],
    ["another claim's", rowOf("10.6.0.9", { state: "Kept", workload: { ...CLAIM, uid: "c-2", member: "d" } }), true],
    ["the claim's, in quarantine for a lost node", rowOf("10.6.0.9", { state: "Quarantined", workload: CLAIM }), false],
  ])("and which Berth alone has named for the claim gives way if it is %s", async (_, holder, isDropped) => {
    const request = { ...REQUEST, isPreference: true };
    const { search, cooling } = open({ demand: { requested: [request], workloads: new Map([["eth0", CLAIM]]) } });
    search.assignments.assign([proposal("10.6.0.9", { requested: true })]);
    const answer = new RequestedAddresses(search, cooling).replace(holder);
    if (isDropped) expect(await answer).toBe(false);
    else await expect(answer).rejects.toMatchObject({ code: 101 });
  });

  const OTHERS = { owner: "u9", pod: "db-0", namespace: "lab" };
  const KEPT = { state: "Kept", pod: "", workload: { ...CLAIM, namespace: "lab" } } as const;
  const quarantine = (rival?: Mac): Partial<Allocation> => ({
    state: "Quarantined",
    quarantine: { reason: "Conflict", mac: rival, parent: "", nextProbeAtMs: 0 },
  });
  it.each<[row: Partial<Allocation>, text: string, forLog?: string]>([
    [{ owner: "u9", pod: "db-0" }, "it is Bound to pod shop/db-0, interface eth0"],
    [{ owner: "u9", pod: "", namespace: "lab", containerId: "c9" }, "it is Bound to container c9, interface eth0"],
    [OTHERS, "it is Bound to a pod of another namespace", "it is Bound to pod lab/db-0, interface eth0"],
    [{ state: "Kept", pod: "", containerId: "", workload: CLAIM }, "it is retained for IPAMClaim shop/c"],
    [{ ...KEPT, workload: { ...KEPT.workload, kind: "Node" } }, "a Node has it", "it is retained for Node lab/c"],
    [KEPT, "it is retained for a workload of another namespace", "it is retained for IPAMClaim lab/c"],
    [quarantine(mac("02:00:00:00:00:99")), "it is quarantined, because 02:00:00:00:00:99 answers for it"],
    [quarantine(), "it is quarantined, because another machine may answer for it"],
    [{ state: "Quarantined", version: -4 }, "it is quarantined, because another machine answers for it"],
    [{ ...quarantine(), version: -4 }, "it is quarantined, because its node was lost"],
  ])("is refused: $1", async (row, text, forLog = text) => {
    const head = "The address requested by CNI_ARGS IP is refused: 10.6.0.9";
    const { answer } = replace(rowOf("10.6.0.9", row));
    const refused = { code: 101, message: `${head}: ${text}`, forLog: `${head}: ${forLog}` };
    await expect(answer).rejects.toMatchObject(refused);
  });
});
