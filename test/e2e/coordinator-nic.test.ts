/**
 * The coordinator's DEL of a pod's only NIC deletes the NIC in place of its main plugin, where no plugin of the
 * network needs it any more.
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { macvlan } from "../lab/manifests.ts";
import { type ChainNode, dumpNetns, ENTRY, expectNetns, MACVLAN, makeChainNode } from "../lab/netns/coordinator.ts";
import type { LabPod } from "../lab/netns/world.ts";

const NETWORK = `cn${process.pid}`;
const AT_ONCE = 24;
const STATIC = { type: "static", addresses: [{ address: "10.6.9.9/32" }] };

let node: ChainNode;
/** After a first pod came and went. */
let start: readonly string[];

beforeAll(async () => {
  node = await makeChainNode("cn");
  start = await node.begin(NETWORK);
});

afterAll(() => node.delete());

const linksOf = async ({ netns }: LabPod): Promise<string[]> =>
  (await netns.ipJson<{ ifname: string }>("link show")).map(({ ifname }) => ifname);

/** The first step of a runtime's DEL of the whole chain. */
async function endCoordination(pod: LabPod, network = NETWORK): Promise<string[]> {
  const outcome = await pod.coordinate("DEL", network, { entry: ENTRY });
  expect(outcome.exitCode, outcome.text).toBe(0);
  return linksOf(pod);
}

/** The DEL of the whole chain, after which the pod's namespace is as it was when it was made. */
async function detach(pod: LabPod, empty: readonly string[], network = NETWORK): Promise<void> {
  await pod.detach(network);
  await expectNetns(pod.netns, empty);
  await node.expectState(start);
}

describe("a network of macvlan, Berth's IPAM and the coordinator", () => {
  it("the coordinator's DEL takes the NIC away, and that of macvlan succeeds", () =>
    node.withPod("own", async (pod) => {
      const empty = await dumpNetns(pod.netns);
      for (let round = 0; round < 3; round++) {
        await pod.attach(NETWORK);
        await pod.check(NETWORK);
        expect(await linksOf(pod)).toContain("eth0");
        // A runtime that keeps the namespace finds nothing in it, also not the coordinator's own link.
        expect(await endCoordination(pod)).toEqual(["lo"]);
        expect(await dumpNetns(pod.netns)).toEqual(empty);
        expect(await endCoordination(pod)).toEqual(["lo"]);
        await detach(pod, empty);
      }
    }));

  it("an ADD right after it, in the same namespace, is not disturbed", () =>
    node.withPod("again", async (pod) => {
      for (let round = 0; round < 5; round++) {
        await pod.attach(NETWORK);
        await pod.check(NETWORK);
        await pod.detach(NETWORK);
      }
      await pod.attach(NETWORK);
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      await pod.check(NETWORK);
      expect(await linksOf(pod)).toEqual(expect.arrayContaining(["eth0", "veth0"]));
      await pod.detach(NETWORK);
      await node.expectState(start);
    }));

  it(`${AT_ONCE} at once leave nothing`, async () => {
    const pods: LabPod[] = [];
    for (let index = 0; index < AT_ONCE; index++) pods.push(await node.addPod(node, `storm${index}`));
    const [first] = pods;
    const empty = first === undefined ? [] : await dumpNetns(first.netns);
    await Promise.all(pods.map((pod) => pod.attach(NETWORK)));
    await Promise.all(pods.map((pod) => pod.detach(NETWORK)));
    for (const pod of pods) await expectNetns(pod.netns, empty);
    await node.expectState(start);
    for (const pod of pods) await pod.netns.delete();
  });

  it("the agent killed before it deletes the NIC: nothing is left once the DELs are done", () =>
    node.withPod("killed", async (pod) => {
      const empty = await dumpNetns(pod.netns);
      await node.agent.restart("kill@1:nic.delete");
      await pod.attach(NETWORK);
      expect(await endCoordination(pod)).toContain("eth0");
      await node.agent.restart();
      await detach(pod, empty);
    }));

  it("the agent that ends in good order meanwhile leaves nothing", () =>
    node.withPod("stopped", async (pod) => {
      const empty = await dumpNetns(pod.netns);
      await pod.attach(NETWORK);
      await endCoordination(pod);
      expect(await node.agent.stop()).toBe(0);
      await node.agent.start();
      await detach(pod, empty);
    }));

  it("the namespace deleted right after the answer takes all of it away", async () => {
    const pod = await node.addPod(node, "quick");
    await pod.attach(NETWORK);
    await endCoordination(pod);
    await pod.netns.delete();
    await pod.detach(NETWORK);
    await node.expectState(start);
  });
});

describe("the NIC is left to its main plugin", () => {
  /** The DEL of the coordinator leaves it, that of the chain deletes it. */
  async function expectLeft(pod: LabPod, empty: readonly string[], network: string): Promise<void> {
    expect(await endCoordination(pod, network)).toContain("eth0");
    await detach(pod, empty, network);
  }

  it.each([
    ["with addresses of another IPAM", "static", [macvlan("uplink", STATIC), ENTRY]],
    ["beside a plugin that is not Berth's", "portmap", [MACVLAN, { type: "portmap" }, ENTRY]],
    ["of a network whose definition has no coordinator", "plain", [MACVLAN]],
  ])("%s", async (_what, name, plugins) => {
    const network = `${NETWORK}-${name}`;
    await node.define(network, plugins);
    if (name === "static") await node.configure({ hostRouteCIDR: [STATIC.addresses[0]?.address] });
    await node.withPod(name, async (pod) => {
      const empty = await dumpNetns(pod.netns);
      await pod.attach(network);
      if (name === "plain") await pod.coordinate("ADD", network, { entry: ENTRY });
      await expectLeft(pod, empty, network);
    });
    await node.configure({});
  });

  it("that an earlier agent attached", () =>
    node.withPod("earlier", async (pod) => {
      const empty = await dumpNetns(pod.netns);
      await pod.attach(NETWORK);
      await node.agent.restart();
      await expectLeft(pod, empty, NETWORK);
    }));

  it("of a pod with another link", () =>
    node.withPod("other", async (pod) => {
      await pod.attach(NETWORK);
      await pod.netns.ip("link add other0 type veth peer name other1");
      const links = await endCoordination(pod);
      expect(links).toEqual(expect.arrayContaining(["eth0", "other0"]));
      await pod.detach(NETWORK);
      await pod.netns.ip("link delete other0");
      await node.expectState(start);
    }));

  it("of another kind, which the pod has put in its place", () =>
    node.withPod("replaced", async (pod) => {
      await pod.attach(NETWORK);
      await pod.netns.ip("link delete eth0");
      await pod.netns.ip("link add eth0 type bridge");
      expect(await endCoordination(pod)).toContain("eth0");
      await pod.detach(NETWORK);
      await node.expectState(start);
    }));
});

it("no warning of it is in a log", async () => {
  const files = (await readdir(node.agent.logDir)).map((name) => join(node.agent.logDir, name));
  const texts = [node.agent.stderr(), ...(await Promise.all(files.map((file) => readFile(file, "utf8"))))];
  expect(
    texts
      .join("\n")
      .split("\n")
      .filter((line) => /detached pod's NIC/.test(line)),
  ).toEqual([]);
});
