import { describe, expect, it } from "vitest";
import { OwnAddresses } from "../../../../../host/agent/ipam/sources/own.ts";
import type { Allocation } from "../../../../../host/registry/registry.ts";
import { cases } from "../../../../world/rows.ts";
import { assignedOf, BLUE, openSearch, rowOf, SIX, shortOf, TWO_NICS, WEB } from "../../../../world/search.ts";
import { pool, proposal } from "../../../../world/subjects.ts";
import { ip } from "../../../../world/values.ts";

const LAB = pool("lab", "10.7.0.0/24", { addressSpace: "lab" });

function open(rows: readonly Allocation[] = [], options: Partial<Parameters<typeof openSearch>[0]> = {}) {
  let reads = 0;
  const findOwner = async (): Promise<Allocation[]> => {
    reads++;
    return [...rows];
  };
  const { search } = openSearch({ pools: [BLUE, SIX, LAB], nics: TWO_NICS, registry: { findOwner }, ...options });
  return { search, own: new OwnAddresses(search), reads: () => reads };
}

const cooling = (address: string, rest: Partial<Allocation> = {}) => rowOf(address, { state: "Cooling", ...rest });

describe("the pod's own addresses that cool", () => {
  it("are its own again, and the registry need not report them any more", async () => {
    const { search, own } = open();
    expect(own.skipCooling).toBe(false);
    expect(await own.next({ kind: "cooling", own: [cooling("10.6.0.9", { version: 3 })] })).toBe(true);
    expect([assignedOf(search), own.skipCooling]).toEqual([["eth0 10.6.0.9 3 own"], true]);
  });

  it("are not looked at when something else is the matter", async () => {
    const { search, own } = open();
    expect(await own.next(shortOf(search, []))).toBe(false);
    expect([assignedOf(search), own.skipCooling]).toEqual([[], false]);
  });

  const since = (address: string, sinceMs: number, rest = {}) => cooling(address, { sinceMs, ...rest });
  it.each(cases<readonly Allocation[]>`
    of several of one NIC and family the newest ${[since("10.6.0.8", 1), since("10.6.0.9", 2), since("10.6.0.7", 0)]}
      => eth0 10.6.0.9 7 own
    before newer ones those that an ADD was answered with ${[since("10.6.0.9", 2, { isConfirmed: false }), since("10.6.0.8", 1)]}
      => eth0 10.6.0.8 7 own
    before those the one that the pod's member had before ${[since("10.6.0.9", 2), cooling("10.6.0.8", { isConfirmed: false, workload: WEB })]}
      => eth0 10.6.0.8 7 own
    one for each NIC and family ${[cooling("10.6.0.9"), cooling("fd00:6::9"), cooling("10.6.0.10", { ifName: "net1" })]}
      => eth0 10.6.0.9 7 own & eth0 fd00:6::9 7 own & net1 10.6.0.10 7 own
    none of a NIC that is not demanded ${[cooling("10.6.0.9", { ifName: "net9" })]} => none
    none outside the selected pools ${[cooling("10.9.0.9"), cooling("10.7.0.9", { space: "lab" })]} => none
    none of another address space ${[cooling("10.6.0.9", { space: "lab" })]} => none
  `)("come back: %s", async (_, rows, wanted) => {
    const { search, own } = open();
    await own.next({ kind: "cooling", own: rows });
    expect(assignedOf(search).join(" & ") || "none").toBe(wanted);
  });

  it("give way to another address that is assigned to the NIC; the same one is taken with its version", async () => {
    const { search, own } = open();
    search.assignments.assign([proposal("10.6.0.5", { requested: true })]);
    await own.next({ kind: "cooling", own: [cooling("10.6.0.9")] });
    expect(assignedOf(search)).toEqual(["eth0 10.6.0.5 undefined undefined"]);
    await own.next({ kind: "cooling", own: [cooling("10.6.0.5", { version: 4 })] });
    expect(search.assignments.all).toMatchObject([{ requested: true, replaces: 4, source: "own" }]);
  });

  it("are not taken from another NIC of the pod to which they are assigned", async () => {
    const { search, own } = open();
    search.assignments.assign([proposal("10.6.0.5", { ifName: "net1" })]);
    await own.next({ kind: "cooling", own: [cooling("10.6.0.5")] });
    expect(assignedOf(search)).toEqual(["net1 10.6.0.5 undefined undefined"]);
  });

  it("are claimed with the new version of their row after a claim was undone, once", async () => {
    const { search, own } = open();
    await own.next({ kind: "cooling", own: [cooling("10.6.0.9", { version: 3 })] });
    const undone = cooling("10.6.0.9", { version: 8 });
    const others: Allocation[] = [
      { ...undone, owner: "u2" },
      { ...undone, state: "Bound" },
      { ...undone, version: -8 },
      cooling("10.6.0.10", { version: 8 }),
      cooling("10.6.0.9", { version: 3 }),
    ];
    expect(others.map((each) => own.renew(each))).toEqual(others.map(() => false));
    expect([own.renew(undone), assignedOf(search), own.renew(undone)]).toEqual([true, ["eth0 10.6.0.9 8 own"], false]);
    expect(own.renew({ ...undone, version: 0 })).toBe(true);
  });

  it("that are assigned as another source's are not renewed", () => {
    const { search, own } = open();
    search.assignments.assign([proposal("10.6.0.9", { replaces: 3, source: "retained" })]);
    expect(own.renew(cooling("10.6.0.9", { version: 8 }))).toBe(false);
  });
});

