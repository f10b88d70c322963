import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FAMILIES, type Family } from "../../host/net/ip.ts";
import { outsideAddress, podAddress, segmentAddress } from "../lab/addressing.ts";
import { ipPool } from "../lab/manifests.ts";
import { type Lab, macvlanOn, makeLab, pairsOf } from "../lab/netns/coordinator.ts";
import type { LabPod } from "../lab/netns/world.ts";
import type { Netns } from "../lab/netns.ts";
import { serviceStandIn } from "../lab/service.ts";
import { ask, ping } from "../lab/traffic.ts";
import { ofRun } from "../world/long-cases.ts";
import { ENTRY, openWatch, PORT, SERVICE, type Watch } from "./coordinator-nics.ts";

/** The overlay's own network on node 1: the upper half of the other node's route to it. */
const OVERLAY = {
  4: { subnet: "10.244.1.128/25", gateway: "10.244.1.129" },
  6: { subnet: "fd00:244:1:0:8000::/65", gateway: "fd00:244:1:0:8000::1" },
} as const;
const POOLS = Object.fromEntries(
  FAMILIES.map((family) => {
    const { subnet, gateway } = OVERLAY[family];
    return [`overlay-v${family}.yaml`, ipPool(`overlay-v${family}`, subnet, { gateway })];
  }),
);
const BERTH = { type: "berth", default_ipv4_ippool: ["overlay-v4"], default_ipv6_ippool: ["overlay-v6"] };
/** First NICs as overlay plugins make them: a routed pair, and a bridge. */
const FIRST = { ptp: { type: "ptp" }, bridge: { type: "bridge", bridge: "overlay", isGateway: true } };

let lab: Lab;
let watch: Watch;
/** Peer in the overlay's network, on node 2. */
let peer: Netns;

beforeAll(async () => {
  lab = await makeLab("co", { config: POOLS });
  watch = await openWatch(lab);
  lab.defer(async () => watch[Symbol.dispose]());
  const { node1, node2, outside, router } = lab.fabric;
  peer = await lab.fabric.addRoutedPod(node2, "peer", 5);
  for (const place of [node1, node2, outside, peer]) await lab.serve(place, PORT);
  const dataDir = `${lab.node1.agent.directory}/host-local`;
  const ranges = FAMILIES.map((family) => [OVERLAY[family]]);
  const hostLocal = { type: "host-local", dataDir, ranges, routes: [{ dst: "0.0.0.0/0" }, { dst: "::/0" }] };
  for (const [plugin, entry] of Object.entries(FIRST)) {
    await lab.define(`co-${plugin}-host-local`, [{ ...entry, ipam: hostLocal }]);
    await lab.define(`co-${plugin}-berth`, [{ ...entry, ipam: BERTH }]);
  }
  for (const mode of ["auto", "underlay"]) await lab.define(`co-${mode}`, [macvlanOn(1), { ...ENTRY, mode }]);
  await lab.define("co-moved", [macvlanOn(1), { ...ENTRY, mode: "overlay", podDefaultRouteNic: "net1" }]);
  await lab.define("co-third", [macvlanOn(2), { ...ENTRY, mode: "overlay" }]);
  for (const family of FAMILIES) {
    const network = family === 4 ? "10.244.1.0/24" : "fd00:244:1::/64";
    await router.ip(`route add ${network} via ${segmentAddress(0, 11, family)}`);
    const backends = [{ address: segmentAddress(0, 11, family), port: PORT }];
    await serviceStandIn(node1, { address: SERVICE[family], port: 80, backends });
    const remote = [{ address: podAddress(2, 5, family), port: PORT }];
    await serviceStandIn(node1, { address: SERVICE[family], port: 81, backends: remote });
  }
});

afterAll(() => lab?.delete());

async function addPod(name: string, first: string): Promise<LabPod> {
  const pod = await lab.addPod(lab.node1, name);
  await lab.serve(pod.netns, PORT, { protocols: ["tcp"] });
  await pod.attach(first);
  return pod;
}

/** Returns the router's segments on which packets from there were seen. */
async function segmentsOf(from: string, traffic: () => Promise<unknown>): Promise<number[]> {
  watch.clear();
  await traffic();
  return watch.segmentsOf((frame) => frame.from === from);
}

/**
 * Services by the first NIC, both networks answered by their own NIC, the node reaches both; the default route is
 * where it should be.
 */
async function expectOverlay(pod: LabPod, family: Family, holder: "eth0" | "net1"): Promise<void> {
  const { node1, outside } = lab.fabric;
  const [first, second] = [pod.address(family, "eth0"), pod.address(family, "net1")];
  const seen = await segmentsOf(second, async () => {
    for (const port of [80, 81]) {
      const answer = await ask(pod.netns, SERVICE[family], port);
      expect(answer).toMatchObject({ server: port === 80 ? node1.name : peer.name, seenPeer: first });
    }
    expect(await ask(pod.netns, SERVICE[family], 80, { from: second })).toMatchObject({ seenPeer: second });
  });
  expect(seen, "segments with services' traffic").toEqual([]);

  expect(await ask(peer, first, PORT)).toMatchObject({ server: pod.netns.name, seenPeer: podAddress(2, 5, family) });
  const replies = await segmentsOf(second, async () => {
    expect(await ask(outside, second, PORT)).toMatchObject({ seenPeer: outsideAddress(family), at: second });
  });
  expect(replies, "segments with replies of the second NIC").toEqual([1]);
  const overlayReplies = await segmentsOf(first, async () => {
    expect(await ask(outside, first, PORT)).toMatchObject({ seenPeer: outsideAddress(family), at: first });
  });
  expect(overlayReplies, "segments with replies of the first NIC, over its node").toEqual([0]);

  for (const address of [first, second]) {
    expect(await ask(node1, address, PORT)).toMatchObject({ server: pod.netns.name, at: address });
    expect(await ping(node1, address, { count: 1 })).toBe(true);
  }
  const own = await ask(pod.netns, outsideAddress(family), PORT);
  expect(own).toMatchObject({ server: outside.name, seenPeer: holder === "eth0" ? first : second });
}

