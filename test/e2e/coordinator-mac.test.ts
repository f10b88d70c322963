/**
 * `podMACPrefix`: a NIC that outlives its pod gets its former MAC address back, and an address that the pod requests
 * wins.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { podManifest } from "../lab/manifests.ts";
import { type ChainNode, ENTRY, MACVLAN, makeChainNode } from "../lab/netns/coordinator.ts";
import type { LabPod, PodOptions } from "../lab/netns/world.ts";
import { addVeth } from "../lab/netns.ts";
import { eventually } from "../lab/waiting.ts";

const NETWORK = `cm${process.pid}`;
/** A device of the node, which `host-device` lends to a pod. */
const DEVICE = "nic1";
const FORMER = "02:00:00:00:77:01";
const PREFIX = "0a:1b";
const COORDINATOR = { ...ENTRY, podMACPrefix: PREFIX };
const HOST_DEVICE = { type: "host-device", device: DEVICE, ipam: { type: "berth" } };

let node: ChainNode;

beforeAll(async () => {
  node = await makeChainNode("cm");
  const wire = await node.addNetns("wire1");
  await addVeth({ netns: node.netns, name: DEVICE }, { netns: wire, name: "end1" });
  await node.netns.ip(`link set ${DEVICE} address ${FORMER}`);
  await node.define(NETWORK, [HOST_DEVICE, COORDINATOR]);
});

afterAll(() => node.delete());

interface LinkJson {
  readonly address: string;
  readonly altnames?: readonly string[];
}

async function deviceOnNode(): Promise<LinkJson | undefined> {
  const links = await node.netns.ipJson<LinkJson & { ifname: string }>("link show");
  return links.find(({ ifname }) => ifname === DEVICE);
}

/** The node has its device as it was lent. */
async function expectReturned(): Promise<void> {
  const link = await eventually(deviceOnNode, (found) => found?.address === FORMER && found.altnames === undefined);
  expect(link?.address).toBe(FORMER);
  expect(link?.altnames).toBeUndefined();
}

const derivedMac = (pod: LabPod): string => {
  const octets = pod.address(4).split(".");
  return [PREFIX, ...octets.map((octet) => Number(octet).toString(16).padStart(2, "0"))].join(":");
};

/** The steps of a runtime's DEL, of which the coordinator's may fail. */
const coordinate = (pod: LabPod, command: "ADD" | "DEL") => pod.coordinate(command, NETWORK, { entry: COORDINATOR });

describe("a NIC that outlives its pod gets its former MAC address back", () => {
  it("by DEL, which may come twice", () =>
    node.withPod("lent", async (pod) => {
      for (let round = 0; round < 2; round++) {
        const { interfaces } = await pod.attach(NETWORK);
        expect(await pod.mac()).toBe(derivedMac(pod));
        expect(interfaces.find(({ name, sandbox }) => name === "eth0" && sandbox)?.mac).toBe(derivedMac(pod));
        await pod.check(NETWORK);
        expect((await coordinate(pod, "DEL")).exitCode).toBe(0);
        expect(await pod.mac()).toBe(FORMER);
        await pod.detach(NETWORK);
        await expectReturned();
      }
    }));

  it("by the DEL of a pod that has another NIC", () =>
    node.withPod("two", async (pod) => {
      const second = `${NETWORK}-second`;
      await node.define(second, [MACVLAN, ENTRY]);
      await pod.attach(NETWORK);
      await pod.attach(second, "net1");
      await pod.check(NETWORK);
      await pod.detach(NETWORK);
      await expectReturned();
      await pod.detach(second, "net1");
    }));

  it("on the node, by a DEL that no agent took until the NIC had been moved back", () =>
    node.withPod("spooled", async (pod) => {
      await pod.attach(NETWORK);
      const changed = derivedMac(pod);
      await node.agent.stop();
      await pod.detach(NETWORK);
      expect((await deviceOnNode())?.address).toBe(changed);
      await node.agent.start();
      await expectReturned();
    }));

  it("on the node, by GC when no DEL comes", () =>
    node.withPod("collected", async (pod) => {
      await pod.attach(NETWORK);
      // As the kernel does with a physical device when its namespace ends.
      await pod.netns.ip(`link set eth0 down name ${DEVICE} netns ${node.netns.name}`);
      const conf = { name: NETWORK, "cni.dev/valid-attachments": [], ...COORDINATOR };
      expect((await pod.run("coordinator", "GC", { conf })).exitCode).toBe(0);
      await expectReturned();
    }));
});

