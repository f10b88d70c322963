/** The policies of deploy/policies.yaml on the API server in memory, with the suites that a real one passes. */
import { beforeAll, describe, expect, it } from "vitest";
import { ApiError, type KubeCall } from "../../../../host/kubernetes/kube-api.ts";
import { describeAccounts } from "../../../cluster/rights/accounts-suite.ts";
import { describePools } from "../../../cluster/rights/pools-suite.ts";
import { describeTheft } from "../../../cluster/rights/theft-suite.ts";
import { become, objectOf, outcomeOf, pathOf, placeObjects, rewrite } from "../../../cluster/rights-objects.ts";
import { ADMINISTRATOR, agentOf, CONTROLLER, type Writer } from "../../../fakes/admission/admission.ts";
import { BerthAdmission } from "../../../fakes/admission/berth-admission.ts";
import { MemoryApiServer } from "../../../fakes/memory-api-server.ts";
import { ALLOCATIONS, NODES, nodeObject, POOLS, poolObject } from "../../../lab/cluster/objects.ts";
import { CLAIMS } from "../../../lab/cluster/workload-kinds.ts";
import { type KubeClient, KubeError, type KubeObject } from "../../../lab/kube-client.ts";

const berth = (kind: string) => ({ apiVersion: "ipam.vendor.io/v1", kind });
const serves = {
  [POOLS]: berth("IPPool"),
  [ALLOCATIONS]: berth("IPAllocation"),
  "/apis/ipam.vendor.io/v1/subnets": berth("Subnet"),
  "/apis/ipam.vendor.io/v1/coordinators": berth("Coordinator"),
  [NODES]: { apiVersion: "v1", kind: "Node" },
  [CLAIMS]: { apiVersion: "k8s.cni.cncf.io/v1alpha1", kind: "IPAMClaim" },
};
const server = new MemoryApiServer({ serves, admission: new BerthAdmission() });

/** The fake as the lab's client; it deletes a whole collection one by one. */
function clientOf(writer: Writer): KubeClient {
  const api = server.client(undefined, undefined, writer);
  const send = async (method: string, place: string, body?: object): Promise<KubeObject> => {
    const [path = "", query] = place.split("?");
    const call = { method: method as KubeCall["method"], path, query: Object.fromEntries(new URLSearchParams(query)) };
    try {
      return await api.call(body === undefined ? call : { ...call, body });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const { status, reason, message } = error;
      throw new KubeError(`${method} ${place}`, status, JSON.stringify({ reason, message }));
    }
  };
  const remove = async (path: string, options?: object): Promise<KubeObject> => {
    const query = options !== undefined && "dryRun" in options ? "?dryRun=All" : "";
    if (!(path in serves)) return send("DELETE", `${path}${query}`, options);
    for (const { metadata } of (await send("GET", path)).items)
      await send("DELETE", `${path}/${metadata.name}${query}`);
  };
  return {
    get: (path) => send("GET", path),
    create: (path, object) => send("POST", path, object),
    patch: (path, change) => send("PATCH", path, change),
    apply: () => Promise.reject(new Error("The fake applies nothing")),
    put: (path, object) => send("PUT", path, object),
    delete: remove,
    send,
    text: () => Promise.reject(new Error("The fake has objects only")),
    close: () => {},
  };
}

const clients = { admin: clientOf(ADMINISTRATOR), agent: clientOf(agentOf("b")), controller: clientOf(CONTROLLER) };
const { admin } = clients;

/** Keys that are the administrators', Kubernetes' or Berth's. */
const OF_NODES = "zone node-restriction.kubernetes.io/tenant topology.k8s.io/x kubernetes.io/os ipam.vendor.io/x"
  .split(" ")
  .map((key) => ({ [key]: "x" }))
  .flatMap((keys) => [{ metadata: { labels: keys } }, { metadata: { annotations: keys } }]);

describe("allocations", () => {
  beforeAll(async () => {
    for (const node of ["a", "b"]) await admin.create(NODES, { ...nodeObject(node), spec: {} });
    await admin.create(POOLS, poolObject({ name: "blue", subnet: "10.6.0.0/24", default: true }));
  });
  describeTheft(() => clients);
  describeAccounts(() => clients);

  it("an agent's token that names no node writes nothing", async () => {
    await placeObjects(admin);
    const unbound = clientOf({ ...agentOf("b"), extra: { "authentication.kubernetes.io/credential-id": ["x"] } });
    const wanted =
      /^403 .*the token of the account berth-agent names no node, found authentication\.kubernetes\.io\/credential-id/;
    expect(await outcomeOf(unbound.create(ALLOCATIONS, objectOf("10.6.0.50", { node: "b" })))).toMatch(wanted);
    expect(await outcomeOf(rewrite(unbound, "10.6.0.11", become("Cooling", "b")))).toMatch(wanted);
    expect(await outcomeOf(unbound.delete(pathOf("10.6.0.11")))).toMatch(wanted);
    expect(await outcomeOf(unbound.patch(`${POOLS}/blue/status`, { status: { wanted: "now" } }))).toMatch(wanted);
  });

  it("the controller writes nothing of a Node but its notice", async () => {
    const wanted =
      /^403 .*Node a: the controller may write the annotation ipam\.vendor\.io\/read-allocations and nothing/;
    for (const body of [...OF_NODES, { spec: { taints: [{ key: "x", effect: "NoExecute" }] } }])
      expect(await outcomeOf(clients.controller.patch(`${NODES}/a`, body)), JSON.stringify(body)).toMatch(wanted);
  });

  it("a mutating webhook's labels and annotations of a Node come with the agent's mark and the controller's notice", async () => {
    const mutated = (own: string) => ({
      metadata: {
        labels: { "policy.example.org/team": own },
        annotations: { "policy.example.org/seen": own, [`ipam.vendor.io/${own}`]: "1" },
      },
    });
    expect(await outcomeOf(clients.agent.patch(`${NODES}/b`, mutated("registry-epoch")))).toBe("done");
    expect(await outcomeOf(clients.controller.patch(`${NODES}/b`, mutated("read-allocations")))).toBe("done");
    const wanted = /^403 .*Node b: the agent of node "b" may write the annotation ipam\.vendor\.io\/registry-epoch of/;
    const removal = { metadata: { annotations: { "policy.example.org/seen": null } } };
    for (const body of [...OF_NODES, removal])
      expect(await outcomeOf(clients.agent.patch(`${NODES}/b`, body)), JSON.stringify(body)).toMatch(wanted);
  });
});

describe("pools", () => describePools(() => clients));
