/**
 * Berth's underlay pods and the services of a real kube-proxy: macvlan + ipam berth + coordinator on node 1, the
 * backend on node 2.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FAMILIES, type Family } from "../../host/net/ip.ts";
import { outsideAddress, POD_NETWORK, segmentAddress, segmentSubnet } from "../lab/addressing.ts";
import { openCapture } from "../lab/capture.ts";
import { SERVICE_CIDRS } from "../lab/cluster/plane-parts.ts";
import { addService, deleteService, type KubeProxy } from "../lab/kube-proxy.ts";
import { ipPool, macvlan, vendorConf } from "../lab/manifests.ts";
import { makeServiceWorld, nodeAddress, type ServiceWorld } from "../lab/netns/coordinator.ts";
import type { LabNode } from "../lab/netns/world.ts";
import type { Netns } from "../lab/netns.ts";
import { ask, type Server, serve } from "../lab/traffic.ts";
import { ofRun } from "../world/long-cases.ts";

const NETWORK = `ku${process.pid}`;
const PORT = 8080;
const NODE_PORT = 30080;
const BACKEND_HOST = 50;
const SERVICE = ["10.96.0.30", "fd00:96::30"] as const;
const NODE_PORT_SERVICE = ["10.96.0.40", "fd00:96::40"] as const;
const CONFIG = {
  "conf.yaml": vendorConf({ allocationCooldown: "1s" }),
  "four.yaml": ipPool("four", segmentSubnet(0, 4), {
    ips: ["10.60.0.100-10.60.0.119"],
    gateway: "10.60.0.1",
    default: true,
  }),
  "six.yaml": ipPool("six", segmentSubnet(0, 6), {
    ips: ["fd00:60::100-fd00:60::119"],
    gateway: "fd00:60::1",
    default: true,
  }),
};

let world: ServiceWorld;
let node: LabNode;
let backend: Netns;
let server: Server;
let pods = 0;

beforeAll(async () => {
  world = await makeServiceWorld("ku");
  const { fabric, plane } = world;
  node = await world.addNode(fabric.node1, CONFIG);
  backend = await fabric.addMacvlanPod(fabric.node2, "backend", [{ segment: 0, host: BACKEND_HOST }]);
  server = await serve(backend, PORT);
  const backends = FAMILIES.map((family) => ({ address: segmentAddress(0, BACKEND_HOST, family), port: PORT }));
  await addService(plane.client, { name: "web", addresses: SERVICE, port: 80, backends });
});

afterAll(async () => {
  await server?.close();
  await world?.delete();
});

interface Pod {
  readonly netns: Netns;
  readonly addresses: Readonly<Record<Family, string>>;
}

/** A pod on node 1 with the whole chain; the coordinator's own keys are `settings`. */
async function withPod(settings: object, test: (pod: Pod) => Promise<void>): Promise<void> {
  const coordinator = { type: "coordinator", mode: "underlay", serviceCIDR: Object.values(SERVICE_CIDRS), ...settings };
  await world.define(NETWORK, [macvlan("eth0"), coordinator]);
  const pod = await world.addPod(node, `pod${++pods}`);
  await pod.attach(NETWORK);
  try {
    await pod.check(NETWORK);
    await test({ netns: pod.netns, addresses: { 4: pod.address(4), 6: pod.address(6) } });
  } finally {
    await pod.detach(NETWORK);
  }
}

/**
 * The pod networks as kube-proxy and the coordinator have them, and whether kube-proxy masquerades a pod of the
 * underlay then.
 */
const CLUSTERS = [
  { mode: "nftables", when: "no clusterCIDR", networks: [], masquerades: false },
  { mode: "nftables", when: "a clusterCIDR elsewhere", networks: Object.values(POD_NETWORK), masquerades: true },
  { mode: "nftables", when: "one that the underlay is in", networks: FAMILIES.map(underlayOf), masquerades: false },
  { mode: "iptables", when: "no clusterCIDR", networks: [], masquerades: false },
  { mode: "iptables", when: "a clusterCIDR elsewhere", networks: Object.values(POD_NETWORK), masquerades: true },
] as const;

function underlayOf(family: Family): string {
  return segmentSubnet(0, family);
}

describe.each(ofRun(CLUSTERS, ({ mode, masquerades }) => (mode === "nftables") === masquerades))(
  "kube-proxy ($mode) with $when",
  ({ mode, networks, masquerades }) => {
    /** As it is collected from the cluster. */
    const cluster = { overlayPodCIDR: networks };
    let proxy: KubeProxy;
    beforeAll(async () => {
      const clusterCIDR = networks.length === 0 ? {} : { clusterCIDR: networks.join() };
      proxy = await world.startProxy({ mode, ...clusterCIDR }, SERVICE);
    });
    afterAll(() => proxy.stop());

    it.each(masquerades ? ["auto", "on", "off"] : ["auto", "on"])(
      "a pod reaches a backend on the other node, which sees the node: serviceSnat %s",
      (serviceSnat) =>
        withPod({ ...cluster, serviceSnat }, async ({ netns }) => {
          for (const [index, family] of FAMILIES.entries())
            for (const protocol of ["tcp", "udp"] as const) {
              const answer = await ask(netns, SERVICE[index] ?? "", 80, { protocol });
              expect(answer).toMatchObject({ server: backend.name, seenPeer: nodeAddress(1, family) });
            }
        }),
    );

    if (!masquerades)
      it("with serviceSnat off the backend answers the pod directly, which resets", () =>
        withPod({ ...cluster, serviceSnat: "off" }, async ({ netns, addresses }) => {
          for (const [index, family] of FAMILIES.entries()) {
            using wire = await openCapture(backend, "eth0");
            const asking = ask(netns, SERVICE[index] ?? "", 80, { timeoutMs: 800 });
            await expect(asking).rejects.toMatchObject({ code: "ETIMEDOUT" });
            const seen = wire.frames().map(({ direction, from, flags }) => `${direction} ${flags} ${from}`);
            const own = segmentAddress(0, BACKEND_HOST, family);
            const pod = addresses[family];
            expect(seen).toEqual(expect.arrayContaining([`in S ${pod}`, `out SA ${own}`, `in R ${pod}`]));
          }
        }));

    it("a client outside reaches a pod by a node port, and the pod sees the client", () =>
      withPod(cluster, async ({ netns, addresses }) => {
        const local = await serve(netns, PORT);
        const backends = FAMILIES.map((family) => ({
          address: addresses[family],
          port: PORT,
          node: world.fabric.node1,
        }));
        const service = { name: "edge", addresses: NODE_PORT_SERVICE, port: 80, nodePort: NODE_PORT, backends };
        await addService(world.plane.client, service);
        try {
          await proxy.knows(...NODE_PORT_SERVICE, ...Object.values(addresses));
          for (const family of FAMILIES)
            expect(await ask(world.fabric.outside, nodeAddress(1, family), NODE_PORT)).toMatchObject({
              server: netns.name,
              seenPeer: outsideAddress(family),
            });
        } finally {
          await deleteService(world.plane.client, service);
          await local.close();
        }
      }));
  },
);
