import { describe, expect, it } from "vitest";
import type { NetworkProvider } from "../../../../host/controller/owners/plan-nic-requests.ts";
import type { TrackedObject } from "../../../../host/controller/owners/tracked-object.ts";
import { TrackedOwners } from "../../../../host/controller/owners/tracked-owners.ts";
import { annotationsOf, BLUE, requireTracked, SETTINGS, type Wanted } from "./workload-objects.ts";

const deployment = (name: string, wanted: Wanted = {}) => requireTracked("Deployment", { name, ...wanted });
const countsOf = (roster: TrackedOwners) =>
  roster.demands(SETTINGS).demands.map(({ application, count }) => `${application.name} ${count}`);

function rosterOf(...tracked: readonly TrackedObject[]): TrackedOwners {
  const roster = new TrackedOwners(() => "berth");
  for (const each of tracked) roster.update(`Deployment ${each.application.name}`, undefined, each);
  return roster;
}

describe("a roster", () => {
  it("is empty at first, and again when all have gone", () => {
    const web = deployment("web");
    const roster = rosterOf();
    expect(roster.demands(SETTINGS)).toEqual({ demands: [], faults: [] });
    roster.update("Deployment web", undefined, web);
    expect([countsOf(roster), roster.has(web.application)]).toEqual([["web 2"], true]);
    roster.update("Deployment web", web, undefined);
    expect([countsOf(roster), roster.has(web.application)]).toEqual([[], false]);
  });

  it("gives the same answer again while nothing has changed, and otherwise plans the changed part again", () => {
    const [web, shop] = [deployment("web"), deployment("shop")];
    const roster = rosterOf(web, shop);
    const first = roster.demands(SETTINGS);
    expect(roster.demands({ ...SETTINGS })).toBe(first);
    roster.update("Deployment web", web, deployment("web", { spec: { replicas: 5 } }));
    const second = roster.demands(SETTINGS);
    expect(second.demands.map(({ count }) => count)).toEqual([6, 2]);
    expect([second.demands[0] === first.demands[0], second.demands[1] === first.demands[1]]).toEqual([false, true]);
  });

  const dual = { ...SETTINGS, enableIPv6: true };
  it.each([
    ["enableIPv4", SETTINGS, { enableIPv4: false, enableIPv6: true }, ["subnet"]],
    ["enableIPv6", SETTINGS, { enableIPv6: true }, ["subnet"]],
    ["allowSingleFamily", dual, { allowSingleFamily: true }, []],
    ["firstNic", SETTINGS, { firstNic: "net0" }, []],
    ["no firstNic", SETTINGS, { firstNic: undefined }, []],
  ])("plans again when the settings are others: %s", (_what, settings, change, faults) => {
    const roster = rosterOf(deployment("web"));
    const before = roster.demands(settings);
    const after = roster.demands({ ...settings, ...change });
    expect(after).not.toEqual(before);
    expect(after.faults.map(({ message }) => message)).toEqual(faults.map((each) => expect.stringContaining(each)));
    expect(roster.demands(settings)).toEqual(before);
  });

  it("reads templates by the settings: a disabled family may hold anything", () => {
    const annotations = annotationsOf({ subnet: { ipv4: ["blue"], ipv6: [] } });
    const roster = rosterOf(deployment("web", { annotations }));
    expect(roster.demands(SETTINGS)).toMatchObject({ demands: [{}], faults: [] });
    const [fault] = roster.demands({ ...SETTINGS, enableIPv6: true }).faults;
    expect(fault?.message).toContain('field "ipv6": found an empty list');
    expect(roster.demands(SETTINGS)).toMatchObject({ demands: [{}], faults: [] });
  });

  it("plans again when networks have changed", () => {
    let provider: NetworkProvider = "unknown";
    const roster = new TrackedOwners(() => provider);
    const annotations = { ...BLUE, "k8s.v1.cni.cncf.io/networks": "a" };
    roster.update("Deployment web", undefined, deployment("web", { annotations }));
    expect(countsOf(roster)).toEqual(["web 2"]);
    provider = "berth";
    expect(countsOf(roster)).toEqual(["web 2"]);
    roster.invalidate();
    expect(countsOf(roster)).toEqual(["web 2", "web 2"]);
  });

  it("follows an object that has come to another owner", () => {
    const set = (uid: string) =>
      requireTracked("ReplicaSet", { name: "set", owner: { kind: "Rollout", apiVersion: "x/v1", name: uid, uid } });
    const roster = rosterOf();
    roster.update("ReplicaSet set", undefined, set("a"));
    roster.update("ReplicaSet set", set("a"), set("b"));
    expect(countsOf(roster)).toEqual(["b 2"]);
  });

  it("a UID of another namespace's workload belongs to no demand there", () => {
    const foreign = requireTracked("Pod", {
      ...{ name: "p", metadata: { namespace: "evil" } },
      owner: { kind: "Deployment", name: "web", uid: "uid-web" },
    });
    const web = deployment("web");
    const roster = rosterOf(web);
    roster.update("Pod p", undefined, foreign);
    const { demands } = roster.demands(SETTINGS);
    expect(demands.filter(({ application }) => application.namespace === "shop")).toHaveLength(1);
    expect(roster.has({ namespace: "other", uid: "uid-web" })).toBe(false);
  });
});