describe("a MAC address that the pod requests wins over podMACPrefix", () => {
  const BY_CAPABILITY = { capabilities: { mac: true } };
  const TUNING = { type: "tuning", ...BY_CAPABILITY };
  const withMac = (mac: string) => ({ type: "tuning", mac });
  const byCapability = (mac: string) => ({ capabilityArgs: { mac } });
  interface Case {
    readonly name: string;
    readonly plugins: (mac: string) => object[];
    readonly pod?: (mac: string) => Partial<PodOptions>;
    /** Requester, in the words of the plugin's log. */
    readonly by?: string;
  }
  const CASES: Case[] = [
    {
      name: "of tuning, by capability",
      plugins: () => [MACVLAN, TUNING, COORDINATOR],
      pod: byCapability,
      by: "a plugin before the coordinator",
    },
    // The coordinator cannot know: the prefix applies until then.
    {
      name: "of tuning after the coordinator, by capability",
      plugins: () => [MACVLAN, COORDINATOR, TUNING],
      pod: byCapability,
    },
    {
      name: "of tuning after the coordinator, in the definition",
      plugins: (mac) => [MACVLAN, COORDINATOR, withMac(mac)],
      by: 'the plugin \\"tuning\\" of the network',
    },
  ];

  it.each(CASES.map((each, index) => ({ ...each, index })))("$name", async ({ plugins, pod: options, by, index }) => {
    const [network, mac] = [`${NETWORK}-want${index}`, `02:42:ac:11:00:0${index}`];
    await node.define(network, plugins(mac));
    const test = async (pod: LabPod): Promise<void> => {
      const { interfaces } = await pod.attach(network);
      expect(await pod.mac()).toBe(mac);
      expect(interfaces.find(({ name, sandbox }) => name === "eth0" && sandbox)?.mac).toBe(mac);
      await pod.check(network);
      if (by !== undefined) await expectWarning(`${by} requests the MAC address ${mac}`);
      await node.agent.restart();
      await pod.check(network);
      await pod.detach(network);
    };
    await node.withPod(`want${index}`, test, options?.(mac));
  });

  async function expectWarning(why: string): Promise<void> {
    const line = `podMACPrefix \\"${PREFIX}\\" is not applied to interface \\"eth0\\": ${why}`;
    const read = () => readFile(join(node.agent.logDir, "coordinator.log"), "utf8");
    const log = await eventually(read, (text) => text.includes(line));
    expect(log.includes(line), `${line} in ${log.split("\n").slice(-4).join("\n")}`).toBe(true);
  }
});

const MAC = "02:00:00:06:00:32";
const ANNOTATED = podManifest("shop", "annotated", { ips: [{ ipv4: "10.6.1.50", mac: MAC }] });

it.each([
  ["without a prefix", ENTRY],
  ["in place of the prefix", COORDINATOR],
])("a MAC address that the annotation ips names is the NIC's, %s, until its DEL", async (_, entry) => {
  await node.agent.write("annotated.yaml", ANNOTATED);
  await node.withPod("annotated", async (pod) => {
    const network = `${NETWORK}-annotated`;
    await node.define(network, [HOST_DEVICE, entry]);
    await pod.attach(network);
    expect([await pod.mac(), pod.address(4)]).toEqual([MAC, "10.6.1.50"]);
    await pod.check(network);
    await pod.netns.ip("link set eth0 address 02:00:00:00:00:99");
    const outcome = await pod.coordinate("CHECK", network, { entry });
    expect(outcome.stdout.details).toBe(`pod: ip link set eth0 address ${MAC}`);
    await pod.detach(network);
    await expectReturned();
  });
});

it("without a request the prefix applies, and CHECK says when the address has changed, also after a restart of the agent", () =>
  node.withPod("plain", async (pod) => {
    const network = `${NETWORK}-plain`;
    await node.define(network, [MACVLAN, COORDINATOR]);
    await pod.attach(network);
    expect(await pod.mac()).toBe(derivedMac(pod));
    await pod.check(network);
    await pod.netns.ip("link set eth0 address 02:00:00:00:00:99");
    for (let round = 0; round < 2; round++) {
      const outcome = await pod.coordinate("CHECK", network, { entry: COORDINATOR });
      expect(outcome.stdout.details).toBe(`pod: ip link set eth0 address ${derivedMac(pod)}`);
      await node.agent.restart();
    }
    await pod.detach(network);
  }));
