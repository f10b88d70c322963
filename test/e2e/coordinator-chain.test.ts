import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runPlugin } from "../lab/cnitool.ts";
import { ALL_VERSIONS } from "../lab/manifests.ts";
import {
  type ChainNode,
  coordinate,
  dumpNetns,
  ENTRY,
  expectNetns,
  MACVLAN,
  macvlanWith,
  makeChainNode,
  pairsOf,
} from "../lab/netns/coordinator.ts";
import type { LabPod } from "../lab/netns/world.ts";
import { inParallel } from "../lab/parallel.ts";
import { gateOrLong, ofRun } from "../world/long-cases.ts";

const NETWORK = `cc${process.pid}`;
const OTHER = `${NETWORK}-other`;

let node: ChainNode;
/** After the first pod came and went: the rule and the table that all pods share are there, and stay. */
let start: readonly string[];

beforeAll(async () => {
  node = await makeChainNode("cc");
  await node.define(OTHER, [MACVLAN, ENTRY]);
  start = await node.begin(NETWORK);
});

afterAll(() => node.delete());

it("the rule and the table that all pods share stay after the first pod, and nothing else", async () => {
  const { netns } = node;
  expect(await pairsOf(node.netns)).toEqual([]);
  for (const family of [4, 6]) {
    expect(await netns.ip(`-${family} route show table all proto 98`)).toBe("");
    expect((await netns.ip(`-${family} rule show`)).match(/.*proto 98.*/g)).toEqual([
      expect.stringMatching(/^900:\s+from all lookup 500 proto 98/),
    ]);
  }
  expect(await netns.ip("neigh show nud permanent")).toBe("");
  expect((await netns.exec(["nft", "list", "tables"])).stdout).toBe("table inet berth\n");
});

describe.each(ofRun(ALL_VERSIONS, (version) => ["0.3.0", "1.1.0"].includes(version)))("CNI %s", (version) => {
  it("ADD, CHECK, DEL, DEL, and all of it again in the same namespace", async () => {
    const network = `${NETWORK}-${version}`;
    await node.define(network, [MACVLAN, ENTRY], version);
    await node.withPod(`v${version.replaceAll(".", "")}`, async (pod) => {
      const before = await dumpNetns(pod.netns);
      for (let round = 0; round < 2; round++) {
        expect((await pod.attach(network)).ips).toHaveLength(2);
        expect(await pairsOf(node.netns)).toHaveLength(1);
        if (version >= "0.4.0") await pod.check(network);
        await pod.detach(network);
        await pod.detach(network);
        await node.expectState(start);
      }
      await expectNetns(pod.netns, before);
    });
  });
});

describe("out of order", () => {
  it("DEL before any ADD succeeds and changes nothing", () =>
    node.withPod("early", async (pod) => {
      await pod.detach(NETWORK);
      await coordinate(pod, "DEL", NETWORK, { entry: ENTRY });
      await node.expectState(start);
    }));

  it("the coordinator's ADD twice changes nothing the second time, and CHECK passes", () =>
    node.withPod("twice", async (pod) => {
      await pod.attach(NETWORK);
      const [host, inside] = [await node.dump(), await dumpNetns(pod.netns)];
      await coordinate(pod, "ADD", NETWORK, { entry: ENTRY });
      await coordinate(pod, "CHECK", NETWORK, { entry: ENTRY });
      expect(await node.dump()).toEqual(host);
      expect(await dumpNetns(pod.netns)).toEqual(inside);
      await pod.detach(NETWORK);
      await node.expectState(start);
    }));

  it("the coordinator's DEL after the main plugin has deleted the NIC", () =>
    node.withPod("late", async (pod) => {
      await pod.attach(NETWORK);
      await pod.netns.ip("link delete eth0");
      await coordinate(pod, "DEL", NETWORK, { entry: ENTRY });
      await node.expectState(start);
      await pod.detach(NETWORK);
      await node.expectState(start);
    }));

  it("DEL of an old sandbox after the new one of the same pod, with the same addresses, leaves the new one alone", async () => {
    const network = `${NETWORK}-single`;
    const sameUid = { name: "web-0", uid: "uid-1" };
    await node.define(network, [macvlanWith("one"), ENTRY]);
    const [before, after] = [await node.addPod(node, "old", sameUid), await node.addPod(node, "new", sameUid)];
    const first = await before.attach(network);
    expect((await after.attach(network)).ips).toEqual(first.ips);
    expect(await pairsOf(node.netns)).toHaveLength(2);
    await before.detach(network);
    const pairs = await pairsOf(node.netns);
    expect(pairs).toHaveLength(1);
    for (const family of [4, 6] as const)
      expect(await node.netns.ip(`-${family} route show table 500`)).toContain(
        `${after.address(family)} dev ${pairs[0]} `,
      );
    await after.check(network);
    await after.detach(network);
    for (const pod of [before, after]) await pod.netns.delete();
    await node.expectState(start);
  });
});

