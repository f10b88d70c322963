/**
 * The coordinator's DEL of a pod's only NIC deletes the NIC in place of its main plugin, where no plugin of the
 * network needs it any more.
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ChainNode, dumpNetns, ENTRY, expectNetns, makeChainNode } from "../lab/netns/coordinator.ts";
import type { LabPod } from "../lab/netns/world.ts";
import { until } from "../lab/waiting.ts";

const NETWORK = `cn${process.pid}`;

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
      for (let round = 0; round < 2; round++) {
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
      for (let round = 0; round < 2; round++) {
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

  it("the agent killed before it deletes the NIC: nothing is left once the DELs are done", () =>
    node.withPod("killed", async (pod) => {
      const empty = await dumpNetns(pod.netns);
      await node.agent.restart("kill@1:nic.delete");
      await pod.attach(NETWORK);
      expect(await endCoordination(pod)).toContain("eth0");
      await node.agent.restart();
      await detach(pod, empty);
    }));
});

describe("the NIC is left to its main plugin", () => {
  it("of a pod with another link", () =>
    node.withPod("other", async (pod) => {
      await pod.attach(NETWORK);
      await pod.netns.ip("link add other0 type veth peer name other1");
      expect(await endCoordination(pod)).toEqual(expect.arrayContaining(["eth0", "other0"]));
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

it("that goes from a running pod is named by the agent, one that goes later as well", () =>
  node.withPod("gone", (gone) =>
    node.withPod("later", async (later) => {
      for (const [name, pod] of Object.entries({ gone, later })) {
        await pod.attach(NETWORK);
        await pod.netns.ip("link delete eth0");
        await node.netns.ip("link add other0 type veth peer name other1");
        await node.netns.ip("link delete other0");
        await until(`the log names ${name}`, () => node.agent.stderr().includes(`eth0 of shop/${name}.`));
      }
      await Promise.all([gone, later].map((pod) => pod.detach(NETWORK)));
    }),
  ));

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
