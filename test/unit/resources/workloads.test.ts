import { describe, expect, it } from "vitest";
import { decodeDeployment, decodeReplicated } from "../../../host/resources/workloads/apps.ts";
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

  it("its wants and its state", () => {
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
    [{ replicas: 2_147_483_648 }, 'field "spec.replicas": found 2147483648'],
    [{ template: [] }, 'field "spec.template": found an empty list'],
    [{ template: { metadata: { annotations: { a: 1 } } } }, 'field "spec.template.metadata.annotations.a": found 1'],
    [surging("many"), 'field "spec.strategy.rollingUpdate.maxSurge": found "many"'],
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

it.each([
  ["uid", undefined, 'field "metadata.uid": found nothing, want text'],
  ["uid", "", 'field "metadata.uid"'],
  ["generation", -1, 'field "metadata.generation": found -1'],
  ["ownerReferences", [{}], 'field "metadata.ownerReferences[0].apiVersion": found nothing'],
])("an object whose %s is %j is refused", (key, value, wanted) => {
  expect(() => decodeReplicated({ metadata: { ...metadata, [key]: value }, spec: {} }, "set")).toThrow(wanted);
});
