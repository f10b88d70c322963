import { describe, expect, it } from "vitest";
import { aboveOf, applicationOf, controllerOf, middleKindOf } from "../../../host/ipam/owner.ts";
import type { OwnerReference } from "../../../host/resources/fields/metadata.ts";
import { MAX_ALLOCATION_TEXT, MAX_UID_LENGTH } from "../../../host/resources/member.ts";

const owner = (apiVersion: string, kind: string, more: Partial<OwnerReference> = {}): OwnerReference => ({
  ...{ apiVersion, kind, name: "web", uid: "u1", controller: true },
  ...more,
});
const DEPLOYMENT = owner("apps/v1", "Deployment");

it("the owner that controls an object is not one that only owns it", () => {
  const bystander = owner("v1", "Node", { controller: false });
  expect(controllerOf({ ownerReferences: [bystander, DEPLOYMENT] })).toBe(DEPLOYMENT);
  expect(controllerOf({ ownerReferences: [bystander] })).toBeUndefined();
});

it("a ReplicaSet and a Job may have a controller of their own, a Job only a CronJob", () => {
  const kinds = "apps/v1 ReplicaSet,batch/v1 Job,x/v1 ReplicaSet,x/v1 Job,apps/v1 Set,batch/v1 CronJob,x/v1 CronJob";
  const owners = kinds.split(",").map((text) => owner(...(text.split(" ") as [string, string])));
  expect(owners.map(middleKindOf)).toEqual(["ReplicaSet", "Job", ...Array(5)]);
  const above = (of: "ReplicaSet" | "Job") => owners.map((each) => aboveOf(of, { ownerReferences: [each] })?.kind);
  expect(above("Job")).toEqual([...Array(5), "CronJob", undefined]);
  expect(above("ReplicaSet")).toEqual(owners.map(({ kind }) => kind));
});

describe("a pool owner", () => {
  it("has the names of the owner reference and the pod's namespace", () => {
    const { controller: _, ...names } = DEPLOYMENT;
    expect(applicationOf("shop", DEPLOYMENT)).toEqual({ ...names, namespace: "shop" });
  });

  const longest = { name: "x".repeat(MAX_ALLOCATION_TEXT), uid: "u".repeat(MAX_UID_LENGTH) };
  it.each<[what: string, change: Partial<OwnerReference>, isOwner: boolean]>([
    ["the longest names", longest, true],
    ["a name that is too long", { name: `${longest.name}x` }, false],
    ["a version that is too long", { apiVersion: `${longest.name}x` }, false],
    ["a UID that is too long", { uid: `${longest.uid}u` }, false],
    ["no name", { name: "" }, false],
    ["no kind", { kind: "" }, false],
    ["no version", { apiVersion: "" }, false],
    ["no UID", { uid: "" }, false],
  ])("of an owner reference with %s: %s", (_, change, isOwner) => {
    expect(applicationOf("shop", { ...DEPLOYMENT, ...change }) !== undefined).toBe(isOwner);
  });
});
