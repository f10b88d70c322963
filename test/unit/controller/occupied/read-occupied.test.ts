import { describe, expect, it } from "vitest";
import { readControlPlane, readEndpoints, readService } from "../../../../host/controller/occupied/read-occupied.ts";

describe("the API server", () => {
  it("has the addresses of its EndpointSlices", () => {
    expect(readEndpoints({ endpoints: [{ addresses: ["10.0.0.1"] }, { addresses: ["10.0.0.2"] }] })).toEqual([
      "10.0.0.1",
      "10.0.0.2",
    ]);
    expect(readEndpoints({})).toEqual([]);
  });

  it.each([
    ["10.0.0.1:6443", ["10.0.0.1"]],
    ["10.0.0.1", ["10.0.0.1"]],
    ["'[fd00::1]:6443'", ["fd00::1"]],
    ["api.example.org:6443", ["api.example.org"]],
    ["''", [""]],
  ])("has what kubeadm names: %s", (text, wanted) =>
    expect(readControlPlane({ data: { ClusterConfiguration: `controlPlaneEndpoint: ${text}\n` } })).toEqual(wanted),
  );

  it("has nothing of settings that name none", () => expect(readControlPlane({ data: {} })).toEqual([]));
});

describe("a Service", () => {
  it("has its external and load balancer addresses, each once", () =>
    expect(
      readService({
        spec: { clusterIP: "10.96.0.1", externalIPs: ["10.0.0.1"], loadBalancerIP: "10.0.0.2" },
        status: { loadBalancer: { ingress: [{ ip: "10.0.0.2" }, { hostname: "lb" }, { ip: "10.0.0.3" }] } },
      }),
    ).toEqual(["10.0.0.1", "10.0.0.2", "10.0.0.3"]));

  it("of the cluster alone takes no memory", () =>
    expect(readService({ spec: { clusterIP: "10.96.0.1" }, status: { loadBalancer: {} } })).toBeUndefined());
});
