import { describe, expect, it } from "vitest";
import {
  findLastHolder,
  findLostNode,
  findMissingOwner,
  findOtherHolders,
  findRecreatedOwner,
  foreignOf,
  hasChanged,
  isOfSameNic,
  isRecorded,
  nameOf,
  PROBE_FIRST,
  specOf,
  unreadableOf,
} from "../../../../host/registry/kubernetes/known-object.ts";
import { type Allocation, UNNAMED } from "../../../../host/registry/registry.ts";
import type { Holder, IpAllocation, IpAllocationSpec } from "../../../../host/resources/ip-allocation.ts";
import type { Workload } from "../../../../host/resources/member.ts";
import { openClusterNode } from "../../../world/node.ts";
import { claim, claimAndRetain, HOLDER, ipAllocation, proposal } from "../../../world/subjects.ts";
import { ip } from "../../../world/values.ts";
import { CONFLICT } from "../registry-quarantine-suite.ts";

it("the name of an object says the address and its address space", () => {
  expect(nameOf({ space: "", ip: ip("10.0.0.1") })).toBe("10.0.0.1");
  expect(nameOf({ space: "lab", ip: ip("10.0.0.1") })).toBe("10.0.0.1.lab");
});

describe("the object of a row", () => {
  const row = {
    ...{ ...proposal("10.0.0.1"), state: "Bound" as const, owner: "a", containerId: "secret", network: "net" },
    ...{ namespace: "shop", pod: "web-0", sinceMs: 0, version: 1, quarantine: CONFLICT },
    workload: { kind: "StatefulSet", namespace: "shop", name: "web", uid: "w", member: "web-0" },
  };
  const place = { node: "here", since: "2026-11-20T04:00:00Z" };

  it("names the owner, and no container", () => {
    const spec = specOf(row, "Bound", place);
    const holder = { namespace: "shop", pod: "web-0", podUid: "a", ifName: "eth0", node: "here" };
    const workload = { ...row.workload, ifName: "eth0" };
    expect(spec).toMatchObject({ state: "Bound", workload, ...place });
    expect(spec.holders).toStrictEqual([holder]);
    expect(specOf(row, "Bound", place, { workload: row.workload, number: 4 }).number).toBe(4);
    expect([spec.quarantine, JSON.stringify({ ...spec, ip: "" }).includes("secret")]).toEqual([undefined, false]);
  });

  it.each([
    ["Cooling" as const, { holders: [], workload: undefined, quarantine: undefined }],
    ["Kept" as const, { holders: [], workload: { ...row.workload, ifName: "eth0" }, quarantine: undefined }],
    ["Quarantined" as const, { holders: [], workload: undefined, quarantine: { reason: "Conflict", mac: CONFLICT.mac, parent: CONFLICT.parent } }], // biome-ignore format: one line each
  ])("in state %s has what belongs to it", (state, expected) => {
    const { holders, workload, quarantine } = specOf(row, state, place);
    expect({ holders, workload, quarantine }).toEqual(expected);
  });

  it("of a pod without a workload names none; a quarantine of which nothing is known is a conflict", () => {
    const { workload: _, quarantine: __, ...plain } = row;
    expect(specOf(plain, "Bound", place)).not.toHaveProperty("workload");
    const { quarantine } = specOf(plain, "Quarantined", place);
    expect(quarantine).toEqual({ reason: "Conflict", mac: "", parent: "" });
  });

  it("in state Kept names the NIC it is retained for, and the namespace of the workload", () => {
    const spec = specOf(row, "Kept", place);
    const wanted = { ifName: "eth0", namespace: "shop", owner: "", version: -7 };
    expect(foreignOf({ ...ipAllocation("10.0.0.1"), resourceVersion: "7", spec }, 0)).toMatchObject(wanted);
  });
});

it("another node's object says when it was created, if it does", () => {
  const createdAt = "2026-11-20T04:00:00Z";
  const object = ipAllocation("10.0.0.1");
  expect(foreignOf({ ...object, createdAt }, 0)).toHaveProperty("createdAt", createdAt);
  expect(foreignOf(object, 0)).not.toHaveProperty("createdAt");
});

const WEB = { kind: "StatefulSet", namespace: "shop", name: "web", uid: "w", member: "web-0" };
const lostOf = (holder?: typeof HOLDER) =>
  ({ reason: "NodeLost", mac: "", parent: "", ...(holder === undefined ? {} : { holder }) }) as const;

