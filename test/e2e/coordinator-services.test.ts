import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeSysctl } from "../../host/kernel/sysctl.ts";
import type { Family } from "../../host/net/ip.ts";
import { outsideAddress, POD_NETWORK, podAddress, segmentAddress } from "../lab/addressing.ts";
import { openCapture } from "../lab/capture.ts";
import { requireCommand } from "../lab/command.ts";
import { formatFrame } from "../lab/frame.ts";
import { DROP_INVALID, macvlanOn } from "../lab/netns/coordinator.ts";
import type { LabPod } from "../lab/netns/world.ts";
import type { Netns } from "../lab/netns.ts";
import type { Protocol } from "../lab/sockets.ts";
import { ask, openSession } from "../lab/traffic.ts";
import { describeLong } from "../world/long-cases.ts";
import { DNS_PORT, ENTRY, makeScene, PORT, PROTOCOLS, type Scene, SERVICE, SILENCE } from "./coordinator-scene.ts";

const NODE_PORT = 30_080;
/** Networks of pods that are not on the underlay. */
const ELSEWHERE = ["172.30.0.0/16", "fd00:30::/64"];
const SNAT = {
  auto: {},
  on: { serviceSnat: "on", overlayPodCIDR: ELSEWHERE },
  "auto with the pod in overlayPodCIDR": { overlayPodCIDR: ["10.60.0.0/16", "fd00:60::/32"] },
};
const NO_SNAT = {
  off: { serviceSnat: "off" },
  "auto with other networks in overlayPodCIDR": { overlayPodCIDR: ELSEWHERE },
};

const CLUSTER = {
  "auto, for the cluster": { overlayPodCIDR: Object.values(POD_NETWORK) },
  "on, for the cluster": { overlayPodCIDR: Object.values(POD_NETWORK), serviceSnat: "on" },
};

const CLUSTER_OFF = "off, for the cluster";
const OFF = { [CLUSTER_OFF]: { overlayPodCIDR: Object.values(POD_NETWORK), serviceSnat: "off" } };