describe("a definition with an IPAM of its own", () => {
  const STATIC = `${NETWORK}-static`;
  const defineStatic = (address: string, cniVersion?: string) => {
    const addresses = [{ address: `${address}/${address.includes(":") ? 64 : 24}` }];
    return node.define(STATIC, [{ ...MACVLAN, ipam: { type: "static", addresses } }, ENTRY], cniVersion);
  };
  /** Returns the node's route to it. */
  const wayTo = (address: string) => node.netns.ip(`route get ${address}`);
  it("does not get the node's traffic to the API server's service", () =>
    node.withPod("thief", async (pod) => {
      const address = "10.96.0.1";
      await defineStatic(address);
      const before = await wayTo(address);
      const refused = await pod.call("add", STATIC);
      expect(`${refused.exitCode} ${refused.text}${refused.stderr}`).toContain(
        `Interface "eth0" has address ${address}, which Berth did not allocate`,
      );
      expect(refused.text + refused.stderr).toContain(
        'add the network of the address to "hostRouteCIDR" of vendor-conf',
      );
      expect(await wayTo(address)).toBe(before);
      await pod.detach(STATIC);
      await node.expectState(start);
    }));

  it("is served in the networks that the administrator allows, and checked after these are taken away", () =>
    node.withPod("allowed", async (pod) => {
      await defineStatic("10.6.77.9");
      await node.configure({ hostRouteCIDR: ["10.6.77.0/24", "fd00:77::/64"] });
      await pod.attach(STATIC);
      expect(await wayTo("10.6.77.9")).toMatch(/ dev veth[0-9a-f]{11} table 500 /);
      await node.configure({});
      await pod.check(STATIC);
      await pod.detach(STATIC);
      await node.expectState(start);
    }));

  it("does not bring further addresses with one of Berth's", () =>
    node.withPod("more", async (pod) => {
      await node.define(STATIC, [MACVLAN]);
      await pod.attach(STATIC);
      const own = pod.address(4);
      const prefix = pod.address(6).replace(/::.*/, "");
      await pod.netns.ip("addr add 10.6.0.3/16 dev eth0");
      await pod.netns.ip(`addr add ${prefix}::3/64 dev eth0 nodad`);
      // As a router's advertisement makes them: of the subnet of an address that the pod was given, and of another.
      await pod.netns.ip(`addr add ${prefix}::aa/64 dev eth0 nodad valid_lft 1000 preferred_lft 500`);
      await pod.netns.ip("addr add fd00:99::aa/64 dev eth0 nodad valid_lft 1000 preferred_lft 500");
      await coordinate(pod, "ADD", STATIC, { entry: ENTRY });
      for (const address of [own, pod.address(6), `${prefix}::aa`]) expect(await wayTo(address)).toContain("table 500");
      for (const address of ["10.6.0.3", `${prefix}::3`, "fd00:99::aa"])
        expect(await wayTo(address)).not.toContain("table 500");
      await coordinate(pod, "CHECK", STATIC, { entry: ENTRY });
      await coordinate(pod, "DEL", STATIC, { entry: ENTRY });
      await pod.detach(STATIC);
      await node.expectState(start);
    }));
});