async function expectNothingLeft(): Promise<void> {
  const { netns } = lab.node1;
  for (const family of FAMILIES) expect(await netns.ip(`-${family} route show table all proto 98`)).toBe("");
  expect(await netns.ip("neigh show nud permanent")).toBe("");
}

describe.each(ofRun(Object.keys(FIRST), (plugin) => plugin === "ptp"))("first NIC by %s", (plugin) => {
  it.each([
    ["auto", "host-local", "eth0"],
    ["moved", "berth", "net1"],
  ] as const)("network %s for the second, ipam %s for the first", async (mode, ipam, holder) => {
    const first = `co-${plugin}-${ipam}`;
    const pod = await addPod(`${plugin}-${mode}-${ipam}`, first);
    await pod.attach(`co-${mode}`, "net1");
    expect(await pod.netns.ip("-brief link show")).not.toContain("veth0");
    for (const family of FAMILIES) await expectOverlay(pod, family, holder);
    await pod.check(`co-${mode}`, "net1");
    await pod.check(first);
    await pod.detach(`co-${mode}`, "net1");
    await expectNothingLeft();
    for (const family of FAMILIES) {
      expect(await pod.netns.ip(`-${family} rule show`)).not.toContain("proto 98");
      const address = pod.address(family);
      expect(await ask(pod.netns, outsideAddress(family), PORT)).toMatchObject({ seenPeer: address });
      expect(await ask(peer, address, PORT)).toMatchObject({ server: pod.netns.name });
    }
    await pod.detach(first);
  });

  it("with two more NICs, each network is answered by its own", async () => {
    const pod = await addPod(`${plugin}-three`, `co-${plugin}-host-local`);
    await pod.attach("co-auto", "net1");
    await pod.attach("co-third", "net2");
    for (const family of FAMILIES) {
      await expectOverlay(pod, family, "eth0");
      const address = pod.address(family, "net2");
      const replies = await segmentsOf(address, async () => {
        expect(await ask(lab.fabric.outside, address, PORT)).toMatchObject({ at: address });
        expect(await ask(lab.fabric.node1, address, PORT)).toMatchObject({ at: address });
      });
      expect(replies).toEqual([2]);
    }
    for (const [network, ifName] of [
      ["co-auto", "net1"],
      ["co-third", "net2"],
    ] as const)
      await pod.check(network, ifName);
    await pod.detach("co-auto", "net1");
    for (const family of FAMILIES) {
      const address = pod.address(family, "net2");
      expect(await segmentsOf(address, () => ask(lab.fabric.outside, address, PORT))).toEqual([2]);
      expect(await ask(lab.fabric.node1, address, PORT)).toMatchObject({ at: address });
      expect(await ask(pod.netns, SERVICE[family], 80)).toMatchObject({ seenPeer: pod.address(family) });
    }
    await pod.detach("co-third", "net2");
    await pod.detach(`co-${plugin}-host-local`);
    await expectNothingLeft();
  });

  it("DEL of the second NIC, with the pod's namespace gone, leaves no route and no neighbour on the node", async () => {
    // Without a server: its socket would keep the namespace, and with it a NIC that answers for a freed address.
    const pod = await lab.addPod(lab.node1, `${plugin}-gone`);
    await pod.attach(`co-${plugin}-host-local`);
    await pod.attach("co-auto", "net1");
    expect(await lab.node1.netns.ip("route show table 500")).toContain(pod.address(4, "net1"));
    expect(await lab.node1.netns.ip("neigh show nud permanent")).toContain(pod.address(6, "net1"));
    await pod.netns.delete();
    await pod.detach("co-auto", "net1");
    await expectNothingLeft();
    await pod.detach(`co-${plugin}-host-local`);
  });
});

describe("a later underlay NIC of a pod whose first NIC has no coordinator", () => {
  it.each([
    ["co-ptp-berth", "co-auto"],
    ["co-bridge-host-local", "co-underlay"],
  ])("makes the pair, and takes it along: %s, %s", async (first, network) => {
    const pod = await addPod(`late${first.length}`, first);
    await pod.attach(network, "net1");
    for (const family of FAMILIES) {
      const address = pod.address(family, "net1");
      expect(await ask(lab.fabric.node1, address, PORT)).toMatchObject({ at: address });
      expect(await ask(pod.netns, SERVICE[family], 80, { from: address })).toMatchObject({ seenPeer: address });
    }
    await pod.check(network, "net1");
    expect(await pairsOf(lab.node1.netns)).toHaveLength(1);
    await pod.detach(network, "net1");
    expect(await pairsOf(lab.node1.netns)).toEqual([]);
    expect((await pod.netns.exec(["nft", "list", "ruleset"])).stdout).toBe("");
    await pod.detach(first);
    await expectNothingLeft();
  });
});
