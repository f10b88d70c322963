import { describe, expect, it } from "vitest";
import { findKind, readPod } from "../../../../host/controller/owners/pool-owner-kinds.ts";
import type { TrackedObject } from "../../../../host/controller/owners/tracked-object.ts";
import { describePoolOwner } from "../../../../host/resources/fields/subnet-pool.ts";
import { cases } from "../../../world/rows.ts";
import { type Owner, requireTracked, track, type Wanted } from "./workload-objects.ts";

/** `Deployment shop/web: 3 replica+1 of 2`, with a tilde before a part, and `suspended` behind. */
function check(kind: string, wanted: Wanted, expected: string | undefined): void {
  const tracked = track(kind, wanted);
  expect(tracked && textOf(tracked)).toBe(expected);
}

function textOf({ application, isOwner, need, objectCount }: TrackedObject): string {
  const { count, unit, surge, isSuspended } = need;
  const extra = `${surge > 0 ? `+${surge}` : ""}${objectCount > 1 ? ` of ${objectCount}` : ""}${isSuspended ? " suspended" : ""}`;
  return `${isOwner ? "" : "~"}${describePoolOwner(application)}: ${count} ${unit}${extra}`;
}

const rolling = (maxSurge?: number | string) => ({
  strategy: { type: "RollingUpdate", ...(maxSurge === undefined ? {} : { rollingUpdate: { maxSurge } }) },
});
const status = (observedGeneration: number, replicas: number, updatedReplicas: number) => ({
  status: { observedGeneration, replicas, updatedReplicas },
});
const halfway = status(1, 12, 6);

const ten = (more: object = {}) => ({ spec: { replicas: 10, ...more } });

describe("a Deployment", () => {
  it.each<[what: string, wanted: Wanted, expected: string]>([
    ["that is new", { spec: { replicas: 10 } }, "10 replica"],
    ["without replicas", { spec: {} }, "1 replica"],
    ["of none", { spec: { replicas: 0 } }, "0 replica"],
    ["of which the first pods come", { spec: { replicas: 10 }, ...status(1, 4, 4) }, "10 replica"],
    ["that is complete", { spec: { replicas: 10 }, ...status(1, 10, 10) }, "10 replica"],
    ["with old pods", { spec: { replicas: 10 }, ...status(1, 10, 9) }, "10 replica+3"],
    ["with more pods than replicas", { spec: { replicas: 10 }, ...status(1, 11, 11) }, "10 replica+3"],
    ["that its controller has not observed yet", { ...ten(), generation: 2, ...status(1, 10, 10) }, "10 replica+3"],
    ["without a count of its replicas", { spec: { replicas: 10 }, generation: 2, status: {} }, "10 replica"],
    ["with a surge of none", { spec: { replicas: 10, ...rolling(0) }, ...halfway }, "10 replica"],
    ["with a surge of 4", { spec: { replicas: 10, ...rolling(4) }, ...halfway }, "10 replica+4"],
    ["with a surge of 21%", { spec: { replicas: 10, ...rolling("21%") }, ...halfway }, "10 replica+3"],
    ["without a surge", { spec: { replicas: 10, ...rolling() }, ...halfway }, "10 replica+3"],
    ["without a strategy's type", { spec: { replicas: 10, strategy: {} }, ...halfway }, "10 replica+3"],
    ["that is made anew", { spec: { replicas: 10, strategy: { type: "Recreate" } }, ...halfway }, "10 replica"],
  ])("%s", (_what, wanted, expected) => check("Deployment", wanted, `Deployment shop/web: ${expected}`));

  it("that is scaled is not rolled out, and one with another template is, before its controller has seen it", () => {
    const before = requireTracked("Deployment", { spec: { replicas: 10 }, ...status(1, 10, 10) });
    const surge = (wanted: Wanted) =>
      requireTracked("Deployment", { generation: 2, ...status(1, 10, 10), ...wanted }, before).need.surge;
    expect(surge({ spec: { replicas: 20 } })).toBe(0);
    expect(surge({ spec: { replicas: 20 }, podSpec: { containers: [] } })).toBe(5);
    expect(surge({ spec: { replicas: 20 }, uid: "another" })).toBe(5);
  });

  it("that is scaled twice and seen late is not rolled out either", () => {
    const first = requireTracked("Deployment", { spec: { replicas: 10 }, ...status(1, 10, 10) });
    const second = requireTracked("Deployment", { spec: { replicas: 20 }, generation: 2, ...status(1, 10, 10) }, first);
    const third = requireTracked("Deployment", { spec: { replicas: 5 }, generation: 3, ...status(1, 5, 5) }, second);
    expect([second.need.surge, third.need.surge]).toEqual([0, 0]);
  });
});