const QUARANTINED = { state: "Quarantined" } as const;

it.each<[what: string, spec: Partial<IpAllocationSpec>, lost: string | undefined]>([
  ["in quarantine for a lost node", { state: "Quarantined", quarantine: lostOf(HOLDER) }, "n1"],
  ["of which it is not said who had it", { state: "Quarantined", quarantine: lostOf() }, ""],
  ["in quarantine for a conflict", { ...QUARANTINED, quarantine: { ...lostOf(), reason: "Conflict" } }, undefined],
  ["in quarantine without a reason", { state: "Quarantined" }, undefined],
  ["that is bound again", { quarantine: lostOf(HOLDER) }, undefined],
])("node-lost: what is known of the object of an address %s", (_, spec, lost) =>
  expect(findLostNode(ipAllocation("10.0.0.1", spec).spec)).toBe(lost),
);

const row: Allocation = {
  ...proposal("10.0.0.1"),
  ...{ owner: "u1", containerId: "c", network: "net", namespace: "shop", pod: "web-0", sinceMs: 0, version: 7 },
  ...{ state: "Bound", isConfirmed: true, workload: WEB },
};
const objectOf = (spec: Partial<IpAllocationSpec>) => ipAllocation("10.0.0.1", { workload: WEB, ...spec });
const heldBy = (holder: Partial<Holder>) => ({ holders: [{ ...HOLDER, ...holder }] });
const known = objectOf({});

const again = { ...WEB, uid: "again" };
it.each<[what: string, object: IpAllocation, ofPod: Workload | undefined, wanted: Workload | undefined]>([
  ["is what the pod says", known, again, again],
  ["is the row's while the pod says so, whatever the object says", objectOf({ workload: again }), WEB, undefined],
  ["is what the object says where the pod is not known", objectOf({ workload: again }), undefined, again],
  [
    "is not that of another pod's object",
    objectOf({ ...heldBy({ podUid: "u2" }), workload: again }),
    undefined,
    undefined,
  ],
  [
    "is not that of another NIC's object",
    objectOf({ ...heldBy({ ifName: "net1" }), workload: again }),
    undefined,
    undefined,
  ],
  ["is not of another name", known, { ...again, name: "other" }, undefined],
  ["is not of another namespace", known, { ...again, namespace: "evil" }, undefined],
  ["is not another member", known, { ...again, member: "web-1" }, undefined],
  ["is unchanged", known, undefined, undefined],
])("retention: the owner of an address, created again around its pod: %s", (_, object, ofPod, wanted) =>
  expect(findRecreatedOwner(row, object, ofPod)).toEqual(wanted),
);

it("retention: a retained address follows its owner that was created again while a claim of it was under way", async () => {
  let uid = WEB.uid;
  const { registry, server } = await openClusterNode({ findOwnerOf: () => ({ ...WEB, uid }) });
  for (uid of [WEB.uid, "again"]) {
    const [kept] = await registry.findRetained(WEB);
    const wanted = proposal("10.0.0.1", kept && { replaces: kept.version });
    await claimAndRetain(registry, claim(uid, [wanted], { workload: WEB }));
    if (uid !== "again") await registry.release({ containerId: `c-${uid}`, ifName: "eth0" });
    await registry.objects.idle();
  }
  expect(server.objects.get("10.0.0.1")?.spec.workload).toMatchObject({ uid });
});

it("retention: an address that the pod may have taken over by another claim is kept", async () => {
  const wanted = claim("a", [proposal("10.0.0.1")], { workload: WEB });
  const before = await openClusterNode();
  await claimAndRetain(before.registry, wanted);
  const { registry, server } = await openClusterNode({ server: before.server });
  await registry.claim(wanted);
  await registry.release({ containerId: "c-a", ifName: "eth0" });
  await registry.objects.idle();
  expect(server.objects.get("10.0.0.1")?.spec.state).toBe("Kept");
});