describe("an address that the pod has already", () => {
  const missing = async (opened: ReturnType<typeof open>) =>
    (await opened.own.findMissing()).map(
      ({ ifName, families }) => `${ifName} ${families.map(({ family }) => family).join()}`,
    );

  const ALL = ["eth0 4,6", "net1 4"];
  it.each<[what: string, rows: readonly Allocation[], left: string[], assigned: string[]]>([
    ["nothing", [], ALL, []],
    ["a family of a NIC", [rowOf("10.6.0.9")], ["eth0 6", "net1 4"], []],
    ["another NIC's address", [rowOf("10.6.0.9", { ifName: "net1" })], ["eth0 4,6", "net1 "], []],
    ["one that cools", [cooling("10.6.0.9")], ALL, ["eth0 10.6.0.9 7 own"]],
    ["one in quarantine", [rowOf("10.6.0.9", { state: "Quarantined" })], ALL, []],
    ["a NIC of that name of another network", [rowOf("10.6.0.9", { network: "wan" })], ALL, []],
    ["one of another network that cools", [cooling("10.6.0.9", { network: "wan" })], ALL, ["eth0 10.6.0.9 7 own"]],
  ])("needs no second claim: %s", async (_, rows, left, wanted) => {
    const opened = open(rows);
    expect([await missing(opened), assignedOf(opened.search)]).toEqual([left, wanted]);
  });

  it("is looked for once: cooling addresses that were assigned are not assigned again", async () => {
    const opened = open([cooling("10.6.0.9")]);
    opened.own.skipCooling = true;
    await missing(opened);
    expect(assignedOf(opened.search)).toEqual([]);
  });

  const requested = (addresses: string) => ({
    requested: addresses.split(",").map((each) => ({ ip: ip(each), source: "CNI_ARGS IP" as const })),
  });
  it.each<[what: string, row: Partial<Allocation>, asked: string, left: string]>([
    ["is replaced while it was never on a NIC", { containerId: "" }, "10.6.0.5", "eth0 4,6"],
    ["is replaced, whatever is requested of the other family", { containerId: "" }, "fd00:6::5,10.6.0.5", "eth0 4,6"],
    ["is kept when it is the requested one", { containerId: "" }, "10.6.0.9", "eth0 6"],
    ["is kept when the other family is requested", { containerId: "" }, "fd00:6::5", "eth0 6"],
    ["is kept when it is on the NIC", {}, "10.6.0.5", "eth0 6"],
  ])("%s and its NIC requests another one", async (_, row, asked, left) => {
    const opened = open([rowOf("10.6.0.9", row)], { demand: requested(asked) });
    expect(await missing(opened)).toEqual([left, "net1 4"]);
  });

  it("on another NIC is kept, whatever this NIC requests", async () => {
    const opened = open([rowOf("10.6.0.9", { ifName: "net1", containerId: "" })], { demand: requested("10.6.0.5") });
    expect(await missing(opened)).toEqual(["eth0 4,6", "net1 "]);
  });
});
