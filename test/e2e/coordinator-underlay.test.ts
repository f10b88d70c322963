import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Family } from "../../host/net/ip.ts";
import { outsideAddress, segmentAddress } from "../lab/addressing.ts";
import { openCapture } from "../lab/capture.ts";
import { pairsOf } from "../lab/netns/coordinator.ts";
import { ask, ping } from "../lab/traffic.ts";
import { describeLong } from "../world/long-cases.ts";
import { makeScene, PORT, PROTOCOLS, type Scene } from "./coordinator-scene.ts";

function inScene(prefix: string, families: readonly Family[]): void {
  let scene: Scene;
  beforeAll(async () => {
    scene = await makeScene(prefix, families);
  });
  afterAll(() => scene.delete());

  describe.each(families)("IPv%i", (family) => {
    it("the node reaches the pod from each of its addresses, as probes do", async () => {
      const { client, lab, nodeAddresses, loopback, cache } = scene;
      for (const from of [...nodeAddresses(family), loopback(family), cache(family)]) {
        for (const protocol of PROTOCOLS) {
          const answer = await ask(lab.fabric.node1, client.address(family), PORT, { protocol, from });
          expect(answer, `${protocol} from ${from}`).toMatchObject({ server: client.netns.name, seenPeer: from });
        }
        expect(await ping(lab.fabric.node1, client.address(family), { from, count: 1 }), `ping from ${from}`).toBe(
          true,
        );
      }
    });

    it("the node's own choice is an address that the pod has a route to", async () => {
      const answer = await ask(scene.lab.fabric.node1, scene.client.address(family), PORT);
      expect(await scene.client.netns.ip(`route get ${answer.seenPeer}`)).toContain("dev veth0");
      expect(await ping(scene.lab.fabric.node1, scene.client.address(family), { count: 1 })).toBe(true);
    });

    it("the pod reaches the node by each of its addresses, and not over the segment", async () => {
      const { client, lab } = scene;
      using capture = await openCapture(lab.fabric.node1, "eth0");
      for (const address of scene.nodeAddresses(family)) {
        for (const protocol of PROTOCOLS) {
          const answer = await ask(client.netns, address, PORT, { protocol });
          expect(answer, address).toMatchObject({ server: lab.fabric.node1.name, seenPeer: client.address(family) });
        }
        expect(await ping(client.netns, address, { count: 1 })).toBe(true);
      }
      expect(capture.frames().filter(({ from, to }) => [from, to].includes(client.address(family)))).toEqual([]);
    });

    it("the pod's own connections to the outside leave by its own NIC", async () => {
      const { client, lab } = scene;
      using capture = await openCapture(lab.fabric.router, "seg0");
      for (const protocol of PROTOCOLS) {
        const answer = await ask(client.netns, outsideAddress(family), PORT, { protocol });
        expect(answer).toMatchObject({ server: lab.fabric.outside.name, seenPeer: client.address(family) });
      }
      const sent = capture
        .frames()
        .filter(({ direction, from }) => direction === "in" && from === client.address(family));
      const data = sent.filter(({ protocol }) => protocol === "tcp" || protocol === "udp");
      expect(new Set(data.map(({ sourceMac }) => sourceMac))).toEqual(new Set([await client.mac()]));
      expect(data.length).toBeGreaterThan(3);
    });

    it("a client from outside reaches the pod directly, by its own NIC both ways", async () => {
      const { client, lab } = scene;
      using capture = await openCapture(lab.fabric.router, "seg0");
      for (const protocol of PROTOCOLS) {
        const answer = await ask(lab.fabric.outside, client.address(family), PORT, { protocol });
        expect(answer).toMatchObject({ server: client.netns.name, seenPeer: outsideAddress(family) });
      }
      const data = capture.frames().filter(({ protocol }) => protocol === "tcp" || protocol === "udp");
      const macs = data.map(({ direction, sourceMac, targetMac }) => (direction === "in" ? sourceMac : targetMac));
      expect(new Set(macs)).toEqual(new Set([await client.mac()]));
      expect(new Set(data.map(({ direction }) => direction))).toEqual(new Set(["in", "out"]));
    });

    it("pods reach each other directly, on one node and on two", async () => {
      const { client, neighbour, remote } = scene;
      const rows = [
        [client, neighbour],
        [neighbour, client],
        [client, remote],
        [remote, client],
      ] as const;
      for (const [from, to] of rows) {
        const seen = { server: to.netns.name, seenPeer: from.address(family) };
        for (const protocol of PROTOCOLS)
          expect(await ask(from.netns, to.address(family), PORT, { protocol })).toMatchObject(seen);
        expect(await ping(from.netns, to.address(family), { count: 1 })).toBe(true);
      }
    });

    it("another node and the pod reach each other directly", async () => {
      const { client, lab } = scene;
      const other = segmentAddress(0, 12, family);
      const answer = await ask(lab.fabric.node2, client.address(family), PORT);
      expect(answer).toMatchObject({ server: client.netns.name, seenPeer: other });
      expect(await ask(client.netns, other, PORT)).toMatchObject({ seenPeer: client.address(family) });
    });
  });

  it("pairs have no link-local address, CHECK passes for all of them, and DEL leaves nothing of them on the nodes", async () => {
    const { lab, network, client, neighbour, remote } = scene;
    // Else each had routes of its own, which the kernel walks for each other pod.
    const pairs = await pairsOf(lab.node1.netns);
    expect(pairs).toHaveLength(2);
    for (const pair of pairs) expect(await lab.node1.netns.ip(`-6 addr show dev ${pair}`)).toBe("");
    for (const pod of [client, neighbour, remote]) await pod.check(network);
    for (const pod of [client, neighbour, remote]) await pod.detach(network);
    for (const { netns } of [lab.node1, lab.node2]) {
      expect(await netns.ip("link show group 98")).toBe("");
      for (const family of families) expect(await netns.ip(`-${family} route show table all proto 98`)).toBe("");
      expect(await netns.ip("neigh show nud permanent")).toBe("");
    }
  });
}

describeLong("underlay pods of IPv4", () => inScene("cu4", [4]));
describeLong("underlay pods of IPv6", () => inScene("cu6", [6]));
describe("underlay pods of both families", () => inScene("cu46", [4, 6]));