function inScene(prefix: string, families: readonly Family[]): void {
  let scene: Scene;
  const pods = new Map<string, LabPod>();
  /** Pods of the cluster's own network, on node 1 and on node 2. */
  const routed: Netns[] = [];

  beforeAll(async () => {
    scene = await makeScene(prefix, families);
    for (const [index, [name, settings]] of Object.entries({ ...SNAT, ...NO_SNAT, ...CLUSTER, ...OFF }).entries())
      pods.set(name, await scene.addPod(scene.lab.node1, `snat${index}`, settings));
    const { fabric } = scene.lab;
    for (const [index, node] of [fabric.node1, fabric.node2].entries())
      routed.push(await fabric.addRoutedPod(node, `routed${index + 1}`, 5));
    for (const place of routed) await scene.lab.serve(place, PORT);
  });
  afterAll(() => scene?.delete());

  const requirePod = (name: string): LabPod => {
    const pod = pods.get(name);
    if (pod === undefined) throw new Error(`There is no pod "${name}"`);
    return pod;
  };

  describe.each(families)("IPv%i", (family) => {
    const node = (number: 1 | 2) => segmentAddress(0, 10 + number, family);
    const service = { address: SERVICE[family], port: 80 };
    const nodePort = { address: node(1), port: NODE_PORT };

    it("a pod reaches a service of its own node, and is seen as itself", () =>
      scene.withService(node(1), service, async () => {
        for (const protocol of PROTOCOLS) {
          const answer = await ask(scene.client.netns, service.address, service.port, { protocol });
          expect(answer).toMatchObject({ server: scene.lab.fabric.node1.name, seenPeer: scene.client.address(family) });
        }
      }));

    it("a pod reaches a service of another pod on its node, and is seen as itself", () =>
      scene.withService(scene.neighbour.address(family), service, async () => {
        for (const protocol of PROTOCOLS) {
          const answer = await ask(scene.client.netns, service.address, service.port, { protocol });
          expect(answer).toMatchObject({ server: scene.neighbour.netns.name, seenPeer: scene.client.address(family) });
        }
      }));

    it("a pod reaches a service of its own, when it is masqueraded as kube-proxy does", () =>
      scene.withService(scene.client.address(family), service, async () => {
        const { node1 } = scene.lab.fabric;
        const [word, own] = [family === 4 ? "ip" : "ip6", scene.client.address(family)];
        const rule = `ct status dnat ${word} saddr ${own} ${word} daddr ${own} masquerade`;
        const table = `table inet hairpin { chain back { type nat hook postrouting priority 90; ${rule}; }; }`;
        await requireCommand(node1.enter(["nft", table]));
        try {
          const { server, seenPeer } = await ask(scene.client.netns, service.address, service.port);
          expect(server).toBe(scene.client.netns.name);
          expect([scene.loopback(family), ...scene.nodeAddresses(family)]).toContain(seenPeer);
        } finally {
          await requireCommand(node1.enter(["nft", "delete table inet hairpin"]));
        }
      }));

    it.each(Object.keys(SNAT))(
      "serviceSnat %s: a pod reaches backends on another node, seen as its node",
      async (snat) => {
        const { remote, lab } = scene;
        for (const [address, name] of [
          [remote.address(family), remote.netns.name],
          [node(2), lab.fabric.node2.name],
        ] as const) {
          await scene.withService(address, service, async () => {
            for (const protocol of PROTOCOLS) {
              const answer = await ask(requirePod(snat).netns, service.address, service.port, { protocol });
              expect(answer.server).toBe(name);
              expect(scene.nodeAddresses(family)).toContain(answer.seenPeer);
            }
          });
        }
      },
    );

    it.each(Object.keys(NO_SNAT))(
      "serviceSnat %s: the backend answers the pod directly, which did not ask it",
      (snat) =>
        scene.withService(node(2), service, async () => {
          const pod = requirePod(snat);
          using capture = await openCapture(scene.lab.fabric.node2, "eth0");
          const asking = ask(pod.netns, service.address, service.port, SILENCE);
          await expect(asking).rejects.toMatchObject({ code: "ETIMEDOUT" });
          const mac = await pod.mac();
          const frames = capture.frames().filter(({ protocol }) => protocol === "tcp");
          expect(frames.slice(0, 3), frames.map(formatFrame).join("\n")).toMatchObject([
            { direction: "in", from: pod.address(family), toPort: PORT, flags: "S" },
            { direction: "out", to: pod.address(family), targetMac: mac, flags: "SA" },
            { direction: "in", from: pod.address(family), sourceMac: mac, flags: "R" },
          ]);
        }),
    );

    const [near, far] = [podAddress(1, 5, family), podAddress(2, 5, family)];
    const askPeer = async (pod: LabPod, address: string, protocol: Protocol): Promise<string> =>
      (await ask(pod.netns, address, PORT, { protocol })).seenPeer;

    it.each(Object.keys(CLUSTER))(
      "overlayPodCIDR, serviceSnat %s: the pod reaches the cluster's pods, those of its node as itself",
      async (snat) => {
        const pod = requirePod(snat);
        for (const protocol of PROTOCOLS) {
          expect(await askPeer(pod, near, protocol)).toBe(pod.address(family));
          expect(scene.nodeAddresses(family)).toContain(await askPeer(pod, far, protocol));
        }
      },
    );

    it("overlayPodCIDR, serviceSnat off: pods of another node answer directly, and the pod's node drops connections that it knows half of", async () => {
      const pod = requirePod(CLUSTER_OFF);
      const { node1 } = scene.lab.fabric;
      expect(await askPeer(pod, near, "tcp")).toBe(pod.address(family));
      expect(await askPeer(pod, far, "udp")).toBe(pod.address(family));
      await expect(ask(pod.netns, far, PORT, SILENCE)).rejects.toMatchObject({ code: "ETIMEDOUT" });
      await requireCommand(node1.enter(["nft", "delete", "table", "inet", "forwarding"]));
      try {
        expect(await askPeer(pod, far, "tcp")).toBe(pod.address(family));
      } finally {
        await requireCommand(node1.enter(["nft", DROP_INVALID]));
      }
    });

    it("hijackCIDR: the pod reaches the node-local cache", async () => {
      for (const protocol of PROTOCOLS) {
        const answer = await ask(scene.client.netns, scene.cache(family), DNS_PORT, { protocol });
        expect(answer).toMatchObject({ server: "cache", seenPeer: scene.client.address(family) });
      }
    });

    it("a client from outside comes in by the node's port, is seen as itself and gets its answer", () =>
      scene.withService(scene.client.address(family), nodePort, async () => {
        for (const protocol of PROTOCOLS) {
          const answer = await ask(scene.lab.fabric.outside, node(1), NODE_PORT, { protocol });
          expect(answer).toMatchObject({ server: scene.client.netns.name, seenPeer: outsideAddress(family) });
        }
      }));

    it("without the reply path it gets none, since it did not ask the pod; CHECK says so, and ADD fixes it", async () => {
      const { neighbour: pod, network, lab } = scene;
      await requireCommand(pod.netns.enter(["nft", "delete", "table", "inet", "berth"]));
      await scene.withService(pod.address(family), nodePort, async () => {
        using capture = await openCapture(lab.fabric.router, "seg0");
        for (const protocol of PROTOCOLS) {
          const asking = ask(lab.fabric.outside, node(1), NODE_PORT, { ...SILENCE, protocol });
          await expect(asking).rejects.toMatchObject({ code: "ETIMEDOUT" });
        }
        const strays = capture.frames().filter(({ from }) => from === pod.address(family));
        expect(strays.map(({ protocol }) => protocol)).toEqual(expect.arrayContaining(["tcp", "udp"]));
      });
      const outcome = await pod.coordinate("CHECK", network, { entry: ENTRY });
      expect([outcome.exitCode, outcome.stdout.code, outcome.stdout.msg]).toEqual([
        1,
        106,
        expect.stringMatching(/^Interface "eth0" is not as ADD left it; restoring it requires ".*table.*berth.*"$/),
      ]);
      const fixed = await pod.coordinate("ADD", network, { entry: ENTRY });
      expect(fixed.exitCode, fixed.text).toBe(0);
      await scene.withService(pod.address(family), nodePort, async () => {
        const answer = await ask(lab.fabric.outside, node(1), NODE_PORT);
        expect(answer).toMatchObject({ server: pod.netns.name, seenPeer: outsideAddress(family) });
      });
    });

    it("a connection to a service outlives a repeated ADD and a CHECK", () =>
      scene.withService(scene.remote.address(family), service, async () => {
        const { client, remote, network, lab } = scene;
        const session = openSession(client.netns, service.address, service.port);
        const probe = openSession(lab.fabric.node1, client.address(family), PORT);
        try {
          const before = await session.ask();
          expect(before.server).toBe(remote.netns.name);
          expect((await probe.ask()).server).toBe(client.netns.name);
          for (const verb of ["ADD", "CHECK", "ADD"] as const) {
            const outcome = await client.coordinate(verb, network, { entry: ENTRY });
            expect(outcome.exitCode, outcome.text).toBe(0);
            expect(await session.ask()).toEqual(before);
            expect((await probe.ask()).server).toBe(client.netns.name);
          }
        } finally {
          session.close();
          probe.close();
        }
      }));
  });
}

