import { describe, expect, it } from "vitest";
import { openPoolDecoder } from "../../../host/controller/caches.ts";
import { decodeControlledPool } from "../../../host/controller/objects.ts";

const application = { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name: "web", uid: "u-1" };
const generated = {
  ...{ subnet: "lan", application, interface: "eth0", reclaim: true },
  ...{ wanted: 3, reason: "2 replicas and 1 more" },
};
const condition = {
  ...{ type: "Ready", status: "True", observedGeneration: 2, lastTransitionTime: "2026-01-01T00:00:00Z" },
  ...{ reason: "AsSpecified", message: "gives addresses" },
};
const full = {
  ...{ subnet: "10.6.0.0/24", ips: ["10.6.0.4-10.6.0.6"], excludeIPs: ["10.6.0.5"], gateway: "10.6.0.1" },
  ...{ routes: [{ dst: "10.7.0.0/16", gw: "10.6.0.2" }], namespaceName: ["shop"], nodeName: ["n1"] },
  ...{ multusName: ["shop/lan"], cooldown: "5s", disable: true, podAffinity: { matchLabels: { app: "web" } } },
};

function pool(spec: object, name = "web", metadata: object = {}, status: object = {}) {
  const own = { name, uid: `uid-${name}`, resourceVersion: "7", generation: 2, labels: { a: "b" }, ...metadata };
  return { apiVersion: "ipam.vendor.io/v1", kind: "IPPool", metadata: own, spec, status };
}

describe("a cached pool", () => {
  it.each([
    ["of few keys", pool({ subnet: "fd00::/64" })],
    ["of all keys", pool(full, "wide", { finalizers: ["one", "two"] }, { total: 3, used: 2, free: 1 })],
    ["that is generated", pool({ subnet: "10.6.0.0/24", ips: [], generated }, "web", {}, { conditions: [condition] })],
    ["that is being deleted", pool(full, "web", { deletionTimestamp: "2026-01-01T00:00:00Z" })],
    ["that is invalid", pool({ subnet: "10.6.0.0/33" }, "web", { finalizers: ["one"] }, { conditions: [condition] })],
  ])("%s is the decoded one but for its labels", (_, object) => {
    const { value, ...whole } = decodeControlledPool(object);
    expect(openPoolDecoder()(object)).toEqual({ ...whole, value: value && { ...value, labels: {} } });
  });

  it("has its conditions once", () => {
    const { status, conditions } = openPoolDecoder()(pool(full, "web", {}, { used: 2, conditions: [condition] }));
    expect([status, conditions]).toEqual([{ used: 2 }, [condition]]);
  });

  it("shares with others what is equal, and nothing else", () => {
    const decode = openPoolDecoder();
    const [one, other] = ["a", "b"].map((name) =>
      decode(pool({ subnet: "10.6.0.0/24", generated }, name, { finalizers: ["x"] }, { conditions: [condition] })),
    );
    expect(other?.value?.spec.subnet).toBe(one?.value?.spec.subnet);
    expect(other?.conditions[0]).toBe(one?.conditions[0]);
    expect(other?.finalizers).toBe(one?.finalizers);
    const changed = { ...condition, message: "gives none" };
    const third = decode(pool({ subnet: "10.6.0.0/25" }, "c", { finalizers: ["y", "z"] }, { conditions: [changed] }));
    expect(third).toMatchObject({
      finalizers: ["y", "z"],
      conditions: [changed],
      value: { spec: { subnet: { length: 25 } } },
    });
  });

  it("keeps its specification while only the status changes", () => {
    const decode = openPoolDecoder();
    const before = decode(pool({ ...full, generated }));
    const after = decode(pool({ ...full, generated }, "web", { resourceVersion: "8" }, { used: 3 }), before);
    expect(after).toMatchObject({ resourceVersion: "8", status: { used: 3 } });
    expect(after.value?.spec).toBe(before.value?.spec);
    const grown = { ...generated, wanted: 4 };
    expect(decode(pool({ ...full, generated: grown }), after).value?.spec.generated?.wanted).toBe(4);
    expect(decode(pool({ subnet: "10.6.0.0/33" }), after).value).toBeUndefined();
  });
});
