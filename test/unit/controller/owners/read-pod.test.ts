import { expect, it } from "vitest";
import { readPod } from "../../../../host/controller/owners/pool-owner-kinds.ts";
import { describePoolOwner } from "../../../../host/resources/fields/subnet-pool.ts";
import { type Owner, track, type Wanted } from "./workload-objects.ts";

const clones: Owner = { kind: "CloneSet", apiVersion: "apps.kruise.io/v1alpha1" };
const leaving = { deletionTimestamp: "2026-01-01T00:00:00Z" };

it.each<[what: string, wanted: Wanted, expected: string | undefined]>([
  ["of another kind", { owner: clones }, "CloneSet shop/top: 1"],
  [
    "of a ReplicationController",
    { owner: { kind: "ReplicationController", apiVersion: "v1" } },
    "ReplicationController shop/top: 1",
  ],
  ["that leaves", { owner: clones, metadata: leaving }, "CloneSet shop/top: 0"],
  ["that names no Subnets", { owner: clones, annotations: {} }, undefined],
  ["that nobody controls", {}, undefined],
  ["whose owner does not control it", { owner: { ...clones, controller: false } }, undefined],
  ["of a ReplicaSet", { owner: { kind: "ReplicaSet" } }, undefined],
  ["of a StatefulSet", { owner: { kind: "StatefulSet" } }, undefined],
  ["of a DaemonSet", { owner: { kind: "DaemonSet" } }, undefined],
  ["of a Job", { owner: { kind: "Job", apiVersion: "batch/v1" } }, undefined],
  ["of a node", { owner: { kind: "Node", apiVersion: "v1" } }, undefined],
  ["of a kind that only has a known name", { owner: { ...clones, kind: "StatefulSet" } }, "StatefulSet shop/top: 1"],
  ["of an owner without a UID", { owner: { ...clones, uid: "" } }, undefined],
  ["of an owner with a long UID", { owner: { ...clones, uid: "u".repeat(64) } }, undefined],
])("a pod %s: %s", (_what, wanted, expected) => {
  const tracked = track("Pod", wanted);
  expect(tracked && `${describePoolOwner(tracked.application)}: ${tracked.need.count}`).toBe(expected);
});

it("two owners: the one that controls it counts", () => {
  const owner = (name: string, controller: boolean) => ({ ...clones, name, uid: name, controller });
  const tracked = track("Pod", { metadata: { ownerReferences: [owner("a", false), owner("b", true)] } });
  expect(tracked?.application.name).toBe("b");
});

it.each([undefined, null, {}, { metadata: null }, { metadata: { annotations: "x" } }])("%j is no pod", (value) => {
  expect(readPod(Object(value), "pod")).toBeUndefined();
});

it.each([null, [null], [7], [{}]])("owners %j control nothing", (ownerReferences) => {
  expect(track("Pod", { metadata: { ownerReferences } })).toBeUndefined();
});