const deployment: Owner = { kind: "Deployment" };
const rollout: Owner = { kind: "Rollout", apiVersion: "argoproj.io/v1alpha1" };
const cron: Owner = { kind: "CronJob", apiVersion: "batch/v1" };
const rolled = (maxSurge: number | string) => ({ spec: { updateStrategy: { rollingUpdate: { maxSurge } } } });
/** A DaemonSet on 4 nodes, of which so many have the newest version. */
const nodes = (updatedNumberScheduled: number) => ({
  status: { observedGeneration: 1, desiredNumberScheduled: 4, updatedNumberScheduled },
});
const active = (...jobs: object[]) => ({ spec: { parallelism: 3 }, status: { active: jobs } });
const finished = (type: string, condition = "True") => ({ status: { conditions: [{ type, status: condition }] } });

const sized = (replicas: number, owner?: Owner, more: object = {}) => ({
  ...(owner && { owner }),
  spec: { replicas },
  ...more,
});
const jobs = (parallelism: number, more: object = {}) => ({ spec: { parallelism, ...more } });
const onDelete = { spec: { updateStrategy: { type: "OnDelete", rollingUpdate: { maxSurge: 2 } } }, ...nodes(3) };
const four = { status: { desiredNumberScheduled: 4 } };
const suspended = jobs(3, { suspend: true });
const withPods = (replicas: number) => ({ status: { replicas } });

it.each(cases<[kind: string, wanted: Wanted]>`
  alone ${["ReplicaSet", sized(3, undefined, withPods(5))]} => ReplicaSet shop/web: 3 replica
  of an owner that does not control it ${["ReplicaSet", { owner: { ...rollout, controller: false } }]}
    => ReplicaSet shop/web: 1 replica
  of a Rollout ${["ReplicaSet", sized(3, rollout)]} => ~Rollout shop/top: 3 replica
  of a Rollout, empty ${["ReplicaSet", sized(0, rollout)]} => ~Rollout shop/top: 0 replica
  of a Deployment ${["ReplicaSet", sized(3, deployment)]} => ~Deployment shop/top: 3 replica
  of a Deployment, empty ${["ReplicaSet", sized(0, deployment)]} => none
  of a Deployment, with pods that are left ${["ReplicaSet", sized(0, deployment, withPods(2))]}
    => ~Deployment shop/top: 2 replica
  of an owner without a UID ${["ReplicaSet", { owner: { ...rollout, uid: "" } }]} => none
  of an owner with a long UID ${["ReplicaSet", { owner: { ...rollout, uid: "u".repeat(64) } }]} => none
  of an owner with a long name ${["ReplicaSet", { owner: { ...rollout, name: "n".repeat(254) } }]} => none
  of an owner with a long kind ${["ReplicaSet", { owner: { ...rollout, kind: "K".repeat(254) } }]} => none
  that is one ${["StatefulSet", sized(3, undefined, withPods(5))]} => StatefulSet shop/web: 3 replica
  of an operator ${["StatefulSet", sized(3, rollout)]} => StatefulSet shop/web: 3 replica
  that is new ${["DaemonSet", {}]} => DaemonSet shop/web: 0 node
  without a surge, rolled out ${["DaemonSet", four]} => DaemonSet shop/web: 4 node
  with a surge, rolled out ${["DaemonSet", { ...rolled("30%"), ...nodes(3) }]} => DaemonSet shop/web: 4 node+2
  with a surge, complete ${["DaemonSet", { ...rolled(2), ...nodes(4) }]} => DaemonSet shop/web: 4 node
  with a surge, changed ${["DaemonSet", { generation: 2, ...rolled(2), ...nodes(4) }]} => DaemonSet shop/web: 4 node+2
  with a surge that does not count ${["DaemonSet", onDelete]} => DaemonSet shop/web: 4 node
  with parallelism ${["Job", jobs(3)]} => Job shop/web: 3 parallelism
  of a queue ${["Job", jobs(3, { completions: null })]} => Job shop/web: 3 parallelism
  with few completions ${["Job", jobs(3, { completions: 2 })]} => Job shop/web: 2 parallelism
  with many completions ${["Job", jobs(3, { completions: 9 })]} => Job shop/web: 3 parallelism
  that waits ${["Job", suspended]} => Job shop/web: 0 parallelism suspended
  that is complete ${["Job", finished("Complete")]} => none
  that has failed ${["Job", finished("Failed")]} => none
  that will fail ${["Job", finished("FailureTarget")]} => Job shop/web: 1 parallelism
  that has not failed ${["Job", finished("Failed", "False")]} => Job shop/web: 1 parallelism
  of another kind ${["Job", { owner: { kind: "JobSet" } }]} => Job shop/web: 1 parallelism
  of a CronJob ${["Job", { owner: cron, ...jobs(2) }]} => ~CronJob shop/top: 2 parallelism
  of a CronJob, complete ${["Job", { owner: cron, ...finished("Complete") }]} => none
  of a CronJob of another group ${["Job", { owner: { ...cron, apiVersion: "x/v1" } }]} => Job shop/web: 1 parallelism
  that rests ${["CronJob", jobs(3)]} => CronJob shop/web: 3 parallelism
  with two Jobs ${["CronJob", active({}, {})]} => CronJob shop/web: 6 parallelism of 2
  that is suspended ${["CronJob", suspended]} => CronJob shop/web: 0 parallelism suspended
  that is suspended, with a Job ${["CronJob", { ...suspended, status: { active: [{}] } }]}
    => CronJob shop/web: 3 parallelism suspended
`)("%s: %s", (_what, [kind, wanted], expected) => check(kind, wanted, expected === "none" ? undefined : expected));

