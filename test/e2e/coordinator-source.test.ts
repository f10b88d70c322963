/**
 * Source addresses: packets that leave over the pair carry the NIC's address, whatever other addresses the pod has;
 * and a redirect in the pod answers the node.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { FAMILIES, type Family } from "../../host/net/ip.ts";
import { segmentAddress } from "../lab/addressing.ts";
import { macvlanOn } from "../lab/netns/coordinator.ts";
import type { LabPod } from "../lab/netns/world.ts";
import { ask, serve } from "../lab/traffic.ts";
import { eventually } from "../lab/waiting.ts";
import { ENTRY, makeNicLab, type NicLab, PORT, SERVICE } from "./coordinator-nics.ts";

/** The port of the sidecar, to which the pod's rules redirect traffic for {@link SERVED}. */
const SIDECAR = 15_006;
const SERVED = 8_081;
/**
 * On `lo`, as a pod behind direct server return or anycast has them; the second IPv6 address is nearer to the
 * service's than the NIC's.
 */
const ON_LOOPBACK = ["192.0.2.10/32", "2001:db8::10/128", "fd00:96::ffff/128"];

let lab: NicLab;
const network = (segment: number) => `cr${process.pid}-${segment}`;

beforeAll(async () => {
  lab = await makeNicLab("cr");
  for (const segment of [0, 1]) await lab.define(network(segment), [macvlanOn(segment), ENTRY]);
});

afterAll(() => lab?.delete());

async function addLoopbackAddresses(pod: LabPod): Promise<void> {
  for (const address of ON_LOOPBACK) await pod.netns.ip(`addr add ${address} dev lo`);
}

/** A link that is older than the pod's NICs, with addresses. */
async function addBridge(pod: LabPod): Promise<void> {
  await pod.netns.ip("link add br0 type bridge");
  await pod.netns.ip("link set br0 up");
  for (const address of ["172.30.0.1/24", "fd00:96::1:1/120"]) await pod.netns.ip(`addr add ${address} dev br0`);
}

/** Services on the node and behind it and the node itself, each from the address of `ifName`. */
async function expectSource(pod: LabPod, ifName: string, families: readonly Family[] = FAMILIES): Promise<void> {
  for (const family of families) {
    const own = pod.address(family, ifName);
    const node = { server: lab.fabric.node1.name, seenPeer: own };
    expect(await ask(pod.netns, SERVICE[family], 80)).toMatchObject(node);
    expect(await ask(pod.netns, SERVICE[family], 81)).toMatchObject({ server: lab.fabric.node2.name });
    expect(await ask(pod.netns, segmentAddress(0, 11, family), PORT)).toMatchObject(node);
  }
}

it.each([
  ["addresses on lo from before", addLoopbackAddresses, async () => {}],
  ["addresses on lo that come later", async () => {}, addLoopbackAddresses],
  ["a link with addresses that is older than its NIC", addBridge, async () => {}],
] as const)("a pod with %s reaches services and its node from its own address", async (what, before, after) => {
  const pod = await lab.addPod(lab.node1, what.replaceAll(/[^a-z]/g, "").slice(-12));
  await before(pod);
  await pod.attach(network(0));
  await after(pod);
  await expectSource(pod, "eth0");
  await pod.attach(network(1), "net1");
  await expectSource(pod, "eth0");
  for (const [segment, ifName] of [
    [0, "eth0"],
    [1, "net1"],
  ] as const)
    await pod.check(network(segment), ifName);
  await pod.detach(network(1), "net1");
  await expectSource(pod, "eth0");
  await pod.detach(network(0));
});

it("the source is the address that Berth gave, not another one on the NIC, after the ADD of a second NIC too", async () => {
  const pod = await lab.addPod(lab.node1, "later");
  await addLoopbackAddresses(pod);
  await pod.attach(network(0));
  await pod.netns.ip(`addr add ${segmentAddress(0, 240, 4)}/24 dev eth0`);
  await pod.attach(network(1), "net1");
  await expectSource(pod, "eth0");
  await pod.check(network(0));
  await pod.detach(network(1), "net1");
  await pod.detach(network(0));
});

it("a redirect in a pod whose pair has an address answers the node and clients behind it, never from that", async () => {
  await lab.define(network(9), [macvlanOn(0), { ...ENTRY, vethLinkAddress: "169.254.100.1" }]);
  const pod = await lab.addPod(lab.node1, "mesh");
  await pod.attach(network(9));
  const sidecar = await serve(pod.netns, SIDECAR, { protocols: ["tcp"] });
  try {
    const rule = `tcp dport ${SERVED} redirect to :${SIDECAR}`;
    const table = `table inet mesh { chain inbound { type nat hook prerouting priority dstnat; ${rule}; }; }`;
    const { exitCode, stderr } = await pod.netns.exec(["nft", table]);
    expect(exitCode, stderr).toBe(0);
    // Until the kernel has probed the link-local address of the pair's end.
    const tentative = () => pod.netns.ip("-6 addr show dev veth0 tentative");
    expect(await eventually(tentative, (text) => text === "")).toBe("");
    for (const family of FAMILIES) {
      const answer = await ask(lab.fabric.node1, pod.address(family), SERVED);
      expect(answer).toMatchObject({ server: pod.netns.name, seenPeer: segmentAddress(0, 11, family) });
      expect((await ask(lab.fabric.node2, pod.address(family), SERVED)).server).toBe(pod.netns.name);
      const to = [SERVICE[family], segmentAddress(0, 11, family), segmentAddress(0, 12, family)];
      for (const address of to)
        expect(await pod.netns.ip(`-${family} route get ${address}`)).toContain(` src ${pod.address(family)} `);
    }
    await expectSource(pod, "eth0");
    await pod.check(network(9));
  } finally {
    await sidecar.close();
  }
  await pod.detach(network(9));
});