it.each<[what: string, change: Partial<IpAllocationSpec>, isNamed: boolean]>([
  ["is the row's pod, if the object names it", {}, true],
  ["is not known of an object of another pod", heldBy({ podUid: "u2" }), false],
  ["is not known of another NIC's", heldBy({ ifName: "net1" }), false],
  ["is not known of another node's", { node: "n2" }, false],
  ["is not known of what was in quarantine", { state: "Quarantined" }, false],
])("retention: the last holder of what is retained: %s", (_, change, isNamed) => {
  const holder = { namespace: "shop", pod: "web-0", podUid: "u1", ifName: "eth0", node: "n1" };
  expect(findLastHolder(row, objectOf(change).spec, "n1")).toEqual(isNamed ? holder : undefined);
});

it.each<[id: string | undefined, earlier: string[], of: string, wanted: boolean]>([
  ["c1", [], "c1", true],
  ["c1", ["c0"], "c0", true],
  ["c1", [], "c0", false],
  [UNNAMED, [], UNNAMED, false],
  [undefined, [], "c1", false],
])("a row of claim %s after %j has recorded %s: %s", (id, earlier, of, wanted) =>
  expect(isRecorded(id === undefined ? {} : { claim: { id, number: 1, earlier } }, of)).toBe(wanted),
);

describe("retention: the other holders of a shared address", () => {
  const others = [{ podUid: "u2" }, { node: "n2" }, { ifName: "net1" }].map((each) => ({ ...HOLDER, ...each }));
  it("are those on another node, of another pod or on another NIC", () =>
    expect(findOtherHolders(row, [HOLDER, ...others], "n1")).toEqual(others));
  it("are those of an earlier pod here as well, if the row cools, and not if another pod has it now", () => {
    const later: Allocation = { ...row, owner: "u9", claim: { id: "c9", number: 1, earlier: ["c1"] } };
    const all = [{ ...HOLDER, claim: "c1" }, ...others];
    expect(findOtherHolders({ ...later, state: "Cooling" }, all, "n1")).toEqual(others);
    expect(findOtherHolders(later, all, "n1")).toBeUndefined();
    // An older release has named no claim of it.
    const unnamed: Allocation = { ...later, state: "Cooling", claim: { id: "c9", number: 1, earlier: [UNNAMED] } };
    const [, away] = others;
    expect(findOtherHolders(unnamed, others.slice(0, 2), "n1")).toEqual([away]);
  });
  it("are not asked for where the row's pod has no share", () => {
    expect(findOtherHolders(row, others, "n1")).toBeUndefined();
    const later: Allocation = { ...row, owner: "u9", state: "Cooling" };
    expect(findOtherHolders(later, [HOLDER, ...others], "n1")).toBeUndefined();
    expect(findOtherHolders(row, [HOLDER, { ...HOLDER, claim: "c1" }], "n1")).toBeUndefined();
  });
});

describe("retention: the address owner of which a restored journal says nothing", () => {
  const older: Allocation = { ...row, workload: undefined, isConfirmed: false };

  it.each<[what: string, changes: Partial<Allocation>, object: Partial<IpAllocationSpec>]>([
    ["a row that was not confirmed", {}, {}],
    ["one that cools", { state: "Cooling" }, {}],
    ["of another attempt", { claim: { id: "c", number: 5, earlier: [] } }, { number: 5, ...heldBy({ claim: "d" }) }],
    ["of a lower number", { claim: { id: "c", number: 3, earlier: [] } }, { number: 5 }],
    ["one of a pod that shares the address", {}, { holders: [{ ...HOLDER, podUid: "u2" }, HOLDER] }],
  ])("is what the object says: %s", (_, changes, object) =>
    expect(findMissingOwner({ ...older, ...changes }, objectOf(object).spec, "n1")).toBe(WEB),
  );

  it.each<[what: string, changes: Partial<Allocation>, object: Partial<IpAllocationSpec>]>([
    ["that was confirmed", { isConfirmed: true }, {}],
    ["that names an owner", { workload: WEB }, {}],
    ["of what may never have been answered", {}, { workload: WEB, number: 0 }],
    ["of the same claim", { claim: { id: "c", number: 4, earlier: [] } }, { number: 4, ...heldBy({ claim: "c" }) }],
    ["of what is retained", {}, { state: "Kept" }],
    ["of another node's address", {}, heldBy({ node: "n2" })],
    ["of another pod's", {}, heldBy({ podUid: "u2" })],
    ["of another NIC's", {}, heldBy({ ifName: "net1" })],
    ["of what other pods share", {}, { holders: ["u2", "u3"].map((podUid) => ({ ...HOLDER, podUid })) }],
  ])("is none for a row %s", (_, changes, object) =>
    expect(findMissingOwner({ ...older, ...changes }, objectOf(object).spec, "n1")).toBeUndefined(),
  );
});

