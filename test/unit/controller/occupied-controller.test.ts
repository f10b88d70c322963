import { describe, expect, it } from "vitest";
import {
  planOccupied,
  readControlPlane,
  readEndpoints,
  readService,
} from "../../../host/controller/occupied-controller.ts";
import { MAX_OCCUPIED } from "../../../host/resources/status.ts";
import { range } from "../../world/values.ts";

const RANGES = [range("10.0.0.5-10.0.0.9"), range("fd00::5-fd00::9"), range("10.0.0.8-10.0.0.12")];
const NONE = { nodes: [], apiServer: [], services: [] };

it("only what lies in pools is published, in order, each address once and of the first that has it", () => {
  const machines = {
    nodes: ["n1", "10.0.0.9", "10.0.0.6", "10.0.0.6", "192.0.2.1", "fd00::7"],
    apiServer: ["10.0.0.9", "10.0.0.12", "api.example.org", ""],
    services: ["10.0.0.13", "10.0.0.5"],
  };
  expect(planOccupied(machines, RANGES)).toEqual({
    occupied: { nodes: ["10.0.0.6", "10.0.0.9", "fd00::7"], apiServer: ["10.0.0.12"], services: ["10.0.0.5"] },
    leftOut: 0,
  });
  expect(planOccupied(machines, []).occupied).toEqual(NONE);
});

it("of each kind so many are published, the lowest", () => {
  const nodes = Array.from({ length: MAX_OCCUPIED + 3 }, (_, at) => `10.1.${at >> 8}.${at & 255}`);
  const { occupied, leftOut } = planOccupied({ ...NONE, nodes }, [range("10.1.0.0-10.1.255.255")]);
  expect([occupied.nodes.length, occupied.nodes[0], leftOut]).toEqual([MAX_OCCUPIED, "10.1.0.0", 3]);
});

describe("the API server", () => {
  it("has the addresses of its EndpointSlices", () => {
    const addresses = ["10.0.0.1", "10.0.0.2"];
    expect(readEndpoints({ endpoints: addresses.map((each) => ({ addresses: [each] })) })).toEqual(addresses);
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