describe("every kind", () => {
  const kinds = ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob"];

  it.each(kinds)("a %s that names no Subnets is passed over, whatever else it is", (kind) => {
    const nonsense = { metadata: { uid: 7, generation: "x" }, spec: { replicas: -1, parallelism: "many" } };
    expect(track(kind, { ...nonsense, annotations: { ippool: { ipv4: ["a"] } } })).toBeUndefined();
    expect(() => track(kind, nonsense)).toThrow(/field "(metadata|spec)/);
  });

  it.each(kinds)("a %s on the network of its node wants nothing", (kind) => {
    expect(track(kind, { podSpec: { hostNetwork: true } })).toBeUndefined();
    expect(track(kind, { podSpec: { hostNetwork: false } })).toBeDefined();
  });

  it.each(kinds)("a %s whose annotations cannot be followed is remembered with the reason", (kind) => {
    expect(track(kind, { annotations: { subnet: "{" }, spec: { replicas: 1 } })?.template.kind).toBe("fault");
  });

  it.each(kinds)("a %s without a UID is refused", (kind) => {
    expect(() => track(kind, { metadata: { uid: "" } })).toThrow('field "metadata.uid"');
  });
});

it.each<[apiVersion: string, kind: string, plural: string | undefined]>([
  ["apps/v1", "Deployment", "deployments"],
  ["batch/v1", "CronJob", "cronjobs"],
  ["apps/v1beta1", "Deployment", undefined],
  ["x.example/v1", "Deployment", undefined],
  ["apps/v1", "Rollout", undefined],
])("%s %s is followed as %s", (apiVersion, kind, plural) => {
  expect(findKind({ apiVersion, kind })?.plural).toBe(plural);
});

const clones: Owner = { kind: "CloneSet", apiVersion: "apps.kruise.io/v1alpha1" };
const controller = { kind: "ReplicationController", apiVersion: "v1" };
const leaving = { deletionTimestamp: "2026-01-01T00:00:00Z" };

it.each<[what: string, wanted: Wanted, expected: string | undefined]>([
  ["of another kind", { owner: clones }, "CloneSet shop/top: 1"],
  ["of a ReplicationController", { owner: controller }, "ReplicationController shop/top: 1"],
  ["that leaves", { owner: clones, metadata: leaving }, "CloneSet shop/top: 0"],
  ["that names no Subnets", { owner: clones, annotations: {} }, undefined],
  ["without a controller", {}, undefined],
  ["whose owner does not control it", { owner: { ...clones, controller: false } }, undefined],
  ["of a ReplicaSet", { owner: { kind: "ReplicaSet" } }, undefined],
  ["of a StatefulSet", { owner: { kind: "StatefulSet" } }, undefined],
  ["of a ReplicaSet, which is ending", { owner: { kind: "ReplicaSet" }, metadata: leaving }, "ReplicaSet shop/top: 0"],
  ["of a node, which is ending", { owner: { kind: "Node", apiVersion: "v1" }, metadata: leaving }, undefined],
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
