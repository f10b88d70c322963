/**
 * Three underlay pods on two nodes, servers in all of them, and stand-ins for services: where the coordinator's tests
 * of traffic begin.
 * Effects: a lab.
 */
import type { Family } from "../../host/net/ip.ts";
import { lengthOf, segmentAddress } from "../lab/addressing.ts";
import { type Lab, macvlanOn, makeLab } from "../lab/netns/coordinator.ts";
import type { LabNode, LabPod } from "../lab/netns/world.ts";
import { serviceStandIn } from "../lab/service.ts";

/** All servers listen here, but for the cache. */
export const PORT = 8080;
export const DNS_PORT = 53;
export const SERVICE = { 4: "10.96.0.10", 6: "fd00:96::10" } as const;
/** Addresses of the node-local cache of names; without a length, each is a host. */
const CACHE = { 4: "169.254.20.10", 6: "fd00:20::10" } as const;
/** Addresses on node 1's loopback, which comes before its NICs: the kernel chooses them towards pods. */
const LOOPBACK = { 4: "192.0.2.11", 6: "2001:db8::11" } as const;
/** Packets without an answer: long enough for an answer to come, were there one. */
export const SILENCE = { timeoutMs: 250 };
export const PROTOCOLS = ["tcp", "udp"] as const;

/** The coordinator's entry of a network definition, as the pods of the scene have it. */
export const ENTRY = {
  type: "coordinator",
  serviceCIDR: ["10.96.0.0/16", "fd00:96::/112"],
  hijackCIDR: Object.values(CACHE),
};

export interface Scene {
  readonly lab: Lab;
  readonly network: string;
  /** On node 1. */
  readonly client: LabPod;
  readonly neighbour: LabPod;
  /** On node 2. */
  readonly remote: LabPod;
  /** Addresses of node 1, one of each kind: the one that pods know, a second one of that link, a bridge's. */
  nodeAddresses(family: Family): string[];
  loopback(family: Family): string;
  /** Address of node 1 on the link of the cache, where a server named `cache` listens. */
  cache(family: Family): string;
  /** Another pod with a NIC on segment 0, by a network of its own with these settings. */
  addPod(node: LabNode, name: string, settings: object): Promise<LabPod>;
  /** While `test` runs, node 1 sends traffic for `place` to the backend's {@link PORT}. */
  withService(backend: string, place: { address: string; port: number }, test: () => Promise<void>): Promise<void>;
  delete(): Promise<void>;
}

/** Builds it; when something fails, nothing is left. */
export async function makeScene(prefix: string, families: readonly Family[]): Promise<Scene> {
  const lab = await makeLab(prefix, { families });
  const addPod = async (node: LabNode, name: string, settings: object): Promise<LabPod> => {
    const network = `${prefix}-${name}`;
    await lab.define(network, [macvlanOn(0, families), { ...ENTRY, ...settings }]);
    const pod = await lab.addPod(node, name);
    await pod.attach(network);
    return pod;
  };
  const nodeAddresses = (family: Family) => [segmentAddress(0, 11, family), segmentAddress(0, 9, family)];
  try {
    await furnishNode(lab);
    const { fabric, node1, node2 } = lab;
    const network = `${prefix}-pods`;
    await lab.define(network, [macvlanOn(0, families), ENTRY]);
    const pods: LabPod[] = [];
    for (const [node, name] of [
      [node1, "client"],
      [node1, "neighbour"],
      [node2, "remote"],
    ] as const) {
      const pod = await lab.addPod(node, name);
      await pod.attach(network);
      pods.push(pod);
    }
    const [client, neighbour, remote] = pods;
    if (client === undefined || neighbour === undefined || remote === undefined) throw new Error("no pods");
    for (const place of [fabric.node2, fabric.outside, ...pods.map(({ netns }) => netns)]) await lab.serve(place, PORT);
    // A server for each address: one for all of them would answer UDP from the address that routing likes best.
    await lab.serve(fabric.node1, PORT, { addresses: families.flatMap(nodeAddresses) });
    const addresses = families.map((family) => CACHE[family]);
    await lab.serve(fabric.node1, DNS_PORT, { name: "cache", addresses });
    return {
      lab,
      network,
      client,
      neighbour,
      remote,
      nodeAddresses,
      loopback: (family) => LOOPBACK[family],
      cache: (family) => CACHE[family],
      addPod,
      withService: async (backend, place, test) => {
        const service = await serviceStandIn(fabric.node1, { ...place, backends: [{ address: backend, port: PORT }] });
        try {
          await test();
        } finally {
          await service.delete();
        }
      },
      delete: () => lab.delete(),
    };
  } catch (error) {
    await lab.delete();
    throw error;
  }
}

/**
 * A link of a node-local cache, and further addresses. The kernel of the tests has no dummy links; a bridge without
 * ports is as good.
 */
async function furnishNode({ families, fabric: { node1 } }: Lab): Promise<void> {
  await node1.ip("link add nodelocaldns type bridge");
  await node1.ip("link set nodelocaldns up");
  for (const family of families) {
    await node1.ip(`addr add ${CACHE[family]}/${family === 4 ? 32 : 128} dev nodelocaldns`);
    await node1.ip(`addr add ${LOOPBACK[family]}/${family === 4 ? 32 : 128} dev lo`);
    await node1.ip(`addr add ${segmentAddress(0, 9, family)}/${lengthOf(family)} dev eth0`);
  }
}
