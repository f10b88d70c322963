import { describe, expect, it } from "vitest";
import { OwnAddresses } from "../../../../../host/agent/ipam/sources/own.ts";
import { CLAIM_POLL_MS, RetainedAddresses } from "../../../../../host/agent/ipam/sources/retained.ts";
import type { AddressDemand, Setback } from "../../../../../host/agent/ipam/sources/source.ts";
import { HAND_OVER_WAIT_MS } from "../../../../../host/agent/request/add-deadline.ts";
import type { Proposal } from "../../../../../host/ipam/pick.ts";
import type { SubnetPoolRequest } from "../../../../../host/ipam/subnet-pools.ts";
import { formatIp } from "../../../../../host/net/ip.ts";
import { PROBE_FIRST } from "../../../../../host/registry/kubernetes/known-object.ts";
import type { Allocation } from "../../../../../host/registry/registry.ts";
import { isSameMember } from "../../../../../host/resources/member.ts";
import { RECORDS } from "../../../../world/cluster-ipam.ts";
import { cases } from "../../../../world/rows.ts";
import {
  assignedOf,
  BLUE,
  CLAIMANT,
  openSearch,
  rowOf,
  SIX,
  shortOf,
  TWO_NICS,
  WEB,
} from "../../../../world/search.ts";
import { type NicRequest, pool, proposal } from "../../../../world/subjects.ts";

const LAB_NIC = [
  { ifName: "eth0", pools: [["blue"]] },
  { ifName: "net1", pools: [["lab"]] },
];

interface Options {
  readonly nics?: readonly NicRequest[];
  readonly retained?: readonly Allocation[];
  /** Rows of the pod in the journal. */
  readonly rows?: readonly Allocation[];
  readonly demand?: Partial<AddressDemand>;
  readonly evicted?: Allocation | undefined;
  readonly hasChanged?: boolean;
  readonly isAlone?: boolean;
  /** Assigned before the search. */
  readonly before?: readonly Proposal[];
}

function open(options: Options = {}) {
  const { nics = TWO_NICS, retained = [], rows = [], evicted, hasChanged = true, isAlone = false } = options;
  const said: string[] = [];
  const texts = (all: readonly Allocation[]) => all.map((each) => formatIp(each.ip)).join();
  const { search, clock } = openSearch({
    ...{ pools: [BLUE, SIX, pool("lab", "10.6.0.0/24", { addressSpace: "lab" })], nics, isAlone },
    registry: {
      findAddress: async (_space, address) => rows.find((row) => formatIp(row.ip) === formatIp(address)),
      findOwner: async () => [...rows],
      undo: async (all) => void said.push(`undo ${texts(all)}`),
    },
    cluster: {
      records: {
        ...RECORDS,
        findRetained: async (member, target) => {
          said.push(target === undefined ? "lookup" : `lookup for ${target.pod}`);
          return retained.filter(({ workload }) => workload !== undefined && isSameMember(member, workload));
        },
        releaseRetained: async (all) => void said.push(`release ${texts(all)}`),
        awaitChange: async (_holder, withinMs) => {
          said.push(`await ${withinMs}`);
          clock.jump(1_000);
          return hasChanged;
        },
      },
      evictPredecessor: async (former) => {
        said.push(`evict ${texts([former])}`);
        return evicted;
      },
    },
    demand: { claimant: { ...CLAIMANT, workload: WEB }, ...options.demand },
  });
  const own = new OwnAddresses(search);
  const source = new RetainedAddresses(search, own);
  const short = shortOf(search, [BLUE]);
  return { search, clock, own, source, short, said, assigned: () => assignedOf(search) };
}

/** The search is short, and has asked its source once. */
async function searched(options: Options = {}) {
  const opened = open(options);
  opened.search.assignments.assign(options.before ?? []);
  return { ...opened, isFound: await opened.source.next(opened.short) };
}

/** Objects of the API server have negative versions, the later the lower. */
const kept = (address: string, rest: Partial<Allocation> = {}) =>
  rowOf(address, { state: "Kept", owner: "", containerId: "", workload: WEB, version: -5, ...rest });
const earlier = (address: string, rest: Partial<Allocation> = {}) =>
  rowOf(address, { owner: "u0", workload: WEB, version: -5, ...rest });

