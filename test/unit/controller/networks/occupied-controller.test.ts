import { afterEach, describe, expect, it, vi } from "vitest";
import { openCaches } from "../../../../host/controller/caches.ts";
import {
  MAX_NODE_ADDRESSES,
  MAX_SERVICE_ADDRESSES,
  planOccupied,
  readService,
} from "../../../../host/controller/claimants.ts";
import {
  readControlPlane,
  readEndpoints,
  startOccupied,
} from "../../../../host/controller/networks/occupied-controller.ts";
import type { Claimant, ControllerDeps } from "../../../../host/controller/types.ts";
import { openLog } from "../../../../host/lib/log.ts";
import { API_VERSION } from "../../../../host/resources/fields/metadata.ts";
import { MemoryApiServer } from "../../../fakes/memory-api-server.ts";
import { POOLS, SERVES } from "../../../simulation/cluster.ts";
import { range } from "../../../world/values.ts";

afterEach(() => void vi.useRealTimers());

const RANGES = [range("10.0.0.5-10.0.0.9"), range("fd00::5-fd00::9"), range("10.0.0.8-10.0.0.12")];
const claimant = (kind: Claimant["kind"], path: string, ...addresses: string[]): Claimant => {
  const [namespace = "", name = ""] = path.split("/");
  return { kind, namespace, name, uid: path, addresses };
};

it("only what lies in pools is published, in order, each address once and of the first that has it", () => {
  const claimants = [
    claimant("Node", "/n1", "n1", "10.0.0.9", "10.0.0.6", "10.0.0.6", "192.0.2.1", "fd00::7"),
    claimant("Service", "shop/front", "10.0.0.13", "10.0.0.5", "10.0.0.6"),
  ];
  const apiServer = ["10.0.0.9", "10.0.0.12", "api.example.org", ""];
  expect(planOccupied({ claimants, apiServer }, RANGES)).toEqual({
    occupied: { nodes: ["10.0.0.6", "10.0.0.9", "fd00::7"], apiServer: ["10.0.0.12"], services: ["10.0.0.5"] },
    problems: [],
  });
});

it("of one Node, and of one namespace, the lowest few are believed, and the owner is named", () => {
  const many = Array.from({ length: 40 }, (_, at) => `10.1.0.${at}`);
  const late = many.map((text) => text.replace("10.1", "10.2"));
  const claimants = [
    ...[claimant("Node", "/n1", ...many), claimant("Node", "/n2", "10.3.0.1")],
    ...late.map((text, at) => claimant("Service", `evil/s${at}`, text)),
    claimant("Service", "shop/front", "10.3.0.2"),
  ];
  const { occupied, problems } = planOccupied({ claimants, apiServer: [] }, [range("10.1.0.0-10.3.255.255")]);
  expect(occupied).toEqual({
    nodes: [...many.slice(0, MAX_NODE_ADDRESSES), "10.3.0.1"],
    apiServer: [],
    services: [...late.slice(0, MAX_SERVICE_ADDRESSES), "10.3.0.2"],
  });
  expect(problems).toEqual([
    expect.stringContaining('Node "n1" has 40 addresses'),
    expect.stringContaining('Services of namespace "evil" have 40 addresses'),
  ]);
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

it("a Service has what its load balancers give it, and nothing that its author writes", () => {
  const metadata = { namespace: "shop", name: "front", uid: "u1" };
  const spec = { clusterIP: "10.96.0.1", externalIPs: ["10.0.0.1"], loadBalancerIP: "10.0.0.2" };
  const ingress = [{ ip: "10.0.0.4" }, { hostname: "lb" }, { ip: "10.0.0.3" }];
  expect(readService({ metadata, spec, status: { loadBalancer: { ingress } } })).toEqual({
    kind: "Service",
    ...metadata,
    addresses: ["10.0.0.4", "10.0.0.3"],
  });
  expect(readService({ metadata, spec, status: { loadBalancer: {} } })).toBeUndefined();
});

it("what a tenant has made and taken away again and again is written a few times, and then each half minute", async () => {
  vi.useFakeTimers();
  const server = new MemoryApiServer({ serves: SERVES, isOpen: true });
  const log = openLog("test", "silent");
  const [COORDINATORS, SERVICES] = ["/apis/ipam.vendor.io/v1/coordinators", "/api/v1/services"];
  server.put(POOLS, "blue", { apiVersion: API_VERSION, kind: "IPPool", spec: { subnet: "10.6.0.0/24" } });
  server.put(COORDINATORS, "default", { apiVersion: API_VERSION, kind: "Coordinator", spec: {} });
  let writes = 0;
  const api = server.client(async ({ method }, commit) => {
    if (method === "PATCH") writes++;
    return commit();
  });
  const caches = openCaches({ api, configNamespace: "kube-system", log, random: () => 0 });
  const synced = caches.synced();
  await vi.advanceTimersByTimeAsync(100);
  await synced;
  const clock = { nowMs: () => Date.now(), now: () => new Date() };
  const leading = new AbortController().signal;
  const part = startOccupied({ api, caches, log, clock, leading, random: () => 0 } as unknown as ControllerDeps);
  for (let at = 0; at < 60; at++) {
    const ingress = at % 2 === 0 ? [{ ip: "10.6.0.9" }] : [];
    server.put(SERVICES, "toggled", { metadata: { namespace: "evil" }, status: { loadBalancer: { ingress } } });
    await vi.advanceTimersByTimeAsync(3_000);
  }
  await Promise.all([part.close(), caches.close()]);
  expect(writes).toBeGreaterThan(10);
  expect(writes).toBeLessThan(18);
});