describe("the pod's namespace is gone", () => {
  it("deleted before DEL", () =>
    node.withPod("gone", async (pod) => {
      await pod.attach(NETWORK);
      await pod.netns.delete();
      await pod.detach(NETWORK);
      expect(await pairsOf(node.netns)).toEqual([]);
      await node.expectState(start);
      await pod.detach(NETWORK);
      await node.expectState(start);
      const allocations: { state: string }[] = await node.agent.get("/v1/allocations");
      expect(allocations.filter(({ state }) => state === "Bound")).toEqual([]);
    }));

  /** As host-device: its DEL fails without the namespace, and never calls its IPAM plugin. */
  it("and the main plugin cannot release the addresses: the coordinator's DEL does", async () => {
    const heldBy = async ({ containerId }: LabPod) => {
      const rows: { state: string; containerId: string }[] = await node.agent.get("/v1/allocations");
      return rows.filter((row) => row.containerId === containerId).map(({ state }) => state);
    };
    for (const isNamed of [true, false])
      await node.withPod(`alone${Number(isNamed)}`, async (pod) => {
        await pod.attach(NETWORK);
        await coordinate(pod, "DEL", NETWORK, { entry: ENTRY });
        expect(await heldBy(pod)).toEqual(["Bound", "Bound"]);
        await pod.netns.delete();
        await coordinate(pod, "DEL", NETWORK, { entry: ENTRY, ...(isNamed ? {} : { netns: "" }) });
        expect(await heldBy(pod)).not.toContain("Bound");
        await pod.detach(NETWORK);
        await node.expectState(start);
      });
  });

  it("its path leads to another pod's by now: DEL leaves that one alone", () =>
    node.withPod("user", async (pod) => {
      await pod.attach(NETWORK);
      const [host, inside] = [await node.dump(), await dumpNetns(pod.netns)];
      await node.withPod("reused", async (old) => {
        await old.attach(NETWORK);
        await old.netns.delete();
        await coordinate(old, "DEL", NETWORK, { entry: ENTRY, netns: pod.netns.path });
        await node.expectState(host);
        expect(await dumpNetns(pod.netns)).toEqual(inside);
        await pod.check(NETWORK);
        await old.detach(NETWORK);
      });
      await pod.detach(NETWORK);
      await node.expectState(start);
    }));
});

it("GC removes the pairs of dead containers of its network, and none of a container that has left it for another", async () => {
  const add = (name: string) => node.addPod(node, name);
  const pods = await Promise.all([add("alive"), add("dead"), add("foreign"), add("left")]);
  const [alive, dead, foreign, left] = pods;
  for (const pod of [alive, dead, left]) await pod.attach(NETWORK);
  await foreign.attach(OTHER);
  await left.attach(OTHER, "net1");
  await left.detach(NETWORK);
  const attachments = [{ containerID: alive.containerId, ifname: "eth0" }];
  const stdin = { cniVersion: "1.1.0", name: NETWORK, "cni.dev/valid-attachments": attachments, ...ENTRY };
  const { agent, netns } = node;
  const outcome = await runPlugin({ plugin: "coordinator", command: "GC", stdin, env: agent.env, node: netns });
  expect(outcome.exitCode, outcome.text).toBe(0);
  expect(await pairsOf(node.netns)).toHaveLength(3);
  await left.check(OTHER, "net1");
  expect(await dead.netns.ip("-brief link show type veth")).toBe("");
  expect(await netns.ip("route show table 500")).not.toContain(dead.address(4));
  await alive.check(NETWORK);
  await foreign.check(OTHER);
  for (const pod of pods) await pod.detach(pod === foreign ? OTHER : NETWORK);
  await left.detach(OTHER, "net1");
  for (const pod of pods) await pod.netns.delete();
  await node.expectState(start);
});

/** In the long run as many as a node has. */
const MANY = gateOrLong(12, 100);
const AT_ONCE = 10;

describe(`${MANY} pods, ${AT_ONCE} at a time`, () => {
  it("up and down leave the node byte-equal to its state after a first pod came and went", async () => {
    const pods: LabPod[] = [];
    for (let index = 0; index < MANY; index++) pods.push(await node.addPod(node, `many${index}`));
    const begunMs = performance.now();
    await inParallel(pods, AT_ONCE, (pod) => pod.attach(NETWORK));
    const upMs = performance.now() - begunMs;
    expect(await pairsOf(node.netns)).toHaveLength(MANY);
    for (const family of [4, 6]) {
      const routes = await node.netns.ipJson<{ dst: string }>(`-${family} route show table 500`);
      expect(new Set(routes.map(({ dst }) => dst)).size).toBe(MANY);
    }
    expect(await node.netns.ipJson("neigh show nud permanent")).toHaveLength(2 * MANY);
    await inParallel(pods, AT_ONCE, (pod) => pod.detach(NETWORK));
    await node.expectState(start);
    console.info(`${MANY} chains, ${AT_ONCE} at a time: up in ${upMs.toFixed(0)} ms`);
    for (const pod of pods) await pod.netns.delete();
  });
});