describe("settings that new links begin with", () => {
  let scene: Scene;

  beforeAll(async () => {
    scene = await makeScene("csl", [4, 6]);
  });
  afterAll(() => scene?.delete());

  /** A pod whose namespace has the settings before it has NICs. */
  async function addPod(name: string, settings: object, sysctls: Readonly<Record<string, string>>): Promise<LabPod> {
    await scene.lab.define(`csl-${name}`, [macvlanOn(0), { ...ENTRY, ...settings }]);
    const pod = await scene.lab.addPod(scene.lab.node1, name);
    for (const [key, value] of Object.entries(sysctls)) writeSysctl(pod.netns.path, key, value);
    await pod.attach(`csl-${name}`);
    await scene.lab.serve(pod.netns, PORT);
    return pod;
  }

  /** By the node's port, from outside. */
  async function askByNode(pod: LabPod, family: Family, options = {}): Promise<string> {
    const place = { address: segmentAddress(0, 11, family), port: NODE_PORT };
    let server = "";
    await scene.withService(pod.address(family), place, async () => {
      ({ server } = await ask(scene.lab.fabric.outside, place.address, place.port, options));
    });
    return server;
  }

  const STRICT = { "ipv4/conf/all/rp_filter": "1", "ipv4/conf/default/rp_filter": "1" };

  it("strict rp_filter: services and the node's port work, unless hostRPFilter is to leave it alone", async () => {
    const { lab, client, remote } = scene;
    for (const [key, value] of Object.entries(STRICT)) writeSysctl(lab.fabric.node1.path, key, value);
    const strict = await addPod("strict", {}, STRICT);
    for (const backend of [client, remote]) {
      await scene.withService(backend.address(4), { address: SERVICE[4], port: 80 }, async () => {
        expect(await ask(strict.netns, SERVICE[4], 80)).toMatchObject({ server: backend.netns.name });
      });
    }
    expect(await askByNode(strict, 4)).toBe(strict.netns.name);
    const untouched = await addPod("untouched", { hostRPFilter: -1 }, STRICT);
    await expect(askByNode(untouched, 4, SILENCE)).rejects.toMatchObject({ code: "ETIMEDOUT" });
  });

  it("IPv6 switched off: it is switched on where the pod needs it", async () => {
    writeSysctl(scene.lab.fabric.node1.path, "ipv6/conf/default/disable_ipv6", "1");
    const pod = await addPod("off", {}, { "ipv6/conf/default/disable_ipv6": "1" });
    await scene.withService(scene.remote.address(6), { address: SERVICE[6], port: 80 }, async () => {
      expect(await ask(pod.netns, SERVICE[6], 80)).toMatchObject({ server: scene.remote.netns.name });
    });
    expect(await askByNode(pod, 6)).toBe(pod.netns.name);
  });
});

describeLong("services of pods with IPv4", () => inScene("cs4", [4]));
describeLong("services of pods with IPv6", () => inScene("cs6", [6]));
describe("services of pods with both families", () => inScene("cs46", [4, 6]));
