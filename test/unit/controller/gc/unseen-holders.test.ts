/** Which last holders the controller takes for made up (docs/develop/security.md). */
import { expect, it } from "vitest";
import { UnseenHolders } from "../../../../host/controller/gc/unseen-holders.ts";
import { SeenPods } from "../../../../host/controller/owners/seen-pods.ts";
import type { IpAllocation, IpAllocationSpec } from "../../../../host/resources/ip-allocation.ts";
import { HOLDER, ipAllocation } from "../../../world/subjects.ts";

const WEB = { kind: "StatefulSet", namespace: "shop", name: "web", uid: "w", member: "web-0", ifName: "eth0" };
const LOST = { reason: "NodeLost" as const, mac: "", parent: "" };
const holderOf = (podUid: string) => ({ ...HOLDER, podUid });
const kept = (podUid: string, changes: Partial<IpAllocationSpec> = {}): IpAllocation =>
  ipAllocation("10.0.0.1", { state: "Kept", holders: [], workload: WEB, lastHolder: holderOf(podUid), ...changes });
const podOf = (uid: string, kind = "StatefulSet", apiVersion = "apps/v1") => ({
  metadata: { uid, ownerReferences: [{ apiVersion, kind, controller: true }] },
});

/** A watch of pods that has listed once, and a controller that has swept these. */
function open(...swept: readonly IpAllocation[]) {
  const watch = { isSynced: true, problems: [] as string[], stats: { lists: 1 }, version: "100" };
  const pods = new SeenPods(() => watch);
  const unseen = new UnseenHolders(pods);
  const sweep = (...objects: readonly IpAllocation[]): void => {
    const { add, end } = unseen.beginSweep();
    for (const object of objects) add(object);
    end();
  };
  sweep(...swept);
  return { watch, pods, unseen, sweep };
}

it("a pod that was neither recorded at the first sweep nor watched since was none", () => {
  const { pods, unseen } = open(kept("before"));
  pods.note(podOf("watched"));
  pods.note(podOf("machine", "VirtualMachineInstance", "kubevirt.io/v1"));
  pods.note(podOf("plain", "ReplicaSet"));
  const all = ["before", "watched", "machine", "made-up", "plain"];
  expect(all.filter((uid) => unseen.isUnseen(kept(uid)))).toEqual(["made-up", "plain"]);
});

it("so of a kind that vendor-conf lists, whose pods ask for retention", () => {
  const { pods, unseen } = open();
  const listed = podOf("listed", "StatefulSet", "apps.kruise.io/v1beta1");
  pods.note({ metadata: { ...listed.metadata, annotations: { "ipam.vendor.io/retain": "by-name" } } });
  pods.note(podOf("plain", "StatefulSet", "apps.kruise.io/v1beta1"));
  const workload = { ...WEB, kind: "StatefulSet.apps.kruise.io" };
  const found = ["listed", "plain", "made-up"].filter((uid) => unseen.isUnseen(kept(uid, { workload })));
  expect(found).toEqual(["plain", "made-up"]);
});

it("a pod of which a late watch has not told yet may have been there", () => {
  const { watch, unseen } = open();
  watch.version = `${Number(kept("late").resourceVersion) - 1}`;
  expect(unseen.isUnseen(kept("late"))).toBe(false);
  watch.version = kept("late").resourceVersion;
  expect(unseen.isUnseen(kept("late"))).toBe(true);
});

it.each<[what: string, changes: Partial<IpAllocationSpec>]>([
  ["Bound", { state: "Bound", lastHolder: undefined, holders: [holderOf("a")] }],
  ["in quarantine", { state: "Quarantined", lastHolder: undefined, quarantine: { ...LOST, holder: holderOf("a") } }],
])("a pod whose address was %s at the first sweep may have been there", (_, changes) =>
  expect(open(kept("", changes)).unseen.isUnseen(kept("a"))).toBe(false),
);

it.each<[what: string, changes: Partial<IpAllocationSpec>]>([
  ["does not say who had it", { lastHolder: undefined }],
  ["is retained for a claim, whose pods are of any kind", { workload: { ...WEB, kind: "IPAMClaim" } }],
  ["is not retained", { state: "Cooling" }],
])("nothing is said of an address that %s", (_, changes) =>
  expect(open().unseen.isUnseen(kept("made-up", changes))).toBe(false),
);

it("nothing is said before the first sweep of a watch, while it has a problem, and after another list until a sweep", () => {
  const { watch, unseen, sweep } = open();
  const isUnseen = (): boolean => unseen.isUnseen(kept("made-up"));
  expect(isUnseen()).toBe(true);
  watch.problems.push("Cannot follow pods");
  expect(isUnseen()).toBe(false);
  watch.problems.pop();
  watch.stats.lists++;
  expect(isUnseen()).toBe(false);
  sweep();
  expect(isUnseen()).toBe(true);
  watch.stats.lists++;
  sweep(kept("made-up"));
  expect(isUnseen()).toBe(false);
});

it("a sweep during which pods were listed again says nothing", () => {
  const { watch, unseen } = open();
  watch.stats.lists++;
  const { end } = unseen.beginSweep();
  watch.stats.lists++;
  end();
  expect(unseen.isUnseen(kept("made-up"))).toBe(false);
});
