/** State of running pods on the node that other software removes is restored without an ADD, and reported once. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { nameVeth } from "../../host/coordinator/plan/names.ts";
import { type ChainNode, coordinate, ENTRY, makeChainNode } from "../lab/netns/coordinator.ts";
import type { LabPod } from "../lab/netns/world.ts";
import { readNetworkState } from "../lab/network-state.ts";
import { eventually, SOON_MS } from "../lab/waiting.ts";

const NETWORK = `nr${process.pid}`;

let node: ChainNode;

beforeAll(async () => {
  node = await makeChainNode("nr");
  await node.begin(NETWORK);
});

afterAll(() => node.delete());

/** The line of the agent's log, as often as it was written. */
function repairs(): string[] {
  return node.agent.stderr().match(/.*had removed of the node's network.*/g) ?? [];
}

async function reaches(pod: LabPod): Promise<boolean> {
  const pings = await Promise.all(
    ([4, 6] as const).map((family) => node.netns.exec(["ping", "-c1", "-W1", pod.address(family)])),
  );
  return pings.every(({ exitCode }) => exitCode === 0);
}

const pairOf = (pod: LabPod): string => nameVeth(pod.containerId).host.name;

/**
 * All of the node's network that the agent maintains, and the settings of the pod's pair; objects made anew have other
 * handles.
 */
async function nodeSide(pod: LabPod): Promise<string> {
  const lines = await readNetworkState(node.netns, { neighbours: "permanent", sysctls: false });
  const keys = ["4.conf.$.rp_filter", "4.conf.$.forwarding", "6.conf.$.disable_ipv6"];
  const { stdout } = await node.netns.exec(["sysctl", ...keys.map((key) => `net.ipv${key.replace("$", pairOf(pod))}`)]);
  return [...lines, stdout].join("\n").replace(/"handle": \d+/g, "");
}

/** Calls `remove`; the node must then be as it was, and reach the pod. */
async function expectRepair(pod: LabPod, remove: () => Promise<unknown>): Promise<void> {
  expect(await reaches(pod)).toBe(true);
  const before = await nodeSide(pod);
  await remove();
  await expect.poll(() => nodeSide(pod), { timeout: SOON_MS }).toBe(before);
  expect(await reaches(pod)).toBe(true);
}

const run = (words: string) => async () => {
  const { exitCode, stderr } = await node.netns.exec(["sh", "-ec", words]);
  expect({ words, exitCode, stderr }).toEqual({ words, exitCode: 0, stderr: "" });
};

/** Within this the pauses between repairs have grown, and one of them is over. */
const FIGHT_MS = 30_000;

describe("of a running pod", () => {
  it.each([
    [
      "rules, routes and neighbours",
      () =>
        "for f in -4 -6; do ip $f rule del pref 900; ip $f route flush table 500; ip $f neigh flush all nud permanent; done",
    ],
    [
      "neighbours that a packet asks for at once",
      (pod: LabPod) =>
        `for f in -4 -6; do ip $f neigh flush all nud permanent; done; ping -c1 -W1 ${pod.address(6)} > /dev/null || :`,
    ],
    ["the whole ruleset", () => "nft flush ruleset"],
    ["the rules of the table", () => "nft flush table inet berth"],
    ["the table that is dormant", () => "nft add table inet berth '{ flags dormant; }'"],
    ["a chain that drops by default", () => "nft chain inet berth services '{ policy drop; }'"],
    ["IPv6 of the pair", (pod: LabPod) => `sysctl -qw net.ipv6.conf.${pairOf(pod)}.disable_ipv6=1`],
    ["the pair that is down", (pod: LabPod) => `ip link set ${pairOf(pod)} down`],
  ])("restores %s", (_, command) =>
    node.withPod("one", async (pod) => {
      await node.agent.restart();
      await pod.attach(NETWORK);
      const told = repairs().length;
      await expectRepair(pod, run(command(pod)));
      expect(repairs()).toHaveLength(told + 1);
      await pod.check(NETWORK);
      await pod.detach(NETWORK);
    }),
  );

  it("restores the table that goes as soon as the first pod has brought it", () =>
    node.withPod("first", async (pod) => {
      await node.agent.restart();
      await sleep(2_000); // the comparison at the start of the agent is over
      await pod.attach(NETWORK);
      await run("nft delete table inet berth")();
      const tables = async (): Promise<string> => (await node.netns.exec(["nft", "list", "tables"])).stdout;
      await expect.poll(tables, { timeout: SOON_MS }).toBe("table inet berth\n");
      await pod.detach(NETWORK);
    }));

  it("restores settings of the pair, which systemd-sysctl writes for each new link, and only counts that", () =>
    node.withPod("setting", async (pod) => {
      await pod.attach(NETWORK);
      const told = repairs();
      for (const setting of ["rp_filter=1", "forwarding=0"])
        await expectRepair(pod, run(`sysctl -qw net.ipv4.conf.${pairOf(pod)}.${setting}`));
      expect((await node.agent.request("/metrics")).body).toMatch(/berth_node_repairs_total\{what="sysctl"\} [1-9]/);
      expect(repairs()).toEqual(told);
      await pod.detach(NETWORK);
    }));

  it("restores at its start objects that were removed while it was stopped", () =>
    node.withPod("stopped", async (pod) => {
      await pod.attach(NETWORK);
      await expectRepair(pod, async () => {
        await node.agent.stop();
        await run("ip rule del pref 900; ip route flush table 500; nft flush ruleset")();
        await node.agent.start();
      });
      await pod.detach(NETWORK);
    }));

  it("names a pair that is renamed or deleted until it is made again, also after a restart", () =>
    node.withPod("cut", async (pod) => {
      await pod.attach(NETWORK);
      const problems = async () => (await node.agent.get("/v1/health")).problems.join();
      const rename = run(`ip link set ${pairOf(pod)} down name other0; ip link set other0 up`);
      const back = run(`ip link set other0 down name ${pairOf(pod)}`);
      for (const act of [rename, back, rename, run("ip link del other0"), () => node.agent.restart()]) {
        await act();
        const wanted = act === back ? /^$/ : new RegExp(`renamed its pair "${pairOf(pod)}", .* if it is deleted run`);
        await expect.poll(problems, { timeout: SOON_MS }).toMatch(wanted);
      }
      await coordinate(pod, "ADD", NETWORK, { entry: ENTRY });
      await expect.poll(problems, { timeout: SOON_MS }).toBe("");
      expect(await reaches(pod)).toBe(true);
      await run(`ip link del ${pairOf(pod)}`)();
      await pod.detach(NETWORK);
      await expect.poll(problems, { timeout: SOON_MS }).toBe("");
    }));

  it("gives the node no route to an address that the pod has given itself", () =>
    node.withPod("thief", async (pod) => {
      await pod.attach(NETWORK);
      await pod.netns.ip("addr add 10.6.200.1/16 dev eth0");
      await expectRepair(pod, run("ip route flush table 500; ip neigh flush all nud permanent"));
      expect(await node.netns.ip("route show table 500")).not.toContain("10.6.200.1");
      await pod.detach(NETWORK);
    }));

  it("backs off from a program that removes it again and again, and says that pods are cut off meanwhile", () =>
    node.withPod("fight", async (pod) => {
      await node.agent.restart();
      await pod.attach(NETWORK);
      await expectRepair(pod, run("nft flush ruleset"));
      const told = repairs();
      expect(told.at(-1)).toContain("docs/host.html#nftablesservice");
      const ready = () => node.agent.get("/v1/health").then(() => "ready", String);
      const fight = async (): Promise<string> => {
        await node.netns.exec(["sh", "-c", "nft list table inet berth && nft flush ruleset"]);
        return ready();
      };
      const health = await eventually(fight, (answer) => answer !== "ready", FIGHT_MS);
      expect(health).toMatch(/503.*Pods are cut off.*[^ ]*nft[^ ]* removed.* times.*docs\/host\.html#nftablesservice/s);
      const metrics = (await node.agent.request("/metrics")).body;
      expect(metrics).toContain("berth_node_cut_off 1");
      expect(metrics).toMatch(/berth_node_repairs_total\{what="nftables"\} ([9]|1[0-9])\n/);
      // The pod's own calls are served all the same.
      await pod.detach(NETWORK);
      expect(repairs()).toEqual(told);
      // The table serves all pods, and comes back when the pause is over.
      await expect.poll(ready, { timeout: FIGHT_MS }).toBe("ready");
      // Meanwhile pods are not told of the node's addresses either.
      await node.netns.ip("addr add 10.6.0.250/32 dev uplink");
      await expect.poll(ready, { timeout: SOON_MS, interval: 100 }).toContain("pods are told of the node's addresses");
      await expect.poll(ready, { timeout: FIGHT_MS }).toBe("ready");
      await node.netns.ip("addr del 10.6.0.250/32 dev uplink");
    }));
});

it("pods that come and go are no reason to repair anything", async () => {
  await node.agent.restart();
  for (let round = 0; round < 5; round++) {
    await node.withPod("busy", async (pod) => {
      await pod.attach(NETWORK);
      await pod.detach(NETWORK);
    });
  }
  expect((await node.agent.request("/metrics")).body).not.toMatch(/berth_node_repairs_total\{.*\} [1-9]/);
});
