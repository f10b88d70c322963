/**
 * Attacks with the token of an agent, stolen from node b: on the addresses of node a, only a take-over succeeds. Each
 * attempt is made on a real API server with deploy/rbac.yaml and deploy/policies.yaml, and nothing is changed by one
 * that is refused.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ALLOCATIONS, CRDS, NAMESPACES, POOLS, podObject, poolObject } from "../lab/cluster/objects.ts";
import { FORCE_DELETE } from "../lab/cluster/rights.ts";
import { applyKinds } from "../lab/cluster/workload-kinds.ts";
import type { World } from "../lab/cluster/world.ts";
import type { KubeClient } from "../lab/kube-client.ts";
import { cases } from "../world/rows.ts";
import { describeTheft } from "./rights/theft-suite.ts";
import { objectOf, openRights, outcomeOf, pathOf, placeObjects, snapshot } from "./rights-objects.ts";

let world: World;
let admin: KubeClient;
/** With the token of the agent of node b. */
let thief: KubeClient;

beforeAll(async () => {
  world = await openRights();
  admin = world.client;
  thief = await world.openClient("b");
});
beforeEach(() => placeObjects(admin));
afterAll(() => world?.stop());

describeTheft(() => ({ admin, agent: thief }));

describe("node-rights: with the token of another node's agent an attacker never", () => {
  it("makes an object under a generated name", async () => {
    const object = { ...objectOf("10.6.0.50", { node: "b" }), metadata: { generateName: "10.6.0.5" } };
    expect(await outcomeOf(thief.create(ALLOCATIONS, object))).toMatch(/^422 .*the address/);
  });

  const patch = (type: string, body: object) => (client: KubeClient) =>
    client.send("PATCH", `${pathOf("10.6.0.1")}?fieldManager=x&force=true`, body, type);
  const system = `${NAMESPACES}/kube-system`;
  const roles = "/apis/rbac.authorization.k8s.io/v1";
  const policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";

  it.each(cases<(client: KubeClient) => Promise<unknown>>`
    patches an object with a merge patch ${patch("application/merge-patch+json", { spec: { state: "Cooling", holders: [] } })}
      => patch ipallocations
    with a JSON patch ${patch("application/json-patch+json", [{ op: "remove", path: "/spec/holders" }])}
      => patch ipallocations
    with a strategic patch ${patch("application/strategic-merge-patch+json", { spec: {} })} => patch ipallocations
    with an apply patch ${patch("application/apply-patch+yaml", objectOf("10.6.0.1", { node: "b" }))}
      => patch ipallocations
    writes a status ${(client) => client.put(`${pathOf("10.6.0.1")}/status`, objectOf("10.6.0.1", { node: "b" }))}
      => update ipallocations/status
    deletes all objects at once ${(client) => client.delete(ALLOCATIONS)} => deletecollection ipallocations
    deletes a pool ${(client) => client.delete(`${POOLS}/blue`)} => delete ippools
    changes a pool ${(client) => client.patch(`${POOLS}/blue`, { spec: { ips: [] } })} => patch ippools
    makes a pool ${(client) => client.create(POOLS, poolObject({ name: "red", subnet: "10.7.0.0/24" }))}
      => create ippools
    changes a Subnet ${(client) => client.patch("/apis/ipam.vendor.io/v1/subnets/x", { spec: { ips: [] } })}
      => patch subnets
    gives addresses of a Subnet away ${(client) => client.patch("/apis/ipam.vendor.io/v1/subnets/x/status", { status: { pools: [] } })}
      => patch subnets/status
    changes what a workload wants ${(client) => client.patch("/apis/apps/v1/namespaces/shop/replicasets/x", { spec: { replicas: 99 } })}
      => patch replicasets
    lists what workloads there are ${(client) => client.get("/apis/batch/v1/jobs")} => list jobs
    changes the settings of all ${(client) => client.patch(`${system}/configmaps/vendor-conf`, { data: {} })}
      => patch configmaps
    reads another ConfigMap ${(client) => client.get(`${system}/configmaps/other`)} => get configmaps
    reads secrets ${(client) => client.get("/api/v1/secrets")} => list secrets
    makes a token ${(client) => client.create(`${system}/serviceaccounts/berth-controller/token`, { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} })}
      => create serviceaccounts/token
    deletes a pod ${(client) => client.delete(`${system}/pods/berth-agent-b`)} => delete pods
    makes a pod ${(client) => client.create(`${NAMESPACES}/shop/pods`, podObject({ name: "x", node: "a" }))}
      => create pods
    reports for a pod ${(client) => client.patch(`${system}/pods/berth-agent-b/status`, { status: { phase: "Failed" } })}
      => patch pods/status
    deletes a node ${(client) => client.delete("/api/v1/nodes/a")} => delete nodes
    forges a notice ${(client) => client.patch("/api/v1/nodes/a", { metadata: { annotations: { "ipam.vendor.io/read-allocations": "1 *" } } })}
      => ^403 .*Node a: the agent of node "b" may write the annotation ipam\.vendor\.io\/registry-epoch of its own Node
    says that another node's agent has written ${(client) => client.patch("/api/v1/nodes/a", { metadata: { annotations: { "ipam.vendor.io/registry-epoch": "e" } } })}
      => ^403 .*Node a: the agent of node "b" may write
    labels a node ${(client) => client.patch("/api/v1/nodes/a", { metadata: { labels: { zone: "mine" } } })}
      => ^403 .*Node a: the agent of node "b" may write
    deletes a policy ${(client) => client.delete(`${policies}/berth-agent-changes`)}
      => delete validatingadmissionpolicies
    gives itself a role ${(client) => client.patch(`${roles}/clusterroles/berth-agent`, { rules: [] })}
      => patch clusterroles
    leads the controllers ${(client) => client.get("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases")}
      => list leases
    deletes the kind ${(client) => client.delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/ipallocations.ipam.vendor.io")}
      => delete customresourcedefinitions
    deletes another's event ${(client) => client.delete("/apis/events.k8s.io/v1/namespaces/shop/events")}
      => deletecollection events
  `)("%s", async (_, attempt, wanted) => {
    const before = await snapshot(admin);
    const [verb, resource] = wanted.split(" ");
    const text = wanted.startsWith("^") ? wanted : `^403 .*cannot ${verb} resource "${resource}"`;
    expect(await outcomeOf(attempt(thief))).toMatch(new RegExp(text));
    expect(await snapshot(admin)).toEqual(before);
  });
});

it("a kind of Berth is deleted only by an administrator who has annotated it: its objects would go without a question", async () => {
  // One that may be changed, for the plane is lent on.
  await applyKinds(admin, [{ group: "ipam.vendor.io", version: "v1", kind: "Thing", plural: "things" }]);
  const definition = `${CRDS}/things.ipam.vendor.io`;
  const remove = () => outcomeOf(admin.delete(definition, { dryRun: ["All"] }));
  expect(await remove()).toMatch(
    /^403 .*CustomResourceDefinition things\.ipam\.vendor\.io would take all of its objects with it.*first run: kubectl annotate customresourcedefinition things\.ipam\.vendor\.io ipam\.vendor\.io\/force-delete=true/,
  );
  await admin.patch(definition, { metadata: { annotations: { [FORCE_DELETE]: "true" } } });
  expect(await remove()).toBe("done");
});
