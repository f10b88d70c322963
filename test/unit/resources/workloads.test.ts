import { describe, expect, it } from "vitest";
import { decodeDaemonSet, decodeDeployment, decodeReplicated } from "../../../host/resources/workloads/apps.ts";
import { decodeCronJob, decodeJob } from "../../../host/resources/workloads/batch.ts";
import { surge } from "../../../host/resources/workloads/template.ts";

const owner = { apiVersion: "x/v1", kind: "X", name: "x", uid: "u-x", controller: true };
const metadata = {
  ...{ namespace: "shop", name: "web", uid: "u1", generation: 3, resourceVersion: "7" },
  ...{ creationTimestamp: "2026-01-01T00:00:00Z", annotations: { a: "b" }, ownerReferences: [owner] },
  managedFields: [{}],
};
const template = { metadata: { annotations: { c: "d" } }, spec: { hostNetwork: true, containers: [{}] } };
const retained = {
  metadata: {
    ...{ namespace: "shop", name: "web", uid: "u1", generation: 3, created: "2026-01-01T00:00:00Z" },
    ...{ annotations: { a: "b" }, ownerReferences: [owner] },
  },
  template: { annotations: { c: "d" }, hostNetwork: true },
};
const plain = { annotations: {}, hostNetwork: false };

describe("of a Deployment is read", () => {
  const decode = (spec: object, status?: object | null) => decodeDeployment({ metadata, spec, status }, "Deployment");

  it("what it wants and has", () => {
    const status = { observedGeneration: 2, replicas: 4, updatedReplicas: 1, readyReplicas: 3 };
    expect(decode({ replicas: 4, template, paused: true }, status)).toEqual({
      ...retained,
      digest: expect.any(String),
      ...{ replicas: 4, maxSurge: 1, observedGeneration: 2, present: 4, updated: 1 },
    });
  });

  it.each([undefined, null, {}])("nothing of the status %j", (status) => {
    expect(decode({}, status)).toMatchObject({
      ...{ template: plain, replicas: 1, observedGeneration: 0, present: 0, updated: 0 },
    });
  });

  it("another template by another digest, and nothing else", () => {
    const digest = (spec: object) => decode(spec).digest;
    expect(digest({ template, replicas: 1 })).toBe(digest({ template, replicas: 9, paused: true }));
    expect(digest({ template })).not.toBe(digest({ template: { ...template, metadata: {} } }));
  });

  const surging = (maxSurge: unknown) => ({ strategy: { rollingUpdate: { maxSurge } } });
  it.each<[spec: object, wanted: string]>([
    [{ replicas: -1 }, 'field "spec.replicas": found -1, want a whole number from 0 to 2147483647'],
    [{ replicas: 1.5 }, 'field "spec.replicas": found 1.5'],
    [{ replicas: 2_147_483_648 }, 'field "spec.replicas": found 2147483648'],
    [{ replicas: "3" }, 'field "spec.replicas": found "3"'],
    [{ template: [] }, 'field "spec.template": found an empty list'],
    [{ template: { metadata: { annotations: { a: 1 } } } }, 'field "spec.template.metadata.annotations.a": found 1'],
    [surging("many"), 'field "spec.strategy.rollingUpdate.maxSurge": found "many"'],
    [surging(-1), 'field "spec.strategy.rollingUpdate.maxSurge": found -1'],
  ])("%j with an error", (spec, wanted) => expect(() => decode(spec)).toThrow(wanted));
});

it.each([
  ...["0 of 10: 0", "3 of 10: 3", "0% of 10: 0", "25% of 0: 0", "25% of 1: 1", "25% of 4: 1", "25% of 5: 2"],
  ...["25% of 50: 13", "1% of 100: 1", "1% of 101: 2", "29% of 100: 29", "100% of 7: 7", "200% of 7: 14"],
  "100% of 2147483647: 2147483647",
])("pods of maxSurge and replicas: %s", (text) => {
  const [maxSurge = "", replicas, pods] = text.split(/ of |: /);
  expect(surge.parse(maxSurge.endsWith("%") ? maxSurge : Number(maxSurge))(Number(replicas))).toBe(Number(pods));
});

it.each(["", "%", "25", "2.5%", "-1%", " 1%", "1e2%", "9999999999%", null, {}])("maxSurge %j is refused", (value) => {
  expect(surge.safeParse(value).success).toBe(false);
});

it("of a ReplicaSet and of a StatefulSet is read what they want and have", () => {
  const decode = (spec: object, status?: object) => decodeReplicated({ metadata, spec, status }, "set");
  expect(decode({ replicas: 0, template }, { replicas: 2 })).toEqual({ ...retained, replicas: 0, present: 2 });
  expect(decode({ replicas: null })).toMatchObject({ template: plain, replicas: 1, present: 0 });
});

it("of a DaemonSet is read on how many nodes it is, and its surge, which is none by default", () => {
  const decode = (spec: object, status?: object) => decodeDaemonSet({ metadata, spec, status }, "DaemonSet");
  const status = { observedGeneration: 2, desiredNumberScheduled: 7, updatedNumberScheduled: 1 };
  expect(decode({ template }, status)).toEqual({
    ...{ ...retained, desired: 7, maxSurge: 0, observedGeneration: 2, updated: 1 },
  });
  const rollingUpdate = { maxSurge: "50%" };
  expect(decode({ updateStrategy: { type: "RollingUpdate", rollingUpdate } }, status).maxSurge).toBe(4);
  expect(decode({ updateStrategy: { type: "OnDelete", rollingUpdate } }, status).maxSurge).toBe(0);
  expect(decode({}, {})).toMatchObject({ desired: 0, updated: 0 });
});

it("of a Job is read how many of its pods may run at once, and whether any will", () => {
  const decode = (spec: object, status?: object) => decodeJob({ metadata, spec, status }, "Job");
  expect(decode({ template, parallelism: 3, completions: 2 })).toEqual({
    ...{ ...retained, parallelism: 2, suspended: false, isFinished: false },
  });
  expect(decode({ parallelism: 0, completions: 5 }).parallelism).toBe(0);
  const conditions = ["Suspended", "Complete"].map((type) => ({ type, status: "True" }));
  expect(decode({ suspend: true }, { conditions })).toMatchObject({ suspended: true, isFinished: true });
  expect(decode({}, { conditions: null })).toMatchObject({ parallelism: 1, isFinished: false });
});

it("of a CronJob is read what each of its Jobs wants, and how many run", () => {
  const decode = (spec: object, status?: object) => decodeCronJob({ metadata, spec, status }, "CronJob");
  const jobTemplate = { spec: { template, parallelism: 3, completions: 2 } };
  expect(decode({ jobTemplate, suspend: true }, { active: [{}, {}] })).toEqual({
    ...{ ...retained, parallelism: 2, suspended: true, active: 2 },
  });
  expect(decode({ jobTemplate }, { active: null })).toMatchObject({ suspended: false, active: 0 });
  expect(() => decode({})).toThrow('field "spec.jobTemplate"');
});

it.each([
  ["uid", undefined, 'field "metadata.uid": found nothing, want text'],
  ["uid", "", 'field "metadata.uid"'],
  ["generation", -1, 'field "metadata.generation": found -1'],
  ["ownerReferences", [{}], 'field "metadata.ownerReferences[0].apiVersion": found nothing'],
])("an object whose %s is %j is refused", (key, value, wanted) => {
  expect(() => decodeReplicated({ metadata: { ...metadata, [key]: value }, spec: {} }, "set")).toThrow(wanted);
});
