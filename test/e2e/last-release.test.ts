/**
 * The last release and this tree on one node: an upgrade, plugins of one with the agent of the other, and the way back.
 */
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { FAMILIES } from "../../host/net/ip.ts";
import { lastReleaseDir, root } from "../../scripts/setup/paths.mjs";
import { lastRelease, readVersion } from "../../scripts/setup/version.mjs";
import { segmentAddress, segmentSubnet } from "../lab/addressing.ts";
import { berthBin, referenceBin } from "../lab/cnitool.ts";
import { runCommand } from "../lab/command.ts";
import { ipPool, vendorConf } from "../lab/manifests.ts";
import { macvlanOn } from "../lab/netns/coordinator.ts";
import { type LabNode, type LabPod, NetnsWorld, usageOf } from "../lab/netns/world.ts";
import { eventually, PATIENCE } from "../lab/waiting.ts";

const LAST_DIST = join(lastReleaseDir(), "dist");
const LAST_PATH = [join(LAST_DIST, "bin"), referenceBin];
const NETWORK = "last-release";

let world: NetnsWorld & { readonly node: LabNode };

beforeAll(async () => {
  world = await NetnsWorld.build("lr", async (empty) => {
    const fabric = await empty.addFabric();
    const pools = FAMILIES.map((family) => {
      const spec = {
        gateway: segmentAddress(0, 1, family),
        ips: [50, 51, 52, 53].map((host) => segmentAddress(0, host, family)),
      };
      return [`v${family}.yaml`, ipPool(`seg0-v${family}`, segmentSubnet(0, family), spec)];
    });
    const settings = vendorConf({ enableIPv6: true, allocationCooldown: "1s" });
    const config = { "conf.yaml": settings, ...Object.fromEntries(pools) };
    const node = await empty.addNode(fabric.node1, config, { dist: LAST_DIST });
    return Object.assign(empty, { node });
  });
  await world.define(NETWORK, [macvlanOn(0), { type: "coordinator" }]);
});
afterAll(() => world?.delete());

async function runAgent(dist: string): Promise<void> {
  await world.node.agent.stop();
  await world.node.agent.start({}, dist);
  const statusOf = async () => (await world.node.agent.request("/v1/health")).status;
  await expect.poll(statusOf, PATIENCE).toBe(200);
}

async function expectReachable(...pods: readonly LabPod[]): Promise<void> {
  for (const pod of pods) {
    for (const family of FAMILIES) {
      const ping = () => runCommand(world.node.netns.enter(["ping", "-c1", "-W1", pod.address(family)]));
      const { exitCode, stdout } = await eventually(ping, (answer) => answer.exitCode === 0);
      expect(exitCode, stdout).toBe(0);
    }
  }
}

const versionOf = async (): Promise<string> => (await world.node.agent.get("/v1/health")).version;
const bound = async (): Promise<string[]> => ((await usageOf(world.node.agent)).Bound ?? []).sort();

it("pods of the last release keep addresses and traffic through an upgrade and a rollback, and both versions' plugins serve", async () => {
  const { node } = world;
  expect(await versionOf()).toBe(lastRelease.version);
  const before = await world.addPod(node, "before", { cniPath: LAST_PATH });
  const left = await world.addPod(node, "left", { cniPath: LAST_PATH });
  await before.attach(NETWORK);
  await left.attach(NETWORK);
  const addresses = await bound();
  expect(addresses).toHaveLength(4);

  await runAgent(join(root, "dist"));
  expect(await versionOf()).toBe(readVersion());
  expect(await bound()).toEqual(addresses);
  await expectReachable(before, left);
  // CRI-O calls it, and would end the pod.
  await before.check(NETWORK);
  // By the plugins of the last release, as a host has them until install.sh has replaced them.
  const meanwhile = await world.addPod(node, "meanwhile", { cniPath: LAST_PATH });
  await meanwhile.attach(NETWORK);
  const after = await world.addPod(node, "after", { cniPath: [berthBin, referenceBin] });
  await after.attach(NETWORK);
  await after.check(NETWORK);
  await expectReachable(before, left, meanwhile, after);
  await left.detach(NETWORK);
  await meanwhile.detach(NETWORK);

  await runAgent(LAST_DIST);
  expect(await versionOf()).toBe(lastRelease.version);
  expect((await bound()).filter((address) => addresses.includes(address))).toContain(before.address(4));
  await expectReachable(before, after);
  await after.detach(NETWORK);
  await before.detach(NETWORK);
  expect(await bound()).toEqual([]);
});