describe("retention: a search that is short takes retained addresses", () => {
  const claim = { ...WEB, kind: "IPAMClaim", name: "disk", member: "disk" };
  const net1 = { ifName: "net1" };
  /** Addresses that only the API server knows as the pod's own. */
  const orphan = earlier("10.6.0.8", { owner: "u1", version: -9 });
  const had = proposal("10.6.0.7", { replaces: 4, source: "own" });
  it.each(cases<Options>`
    for the NIC ${{ retained: [kept("10.6.0.9")] }} => eth0 10.6.0.9 -5 retained
    for each NIC and family ${{ retained: [kept("10.6.0.9"), kept("10.6.0.8", net1), kept("fd00:6::9")] }}
      => eth0 10.6.0.9 -5 retained & net1 10.6.0.8 -5 retained & eth0 fd00:6::9 -5 retained
    for no NIC by name: one NIC has it ${{ retained: [kept("10.6.0.9", { ifName: "" })] }} => eth0 10.6.0.9 -5 retained
    two for no NIC by name: each NIC has one ${{ retained: [kept("10.6.0.9", { ifName: "" }), kept("10.6.0.8", { ifName: "", version: -9 })] }}
      => eth0 10.6.0.9 -5 retained & net1 10.6.0.8 -9 retained
    for each NIC, the same address of two spaces ${{ nics: LAB_NIC, retained: [kept("10.6.0.9"), kept("10.6.0.9", { ...net1, space: "lab" })] }}
      => eth0 10.6.0.9 -5 retained & net1 10.6.0.9 -5 retained
    not what is of another address space ${{ retained: [kept("10.6.0.9", { space: "lab" })] }} => nothing
    not what is in no selected pool ${{ retained: [kept("10.9.0.9")] }} => nothing
    not what is for a NIC that is not demanded ${{ retained: [kept("10.6.0.9", { ifName: "net9" })] }} => nothing
    for a NIC with an address owner of its own, only what is that one's ${{ retained: [kept("10.6.0.8", net1), kept("10.6.0.9", { ...net1, workload: claim })], demand: { workloads: new Map([["net1", claim]]) } }}
      => net1 10.6.0.9 -5 retained
    what only the API server knows as its own, last ${{ retained: [orphan, earlier("10.6.0.9")] }}
      => eth0 10.6.0.9 -5 retained
    in place of what the pod had without a record ${{ before: [had], retained: [kept("10.6.0.9")] }}
      => eth0 10.6.0.9 -5 retained
    not in place of what it had with one ${{ before: [had], rows: [rowOf("10.6.0.7")], retained: [kept("10.6.0.9"), earlier("10.6.0.7", { owner: "u1" })] }}
      => eth0 10.6.0.7 4 own
    what was claimed ahead for another of its pods beside it, last ${{ retained: [earlier("10.6.0.8", { version: -1 }), earlier("10.6.0.9")], rows: [rowOf("10.6.0.8", { owner: "u0", workload: WEB, containerId: "", claim: { id: "c", number: 1, earlier: [] } })] }}
      => eth0 10.6.0.9 -5 retained
    what only the API server knows as its own ${{ retained: [orphan] }} => eth0 10.6.0.8 -9 retained
    not what its journal has ${{ retained: [orphan], rows: [rowOf("10.6.0.8")] }} => nothing
    what only the API server knows as its own while another pod of the node tries to claim it ${{ retained: [orphan], rows: [rowOf("10.6.0.8", { owner: "u9", isConfirmed: false })] }}
      => eth0 10.6.0.8 -9 retained
  `)("%s", async (_, options, wanted) => {
    const { isFound, assigned, said } = await searched(options);
    const found = assigned().join(" & ") || "nothing";
    expect([isFound, found, said[0]]).toEqual([!/nothing|own$/.test(wanted), wanted, "lookup"]);
  });

  it("leaves addresses that fit no pool until the claim has shown which addresses the NICs have", async () => {
    expect(await searched({ retained: [kept("10.6.0.9"), kept("10.9.0.9")] })).toMatchObject({ said: ["lookup"] });
  });

  const all = [kept("10.6.0.9"), kept("fd00:6::9"), kept("10.6.0.8", { ifName: "net1" })];
  const freePick = proposal("10.6.0.5", { ifName: "net1" });
  const ownPick = proposal("10.6.0.7", { source: "own" });
  it.each<[string, boolean, readonly Allocation[], readonly Proposal[]]>([
    ["if each family of each NIC has some", true, all, []],
    ["not if a NIC has none", false, all.slice(0, 2), []],
    ["not if another NIC has none", false, all.slice(2), []],
    ["not if a family has none", false, [kept("10.6.0.9"), kept("10.6.0.8", { ifName: "net1" })], []],
    ["not if nothing is found", false, [], []],
    ["if the pod has the rest itself", true, all.slice(1), [ownPick]],
    ["not if the rest is taken from free ones", false, all.slice(1, 2), [freePick, ownPick]],
  ])("covers the NICs' missing addresses: %s: %s", async (_, wanted, retained, picks) => {
    const { search, source } = open({ retained });
    search.assignments.assign(picks);
    expect(await source.cover(search.demand.nics)).toBe(wanted);
  });

  it("prefers the known first choice to one met by chance", async () => {
    const { source, said } = await searched({ retained: [kept("10.6.0.9")] });
    const held = [rowOf("10.6.0.8", { workload: WEB, claim: { id: "c", number: 0, earlier: [] } })];
    expect(await source.prefer({ kind: "bound", held, created: held, previous: [] }, [])).toBe(true);
    expect(said.slice(1)).toEqual(["undo 10.6.0.8"]);
  });

  it("looks it up once, and not for its own cooling addresses", async () => {
    const { source, short, said } = open({ retained: [kept("10.6.0.9")] });
    expect([await source.next({ kind: "cooling", own: [] }), said]).toEqual([false, []]);
    await source.next(short);
    expect([await source.next(short), said]).toEqual([false, ["lookup"]]);
  });

  it("looks it up when another node has a picked address, not for one of this node", async () => {
    const { source, said, search } = open({ retained: [kept("10.6.0.9")] });
    const taken = (...versions: number[]): Setback => {
      const by = versions.map((version) => rowOf("10.6.0.1", { version }));
      return { kind: "taken", by, picked: [], nics: search.demand.nics };
    };
    expect([await source.next(taken(0, 4)), said]).toEqual([false, []]);
    expect([await source.next(taken(4, -1)), said]).toEqual([true, ["lookup"]]);
  });

  it("asks for other pods' addresses only for the pod to which a machine migrates", async () => {
    const claimant = { ...CLAIMANT, workload: WEB, isMigrationTarget: true };
    expect((await searched({ demand: { claimant } })).said).toEqual([`lookup for ${CLAIMANT.pod}`]);
  });

  it("only for NICs and families that lack an address", async () => {
    const { source, short, assigned, search } = open({
      retained: [kept("10.6.0.9"), kept("10.6.0.8", { ifName: "net1" })],
    });
    search.assignments.assign([proposal("10.6.0.1")]);
    const nics = search.demand.nics.map((nic) => (nic.ifName === "net1" ? { ...nic, families: [] } : nic));
    expect(await source.next({ ...short, nics } as Setback)).toBe(false);
    expect(assigned()).toEqual(["eth0 10.6.0.1 undefined undefined"]);
  });

  it("not of the family that the NIC has, where it lacks the other one", async () => {
    const { source, short, assigned, search } = open({ retained: [kept("10.6.0.9"), kept("fd00:6::9")] });
    const nics = search.demand.nics.map((nic) => ({
      ...nic,
      families: nic.families.filter((each) => each.family === 6),
    }));
    expect(await source.next({ ...short, nics } as Setback)).toBe(true);
    expect(assigned()).toEqual(["eth0 fd00:6::9 -5 retained"]);
  });

  const other = [rowOf("10.6.0.1")];
  const net9 = [kept("10.9.0.9", { ifName: "net9" })];
  const six = { retained: [kept("fd00:6::9", net1), kept("fd00:9::9")] };
  it.each(cases<Options>`
    not what fits no pool of its NIC, which has none yet: the pool may only be renamed ${{ retained: [kept("10.9.0.9")] }}
      => nothing
    nor what fits the pool of another NIC in another space ${{ nics: LAB_NIC, retained: [kept("10.6.0.9", { space: "blue" })] }}
      => nothing
    that as well if another NIC may have it ${{ nics: [{ ifName: "eth0", pools: [["six"]] }, ...TWO_NICS.slice(1)], ...six }}
      => fd00:6::9
    that of a family that its own NIC still lacks, too ${{ nics: LAB_NIC, retained: [kept("10.6.0.9", { space: "lab" })] }}
      => 10.6.0.9
    what is of a family that its NIC does not demand ${{ retained: [kept("fd00:9::9", net1)] }} => fd00:9::9
    what was retained for a NIC that has another one ${{ rows: other, retained: [kept("10.9.0.9")] }} => 10.9.0.9
    not what a NIC beside the demand may want ${{ retained: net9 }} => nothing
    that as well where the pod has no other NIC ${{ retained: net9, demand: { coversPod: true } }} => 10.9.0.9
    not what an earlier pod has ${{ retained: [earlier("10.9.0.9")] }} => nothing
    it, and not what an earlier pod has ${{ rows: other, retained: [kept("10.9.0.9"), earlier("10.9.0.8")] }} => 10.9.0.9
    not what the pod has itself ${{ rows: [rowOf("10.9.0.9")], retained: [kept("10.9.0.9")] }} => nothing
  `)("releases %s", async (_, options, released) => {
    const { isFound, said } = await searched(options);
    expect([isFound, said]).toEqual([false, ["lookup", ...(released === "nothing" ? [] : [`release ${released}`])]]);
  });

  it("does not release an address that a generated pool may have by now, or another one that has another name", async () => {
    const retained = [kept("10.9.0.9"), kept("10.9.0.8", { ifName: "" }), kept("fd00:9::9")];
    const ofOther = kept("10.9.0.7", { ifName: "net1" });
    const { nics } = open().search.demand;
    const application = { kind: "StatefulSet", namespace: "shop", name: "web", uid: "w1", apiVersion: "apps/v1" };
    const wanted: SubnetPoolRequest = { application, ifName: "eth0", family: 4, subnets: ["lan"] };
    const generated = nics.map((nic) => ({
      ...nic,
      families: nic.families.map((each) =>
        each.family === 4 && nic.ifName === "eth0" ? { ...each, generated: wanted } : each,
      ),
    }));
    for (const coversPod of [false, true]) {
      const demand = { nics: generated, coversPod };
      const found = await searched({ retained: [...retained, ofOther], demand });
      expect(found).toMatchObject({ isFound: false, said: ["lookup"] });
    }
  });

  it("node-lost: has an address probed for which a lost node may still answer, where the NIC can do that", async () => {
    const lost = kept("10.6.0.9", { quarantine: PROBE_FIRST });
    const probing = await searched({ retained: [lost], demand: { canProbe: () => true } });
    expect(probing.search.assignments.all).toMatchObject([{ needsProbe: true, source: "retained" }]);
    const plain = await searched({ retained: [kept("10.6.0.9")] });
    expect(plain.search.assignments.all[0]).not.toHaveProperty("needsProbe");
    const never = await searched({ retained: [lost], demand: { canProbe: () => false } });
    expect([never.isFound, never.assigned()]).toEqual([false, []]);
    const early = { code: 11, message: /"web-0", whose node is lost/ };
    await expect(searched({ retained: [lost] })).rejects.toMatchObject(early);
  });
});

