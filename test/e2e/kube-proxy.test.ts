/**
 * Services of a real kube-proxy, from a real API server, on two nodes of the test network.
 *
 * Here with pods of the nodes' own network, as kube-proxy knows them, and with a plain machine: that the instruments
 * work, and what kube-proxy does by itself. Berth's pods are in kube-proxy-underlay.test.ts.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FAMILIES, type Family } from "../../host/net/ip.ts";
import { POD_NETWORK, podAddress, segmentAddress } from "../lab/addressing.ts";
import { openCapture } from "../lab/capture.ts";
import { addService, type KubeProxy } from "../lab/kube-proxy.ts";
import { makeServiceWorld, nodeAddress, type ServiceWorld } from "../lab/netns/coordinator.ts";
import type { Netns } from "../lab/netns.ts";
import { ask } from "../lab/traffic.ts";
import { isLong } from "../world/long-cases.ts";

/** Networks of the routed pods, with and without, in both modes of kube-proxy. */
const clusterCIDR = `${POD_NETWORK[4]},${POD_NETWORK[6]}`;
const ALL_PROXIES = (["nftables", "iptables"] as const).flatMap((mode) => [{ mode }, { mode, clusterCIDR }]);
/** The gate has each mode, and each value. */
const PROXIES = ALL_PROXIES.filter((_, index) => isLong || index % 3 === 0);
const PORT = 8080;
const NEIGHBOUR_HOST = 6;
const UNDERLAY_HOST = 50;
const ROUTED = ["10.96.0.10", "fd00:96::10"] as const;
const DIRECT = ["10.96.0.20", "fd00:96::20"] as const;

let world: ServiceWorld;
let client: Netns;
let backend: Netns;
/** On the nodes' segment, like an underlay pod; it sends what is for services to node 1. */
let neighbour: Netns;
let underlay: Netns;

beforeAll(async () => {
  world = await makeServiceWorld("kp");
  const { fabric, plane } = world;
  client = await fabric.addRoutedPod(fabric.node1, "client", 5);
  backend = await fabric.addRoutedPod(fabric.node2, "backend", 6);
  neighbour = await fabric.addHost("neighbour", NEIGHBOUR_HOST);
  underlay = await fabric.addMacvlanPod(fabric.node2, "underlay", [{ segment: 0, host: UNDERLAY_HOST }]);
  for (const [index, service] of DIRECT.entries())
    await neighbour.ip(`route add ${service} via ${nodeAddress(1, index === 0 ? 4 : 6)}`);
  for (const pod of [backend, underlay]) await world.serve(pod, PORT);
  const backends = (address: (family: Family) => string) =>
    FAMILIES.map((family) => ({ address: address(family), port: PORT }));
  const routed = { name: "routed", addresses: ROUTED, port: 80, backends: backends((f) => podAddress(2, 6, f)) };
  const direct = { backends: backends((f) => segmentAddress(0, UNDERLAY_HOST, f)) };
  await addService(plane.client, routed);
  await addService(plane.client, { ...direct, name: "direct", addresses: DIRECT, port: 80 });
});

afterAll(() => world?.delete());

describe.each(PROXIES)("kube-proxy $mode with clusterCIDR $clusterCIDR", (options) => {
  let proxy: KubeProxy;
  beforeAll(async () => {
    proxy = await world.startProxy(options, [...ROUTED, ...DIRECT]);
  });
  afterAll(() => proxy.stop());

  it("sends a pod's connection to a backend on the other node, and the backend sees the pod", async () => {
    for (const [index, family] of FAMILIES.entries())
      for (const protocol of ["tcp", "udp"] as const)
        expect(await ask(client, ROUTED[index] ?? "", 80, { protocol })).toMatchObject({
          server: backend.name,
          seenPeer: podAddress(1, 5, family),
        });
  });

  if ("clusterCIDR" in options)
    it("masquerades a client that is no pod", async () => {
      for (const [index, family] of FAMILIES.entries())
        expect(await ask(neighbour, DIRECT[index] ?? "", 80)).toMatchObject({
          server: underlay.name,
          seenPeer: nodeAddress(1, family),
        });
    });
  // Why Berth masquerades: the backend is on the client's own segment and answers it directly, from an address that
  // was not asked.
  else
    it("does not masquerade a client that is no pod, which then resets", async () => {
      for (const [index, family] of FAMILIES.entries()) {
        using wire = await openCapture(neighbour, "eth0");
        const asking = ask(neighbour, DIRECT[index] ?? "", 80, { timeoutMs: 800 });
        await expect(asking).rejects.toMatchObject({ code: "ETIMEDOUT" });
        const resets = wire.frames().filter(({ direction, flags }) => direction === "out" && flags === "R");
        expect(resets[0]).toMatchObject({ to: segmentAddress(0, UNDERLAY_HOST, family) });
      }
    });
});