describe("another node's object as a row", () => {
  const foreign = (spec: Partial<IpAllocationSpec>) => foreignOf(ipAllocation("10.0.0.1", spec), 5);

  it("is that of its first holder, and is never undone", () => {
    const wanted = { space: "", prefixLength: 24, pool: "blue", state: "Bound", owner: "u1", ifName: "eth0" };
    expect(foreign({})).toMatchObject({ ...wanted, namespace: "shop", pod: "web-0", isConfirmed: true, sinceMs: 5 });
    expect(foreign({})).not.toHaveProperty("quarantine");
  });
  it("has the claim of its holder, of its last one, or of the one that it was taken from", () => {
    const [holder] = [{ ...HOLDER, claim: "c1" }];
    const claimOf = (spec: Partial<IpAllocationSpec>) => foreign({ number: 2, holders: [], ...spec }).claim;
    const claim = { id: "c1", number: 2, earlier: [] };
    expect(claimOf({ holders: [holder], quarantine: lostOf() })).toEqual(claim);
    expect(claimOf({ state: "Kept", lastHolder: holder, quarantine: lostOf() })).toEqual(claim);
    expect(claimOf({ state: "Quarantined", quarantine: lostOf(holder) })).toEqual(claim);
    expect(foreign({})).not.toHaveProperty("claim");
  });
  it("names nothing that the object does not name", () => {
    const unnamed = { owner: "", ifName: "", namespace: "", pod: "", workload: undefined };
    expect(foreign({ state: "Cooling", holders: [] })).toMatchObject(unnamed);
    expect(foreign({ state: "Quarantined", holders: [], quarantine: lostOf() })).toMatchObject(unnamed);
  });
  it("node-lost: is to be probed first, on the NIC of the pod that had it", () => {
    const lost = foreign({ state: "Quarantined", holders: [], quarantine: lostOf({ ...HOLDER, ifName: "net1" }) });
    expect(lost).toMatchObject({ ifName: "net1", quarantine: PROBE_FIRST });
    expect(PROBE_FIRST).toEqual({ reason: "Conflict", mac: undefined, parent: "", nextProbeAtMs: 0 });
  });
  it("that cannot be read belongs to an owner whom no claim may follow", () =>
    expect(unreadableOf({ ...row, state: "Cooling" })).toEqual({
      ...{ space: "", ip: row.ip, prefixLength: row.prefixLength, pool: row.pool, state: "Bound", sinceMs: 0 },
      ...{ owner: "", ifName: "", containerId: "", network: "", namespace: "", pod: "" },
      ...{ isConfirmed: true, version: -1 },
    }));
});

it.each<[what: string, object: Partial<IpAllocationSpec>, wanted: boolean]>([
  ["of the NIC", {}, true],
  ["of another NIC", heldBy({ ifName: "net1" }), false],
  ["kept for the NIC", { holders: [], workload: { ...WEB, ifName: "eth0" } }, true],
  ["kept for another NIC", { holders: [], workload: { ...WEB, ifName: "net1" } }, false],
  ["kept by an older agent, which named no NIC", { holders: [] }, true],
  ["of no workload", { holders: [], workload: undefined }, false],
])("retention: an object %s is the row's own: %s", (_, object, wanted) =>
  expect(isOfSameNic(row, objectOf(object).spec)).toBe(wanted),
);

it.each<[what: string, before: IpAllocation | undefined, now: Partial<IpAllocationSpec>, wanted: boolean]>([
  ["that is new", undefined, {}, false],
  ["that is as before", known, {}, false],
  ["in another state", known, { state: "Cooling" }, true],
  ["of another pod", known, heldBy({ podUid: "u2" }), true],
  ["of another NIC", known, heldBy({ ifName: "net1" }), true],
  ["whose node was taken for lost", known, { state: "Quarantined" }, false],
])("recreate: an object %s was changed by another writer: %s", (_, before, now, wanted) =>
  expect(hasChanged(before, objectOf(now))).toBe(wanted),
);