describe("retention: another owner has the address", () => {
  const PICKED = [proposal("10.6.0.9"), proposal("10.6.0.5", { ifName: "net1" })];

  it("an earlier pod on another node: its agent takes it off the NIC, and retained addresses are looked up again", async () => {
    const { source, short, said } = await searched({ retained: [kept("10.6.0.9")] });
    const holder = earlier("10.6.0.9", { predecessorNode: "n2" });
    expect(await source.replace(holder, PICKED)).toBe(true);
    expect(await source.replace(holder, PICKED)).toBe(true);
    await source.next(short);
    expect(said).toEqual(["lookup", `await ${HAND_OVER_WAIT_MS}`, `await ${HAND_OVER_WAIT_MS - 1_000}`, "lookup"]);
  });

  it("an earlier pod on another node, whose agent does not: try again", async () => {
    const holder = earlier("10.6.0.9", { predecessorNode: "n2" });
    const waited = { code: 11, message: /still has it on node "n2"/ };
    await expect(open({ hasChanged: false }).source.replace(holder, PICKED)).rejects.toMatchObject(waited);
    await expect(open({ isAlone: true }).source.replace(holder, PICKED)).rejects.toMatchObject(waited);
    const { source, clock, said } = open();
    await source.replace(holder, PICKED);
    clock.jump(HAND_OVER_WAIT_MS - 1_000);
    await expect(source.replace(holder, PICKED)).rejects.toMatchObject(waited);
    expect(said).toHaveLength(1);
  });

  const cooling = rowOf("10.6.0.9", { owner: "u0", state: "Cooling", workload: WEB, version: 8 });
  const EIGHT = ["eth0 10.6.0.9 8 retained"];
  it.each<[what: string, holder: Allocation, options: Options, said: string[], assigned: string[]]>([
    ["Bound: its pod is evicted", earlier("10.6.0.9", { version: 7 }), { evicted: cooling }, ["evict 10.6.0.9"], EIGHT],
    ["Bound, which has changed meanwhile", earlier("10.6.0.9", { version: 0 }), {}, ["evict 10.6.0.9"], []],
    ["Cooling", cooling, {}, [], EIGHT],
  ])("an earlier pod of this node: %s", async (_, holder, options, said, assigned) => {
    const opened = open(options);
    expect(await opened.source.replace(holder, PICKED)).toBe(true);
    expect([opened.said, opened.assigned()]).toEqual([said, assigned]);
  });

  it.each([
    ["an earlier pod of a lost node", earlier("10.6.0.9", { state: "Quarantined", quarantine: PROBE_FIRST })],
    ["the pod itself, on another machine", earlier("10.6.0.9", { owner: "u1", quarantine: PROBE_FIRST })],
  ])("node-lost: %s: the address is probed, or another one is looked for", async (_, holder) => {
    const probing = open({ demand: { canProbe: () => true } });
    probing.search.assignments.assign([proposal("10.6.0.9", { source: "retained" })]);
    expect(await probing.source.replace(holder, PICKED)).toBe(true);
    expect(probing.search.assignments.all).toMatchObject([{ replaces: -5, needsProbe: true }]);
    const never = open({ demand: { canProbe: () => false } });
    never.search.assignments.assign([proposal("10.6.0.9", { source: "retained" })]);
    never.own.skipCooling = true;
    expect([await never.source.replace(holder, PICKED), never.assigned()]).toEqual([true, []]);
    // The pod may have given up its own address for it.
    expect(never.own.skipCooling).toBe(false);
  });

  it("node-lost: an address that cannot be probed is looked up again: it may have been preferred to one that was given up", async () => {
    const options = { retained: [earlier("10.6.0.9")], demand: { canProbe: () => false } };
    const { source, short, search, said } = await searched(options);
    await source.replace(earlier("10.6.0.9", { quarantine: PROBE_FIRST }), [...search.assignments.all]);
    await source.next(short);
    expect(said).toEqual(["lookup", "lookup"]);
  });

  it.each<[what: string, rest: Partial<Allocation>]>([
    ["", {}],
    [", whose object names no NIC", { ifName: "" }],
  ])("a live pod of the member on another node%s keeps it: try again", async (_, rest) => {
    const refused = { code: 11, message: /its pod shop\/web-0 still has it/ };
    await expect(open().source.replace(earlier("10.6.0.9", rest), PICKED)).rejects.toMatchObject(refused);
  });

  it.each<[what: string, holder: Allocation]>([
    ["of another member", earlier("10.6.0.9", { workload: { ...WEB, member: "web-1" } })],
    ["of another NIC of the member", earlier("10.6.0.9", { ifName: "net1" })],
    ["in another state", earlier("10.6.0.9", { state: "Cooling" })],
    ["whose claim is under way", rowOf("10.6.0.9", { owner: "u9", isConfirmed: false })],
    ["whose address cools on this node", rowOf("10.6.0.9", { owner: "u9", state: "Cooling" })],
    ["that is this one", rowOf("10.6.0.9", { state: "Cooling", workload: WEB })],
  ])("is no matter of retention: a pod %s", async (_, holder) => {
    const { source, search, short, said } = open();
    search.assignments.assign([proposal("10.6.0.9", { source: "cooling" })]);
    expect(await source.replace(holder, PICKED)).toBe(false);
    await source.next(short);
    expect([await source.replace(holder, PICKED), await source.next(short), said]).toEqual([false, false, ["lookup"]]);
  });

  it("an address that was not assigned needs nothing", async () => {
    expect(await open().source.replace(rowOf("10.6.0.1", { owner: "u9", version: -3 }), PICKED)).toBe(true);
  });

  it.each([
    ["is retained", { source: "retained", replaces: -5 }],
    ["the member's pod has had", { source: "own", replaces: 3 }],
  ] as const)("another pod's claim of what %s is waited for, for five seconds in all", async (_, what) => {
    const { source, search, clock } = open();
    search.assignments.assign([proposal("10.6.0.9", what)]);
    const holder = rowOf("10.6.0.9", { owner: "u9", isConfirmed: false, version: 0 });
    const beganMs = clock.ms;
    expect([await source.replace(holder, PICKED), clock.ms - beganMs]).toEqual([true, CLAIM_POLL_MS]);
    clock.jump(HAND_OVER_WAIT_MS - CLAIM_POLL_MS);
    const tooLong = { code: 11, message: /has not ended; try again$/ };
    await expect(source.replace(holder, PICKED)).rejects.toMatchObject(tooLong);
  });

  it("another pod's claim of a former address of a pod that is no member is not waited for", async () => {
    const { source, search, clock } = open({ demand: { claimant: CLAIMANT } });
    search.assignments.assign([proposal("10.6.0.9", { source: "own", replaces: 3 })]);
    const holder = rowOf("10.6.0.9", { owner: "u9", isConfirmed: false, version: 4 });
    const beganMs = clock.ms;
    expect([await source.replace(holder, PICKED), clock.ms - beganMs]).toEqual([false, 0]);
  });

  it("a former address of the member's pod is lost to it: retained ones are looked up", async () => {
    const { source, short, search, assigned } = await searched({ retained: [kept("10.6.0.8", { version: -9 })] });
    search.assignments.assign([proposal("10.6.0.9", { source: "own", replaces: 3 })]);
    const holder = rowOf("10.6.0.9", { owner: "u9", isConfirmed: true, version: 4 });
    expect(await source.replace(holder, PICKED)).toBe(false);
    search.assignments.drop(holder);
    await source.next(short);
    expect(assigned()).toEqual(["eth0 10.6.0.8 -9 retained"]);
  });

  it.each<[what: string, holder: Partial<Allocation>]>([
    ["that was answered", { isConfirmed: true }],
    ["that cools", { isConfirmed: false, state: "Cooling", version: -5 }],
    ["that cools on another node by now", { state: "Cooling", version: -8 }],
    ["of another node", { isConfirmed: false, version: -3 }],
  ])("an address %s is lost to the search: retained ones are looked up again, without it", async (_, change) => {
    const retained = [kept("10.6.0.9"), kept("10.6.0.8", { version: -9 })];
    const { source, short, search, assigned, said } = await searched({ retained });
    expect(assigned()).toEqual(["eth0 10.6.0.9 -5 retained"]);
    const holder = rowOf("10.6.0.9", { owner: "u9", ...change });
    expect(await source.replace(holder, PICKED)).toBe(false);
    search.assignments.drop(holder);
    await source.next(short);
    expect([assigned(), said]).toEqual([["eth0 10.6.0.8 -9 retained"], ["lookup", "lookup"]]);
  });

  it("a row of this node that is older than the object is taken over with its version", async () => {
    const { source, assigned } = await searched({ retained: [kept("10.6.0.9"), kept("10.6.0.8", { version: -9 })] });
    const old = rowOf("10.6.0.9", { owner: "u9", state: "Cooling", version: 0 });
    expect([await source.replace(old, PICKED), assigned()]).toEqual([true, ["eth0 10.6.0.9 0 retained"]]);
    expect(await source.replace(old, PICKED)).toBe(false);
  });
});
