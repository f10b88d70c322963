/**
 * Pods with several NICs, one on each segment: which way packets go, counted on the router's links.
 * Effects: traffic.
 */
import { expect } from "vitest";
import type { Family } from "../../host/net/ip.ts";
import { outsideAddress, segmentAddress } from "../lab/addressing.ts";
import { type Capture, openCapture } from "../lab/capture.ts";
import { type Frame, formatFrame } from "../lab/frame.ts";
import { type Lab, type LabOptions, makeLab } from "../lab/netns/coordinator.ts";
import type { LabPod } from "../lab/netns/world.ts";
import { serviceStandIn } from "../lab/service.ts";
import { ask } from "../lab/traffic.ts";

export const PORT = 8080;
export const SERVICE = { 4: "10.96.0.10", 6: "fd00:96::10" } as const;
const NODE_PORT = 30_080;
/** The coordinator's entry of a network definition. */
export const ENTRY = { type: "coordinator", serviceCIDR: ["10.96.0.0/16", "fd00:96::/112"] };

/** Name of a NIC, and the segment that it is on. */
export interface NicPlace {
  readonly ifName: string;
  readonly segment: number;
}

export const FIRST = { ifName: "eth0", segment: 0 } as const;
export const SECOND = { ifName: "net1", segment: 1 } as const;
export const THIRD = { ifName: "net2", segment: 2 } as const;

export type NicLab = Awaited<ReturnType<typeof makeNicLab>>;

/** Servers on both nodes and outside, services on node 1, and a watch of the router. */
export async function makeNicLab(prefix: string, options?: LabOptions) {
  const lab = await makeLab(prefix, options);
  try {
    const { node1, node2, outside } = lab.fabric;
    const watch = await openWatch(lab);
    lab.defer(async () => watch[Symbol.dispose]());
    for (const place of [node1, node2, outside]) await lab.serve(place, PORT);
    await offerServices(lab);
    /** A pod of node 1 that serves, without a NIC. */
    const addServer = async (name: string): Promise<LabPod> => {
      const pod = await lab.addPod(lab.node1, name);
      await lab.serve(pod.netns, PORT, { protocols: ["tcp"] });
      return pod;
    };
    return Object.assign(lab, { watch, addServer });
  } catch (error) {
    await lab.delete();
    throw error;
  }
}

/** All links of the router: the traffic of each segment. */
export interface Watch extends Disposable {
  /** Segments on which such frames have come in to the router since the last call of `clear`. */
  segmentsOf(fits: (frame: Frame) => boolean): number[];
  text(): string;
  clear(): void;
}

export async function openWatch({ fabric }: Lab): Promise<Watch> {
  const captures: Capture[] = [];
  for (const segment of [0, 1, 2]) captures.push(await openCapture(fabric.router, `seg${segment}`));
  const isData = ({ direction, protocol }: Frame) => direction === "in" && (protocol === "tcp" || protocol === "udp");
  return {
    segmentsOf: (fits) =>
      captures.flatMap((capture, segment) => {
        return capture.frames().some((frame) => isData(frame) && fits(frame)) ? [segment] : [];
      }),
    text: () =>
      captures.map((capture, segment) => `${segment}: ${capture.frames().map(formatFrame).join("\n   ")}`).join("\n"),
    clear: () => {
      for (const capture of captures) capture.clear();
    },
    [Symbol.dispose]: () => {
      for (const capture of captures) capture[Symbol.dispose]();
    },
  };
}

export interface Expected {
  readonly lab: NicLab;
  readonly pod: LabPod;
  readonly family: Family;
  readonly nics: readonly NicPlace[];
}

/** Expects the pod's own connections to leave by that NIC, with its address. */
export async function expectDefault({ lab, pod, family }: Expected, { ifName, segment }: NicPlace): Promise<void> {
  lab.watch.clear();
  for (const protocol of ["tcp", "udp"] as const) {
    const answer = await ask(pod.netns, outsideAddress(family), PORT, { protocol });
    expect(answer, ifName).toMatchObject({ server: lab.fabric.outside.name, seenPeer: pod.address(family, ifName) });
  }
  expect(
    lab.watch.segmentsOf(({ to }) => to === outsideAddress(family)),
    lab.watch.text(),
  ).toEqual([segment]);
}

/**
 * A request from outside to one of the pod's addresses is answered by the NIC that has it; a connection that the pod
 * opens from it leaves there.
 */
export async function expectReplies({ lab, pod, family, nics }: Expected): Promise<void> {
  for (const { ifName, segment } of nics) {
    const address = pod.address(family, ifName);
    lab.watch.clear();
    const answer = await ask(lab.fabric.outside, address, PORT);
    expect(answer).toMatchObject({ server: pod.netns.name, seenPeer: outsideAddress(family), at: address });
    await ask(pod.netns, outsideAddress(family), PORT, { from: address });
    expect(
      lab.watch.segmentsOf(({ from }) => from === address),
      lab.watch.text(),
    ).toEqual([segment]);
  }
}

/** On node 1: services whose backends are this node, on port 80, and the other one, on port 81. */
async function offerServices({ fabric, families }: Lab): Promise<void> {
  for (const family of families) {
    for (const [port, host] of [
      [80, 11],
      [81, 12],
    ] as const) {
      const backends = [{ address: segmentAddress(0, host, family), port: PORT }];
      await serviceStandIn(fabric.node1, { address: SERVICE[family], port, backends });
    }
  }
}

/**
 * A client from outside that comes in by a port of the node reaches each address, is seen as itself, and gets its
 * answer over the node.
 */
export async function expectNodePort({ lab, pod, family, nics }: Expected): Promise<void> {
  const place = { address: segmentAddress(0, 11, family), port: NODE_PORT };
  for (const { ifName } of nics) {
    const address = pod.address(family, ifName);
    const service = await serviceStandIn(lab.fabric.node1, { ...place, backends: [{ address, port: PORT }] });
    try {
      lab.watch.clear();
      const answer = await ask(lab.fabric.outside, place.address, place.port);
      expect(answer, ifName).toMatchObject({ server: pod.netns.name, seenPeer: outsideAddress(family), at: address });
      expect(
        lab.watch.segmentsOf(({ from }) => from === address),
        lab.watch.text(),
      ).toEqual([]);
    } finally {
      await service.delete();
    }
  }
}

/** Services on the node and behind it, from the address of each NIC; and the node reaches each address. */
export async function expectServices({ lab, pod, family, nics }: Expected): Promise<void> {
  const own = segmentAddress(0, 11, family);
  expect(await ask(pod.netns, SERVICE[family], 80)).toMatchObject({ server: lab.fabric.node1.name });
  expect(await ask(pod.netns, SERVICE[family], 81)).toMatchObject({ server: lab.fabric.node2.name, seenPeer: own });
  for (const { ifName } of nics) {
    const from = pod.address(family, ifName);
    const answer = await ask(pod.netns, SERVICE[family], 80, { from });
    expect(answer).toMatchObject({ server: lab.fabric.node1.name, seenPeer: from });
    expect(await ask(pod.netns, SERVICE[family], 81, { from })).toMatchObject({ server: lab.fabric.node2.name });
    const probe = await ask(lab.fabric.node1, from, PORT);
    expect(probe, `${ifName} ${from}`).toMatchObject({ server: pod.netns.name, seenPeer: own, at: from });
  }
}
