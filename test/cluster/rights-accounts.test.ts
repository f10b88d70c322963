/**
 * Rights of each account to write under deploy/policies.yaml: agents have those that the life of an address needs, the
 * controller those that are no agent's, and administrators all but the deletion of an address in use. Pools:
 * rights-pools.test.ts. Theft of another agent's token: rights.test.ts.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ALLOCATIONS, POOLS } from "../lab/cluster/objects.ts";
import type { World } from "../lab/cluster/world.ts";
import type { KubeClient } from "../lab/kube-client.ts";
import { describeAccounts } from "./rights/accounts-suite.ts";
import { objectOf, openRights, outcomeOf, placeObjects } from "./rights-objects.ts";

let world: World;
let admin: KubeClient;
let agent: KubeClient;
let controller: KubeClient;

beforeAll(async () => {
  world = await openRights();
  admin = world.client;
  agent = await world.openClient("b");
  controller = await world.openClient("a", { account: "berth-controller" });
});
beforeEach(() => placeObjects(admin));
afterAll(() => world?.stop());

describe("all accounts", () => describeAccounts(() => ({ admin, agent, controller })));

describe("node-rights: the agent of a node", () => {
  it("does nothing with a token that names no node", async () => {
    const unbound = await world.openClient("b", { isBound: false });
    const wanted =
      /^403 .*the token of the account berth-agent names no node, found authentication\.kubernetes\.io\/credential-id; it must be bound to the agent's pod/;
    expect(await outcomeOf(unbound.create(ALLOCATIONS, objectOf("10.6.0.50", { node: "b" })))).toMatch(wanted);
  });

  it("works with a token that is bound to the node instead of a pod", async () => {
    const { metadata } = await admin.get("/api/v1/nodes/b");
    const { status } = await admin.create("/api/v1/namespaces/kube-system/serviceaccounts/berth-agent/token", {
      ...{ apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest" },
      spec: { boundObjectRef: { apiVersion: "v1", kind: "Node", name: "b", uid: metadata.uid } },
    });
    const bound = await world.plane.openClient({ token: status.token });
    expect(await outcomeOf(bound.create(ALLOCATIONS, objectOf("10.6.0.50", { node: "b" })))).toBe("done");
    expect(await outcomeOf(bound.create(ALLOCATIONS, objectOf("10.6.0.51", { node: "a" })))).toMatch(
      /^403 .*names node "a"/,
    );
    bound.close();
  });
});

describe("the controller", () => {
  it("makes no allocation of a pod, and deletes them one by one", async () => {
    const made = controller.create(ALLOCATIONS, objectOf("10.6.0.50", { node: "a" }));
    expect(await outcomeOf(made)).toMatch(/^403 .*would go from absent to Bound/);
    expect(await outcomeOf(controller.delete(ALLOCATIONS))).toMatch(/^403 .*cannot deletecollection resource/);
  });

  it.each<[what: string, attempt: () => Promise<unknown>, wanted: RegExp]>([
    ["secrets", () => controller.get("/api/v1/secrets"), /^403 .*cannot list resource "secrets"/],
    ["another ConfigMap", () => controller.get("/api/v1/namespaces/kube-system/configmaps/other"), /^403 /],
    ["pods", () => controller.delete("/api/v1/namespaces/kube-system/pods/berth-agent-b"), /^403 /],
    [
      "the size of a workload",
      () => controller.patch("/apis/apps/v1/namespaces/shop/deployments/x", { spec: { replicas: 9 } }),
      /^403 .*cannot patch resource "deployments"/,
    ],
    [
      "the end of a workload",
      () => controller.delete("/apis/batch/v1/namespaces/shop/jobs/x"),
      /^403 .*cannot delete resource "jobs"/,
    ],
    [
      "networks of NICs",
      () => controller.delete("/apis/k8s.cni.cncf.io/v1/namespaces/shop/network-attachment-definitions/x"),
      /^403 /,
    ],
    ["all pools at once", () => controller.delete(POOLS), /^403 .*cannot deletecollection resource "ippools"/],
    [
      "another's Lease",
      () => controller.delete("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/x"),
      /^403 /,
    ],
    [
      "the conditions of a node",
      () => controller.patch("/api/v1/nodes/a/status", { status: { conditions: [] } }),
      /^403 .*cannot patch resource "nodes\/status"/,
    ],
    ["the end of a node", () => controller.delete("/api/v1/nodes/a"), /^403 .*cannot delete resource "nodes"/],
    ["policies", () => controller.delete("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"), /^403/],
  ])("has no way to %s", async (_, call, wanted) => {
    expect(await outcomeOf(call())).toMatch(wanted);
  });
});
