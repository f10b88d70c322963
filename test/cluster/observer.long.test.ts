/**
 * Findings of the observer about built agents with NICs on a wire: none about pods that come and go, and known faults
 * of today's product, each by its name. A row whose fault is gone says "nothing".
 */
import { readFileSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startEpoch } from "../../host/controller/epoch/epoch-controller.ts";
import { startAgent } from "../lab/agent.ts";
import { startControllerProcess } from "../lab/cluster/controller-process.ts";
import { type LabPod, NODES, type OwnerReference } from "../lab/cluster/objects.ts";
import { requestNodeToken } from "../lab/cluster/rights.ts";
import { CONFLIST } from "../lab/cluster/runtime.ts";
import {
  applyWorkloadKinds,
  INSTANCES,
  instance,
  MACHINES,
  machine,
  SETS,
  statefulSet,
} from "../lab/cluster/workload-kinds.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import { startDaemon } from "../lab/daemon.ts";
import { createNetns } from "../lab/netns.ts";
import type { Finding } from "../lab/observer/segment-checker.ts";
import { until } from "../lab/waiting.ts";
import { borrowPlane } from "./borrow-plane.ts";
import { attach, endPod, objectOf, pause, reuseAddress, startPod } from "./fault-questions.ts";

/** Grace of the observer: shorter than usual, for no test here deletes records by hand. */
const GRACE_MS = 3_000;
/** A machine that is taken for silent too early, an address that goes on, and the observer's own time. */
const NOTICED_MS = 45_000;
/** Agents have seen an owner after so long. */
const SEEN_MS = 2_000;
/** A successor that is told to wait gives up after so long. */
const PATIENCE_MS = 20_000;
/** A NIC comes so long after the answer of its IPAM plugin. */
const LATE_MS = 7_000;

let world: World;
beforeAll(async () => {
  // Before the agents, which need a while to notice a kind that comes later.
  const startPlane = async () => {
    const plane = await borrowPlane();
    await applyWorkloadKinds(plane.client);
    return plane;
  };
  world = await startWorld({
    ...{ startPlane, nodes: ["n1", "n2"], isObserved: true, graceMs: GRACE_MS },
    pools: [{ name: "blue", subnet: "10.6.0.0/24", ips: ["10.6.0.1-10.6.0.40"] }],
  });
  for (const { name } of world.nodes()) await world.setNode(name, "True");
  // A registry that goes back begins an epoch, which the controller settles.
  await world.lead({ epoch: startEpoch });
});
afterAll(() => world?.stop());

/** An ADD in a sandbox that the test knows. */
async function add(pod: LabPod, options: { netns?: string; isPlugged?: boolean } = {}) {
  const { runtime } = world.node(pod.node);
  const sandbox = { pod, containerId: runtime.newContainerId() };
  const { exitCode, stdout, text } = await runtime.add(pod, sandbox.containerId, options);
  if (exitCode !== 0) throw new Error(`${pod.name} was refused: ${text}`);
  await world.setRunning(pod);
  const address: string = stdout.ips[0].address.replace(/\/.*/, "");
  return { address, sandbox };
}

/** Returns what the observer has found of the address of that kind; what else it finds is not asked. */
async function find(address: string, kind: Finding["kind"]): Promise<Finding | undefined> {
  const isWanted = (finding: Finding): boolean => finding.address === address && finding.kind === kind;
  const found = await world.wire.observer.until(isWanted, NOTICED_MS).catch((error: Error) => error);
  console.log(found instanceof Error ? found.message : found.text);
  return found instanceof Error ? undefined : found;
}

function member(set: OwnerReference, node: string): Promise<LabPod> {
  return world.createPod({ name: `${set.name}-0`, node, owner: set });
}

function launcher(name: string, node: string, uid: string): Promise<LabPod> {
  const labels = { "kubevirt.io": "virt-launcher", "vm.kubevirt.io/name": "vm" };
  const owner = { apiVersion: "kubevirt.io/v1", kind: "VirtualMachineInstance", name: "vm", uid };
  return world.createPod({ name, node, labels, owner });
}

/** Its address is its owner's from now on. */
async function liveOnce(pod: LabPod): Promise<void> {
  const { address } = await attach(world, world.node(pod.node), pod);
  await endPod(world, pod);
  const isKept = async () => (await objectOf(world, address))?.spec.state === "Kept";
  await until("the owner retains the address", isKept);
}

/** The pod's machine takes the address in: it is on no link of the sandbox. */
async function hideInMachine(sandbox: Parameters<World["wire"]["exec"]>[0], address: string): Promise<void> {
  const guest = await createNetns(`bwg-${process.pid}`);
  world.defer(() => guest.delete());
  for (const line of [
    "addr flush dev eth0",
    "link add k6t type bridge",
    "link set eth0 master k6t",
    `link add tap0 type veth peer name eth0 netns ${guest.name}`,
    "link set tap0 master k6t up",
    "link set k6t up",
  ])
    await world.wire.exec(sandbox, ["ip", ...line.split(" ")]);
  await guest.ip(`addr add ${address}/8 dev eth0`);
  await guest.ip("link set eth0 up");
}

it("of pods that come, live and go it says nothing", async () => {
  for (let round = 0; round < 3; round++) {
    const pods = await Promise.all(["n1", "n2"].map((node) => startPod(world, node, `calm-${round}-${node}`)));
    await pause(1_000);
    await Promise.all(pods.map((pod) => endPod(world, pod)));
  }
  const pod = await startPod(world, "n1", "calm");
  await pause(GRACE_MS);
  await endPod(world, pod);
  expect(await world.wire.observer.take()).toEqual([]);
});

interface Scene {
  readonly name: string;
  /** The fault of the product; a scene that it plays right has `isExpected: false`. */
  readonly finding: Finding["kind"];
  readonly isExpected: boolean;
  /** Returns the address, when all has been done that the observer shall notice. */
  play(): Promise<string>;
}

const SCENES: readonly Scene[] = [
  {
    name: "a renamed NIC",
    finding: "unrecorded",
    isExpected: false,
    play: async () => {
      const pod = await world.createPod({ name: "renamed", node: "n1" });
      const { address, sandbox } = await add(pod);
      for (const line of ["link set eth0 down", "link set eth0 name uplink", "link set uplink up"])
        await world.wire.exec(sandbox, ["ip", ...line.split(" ")]);
      await world.deletePod(pod);
      return address;
    },
  },
  {
    name: "a machine behind a path by number",
    finding: "duplicate",
    isExpected: false,
    play: async () => {
      const { uid } = (await world.client.create(MACHINES, machine("vm"))).metadata;
      const run = async (): Promise<string> => {
        await world.client.delete(`${INSTANCES}/vm`).catch(() => {});
        return (await world.client.create(INSTANCES, instance("vm", uid))).metadata.uid;
      };
      const firstUid = await run();
      await pause(SEEN_MS);
      await liveOnce(await launcher("launcher", "n1", firstUid));
      const pod = await launcher("launcher-a", "n1", await run());
      const { runtime } = world.node("n1");
      const sandbox = { pod, containerId: runtime.newContainerId() };
      await world.wire.sandbox(sandbox);
      const process = await startDaemon("launcher", [
        ...["nsenter", `--net=${world.wire.pathOf(sandbox)}`, "sleep", "600"],
      ]);
      world.defer(() => process.kill());
      const outcome = await runtime.add(pod, sandbox.containerId, { netns: `/proc/${process.pid}/ns/net` });
      const address: string = outcome.stdout.ips[0].address.replace(/\/.*/, "");
      await hideInMachine(sandbox, address);
      await world.setRunning(pod);
      await world.deletePod(pod);
      const next = await launcher("launcher-b", "n2", await run());
      await world.node("n2").runtime.attach(next, { limitMs: PATIENCE_MS });
      return address;
    },
  },
  {
    name: "an address that comes up late",
    finding: "duplicate",
    isExpected: false,
    play: async () => {
      const { uid } = (await world.client.create(SETS, statefulSet("late", 1))).metadata;
      const set = { apiVersion: "apps/v1", kind: "StatefulSet", name: "late", uid };
      await pause(SEEN_MS);
      await liveOnce(await member(set, "n1"));
      const pod = await member(set, "n1");
      const { address, sandbox } = await add(pod, { isPlugged: false });
      const startMs = performance.now();
      await world.deletePod(pod);
      const next = world.node("n2").runtime.attach(await member(set, "n2"), { limitMs: PATIENCE_MS });
      await pause(LATE_MS - (performance.now() - startMs));
      await world.wire.plug({ ...sandbox, ifName: "eth0" }, [address]);
      await next;
      return address;
    },
  },
  {
    name: "a registry that went back",
    finding: "duplicate",
    isExpected: false,
    play: async () => {
      const { before, copy } = await reuseAddress(world);
      await world.plane.restore(copy);
      await world.node("n1").runtime.attach(before, { limitMs: PATIENCE_MS });
      return "10.7.0.7";
    },
  },
  {
    name: "a bystander with an orphan's address",
    finding: "robbed",
    isExpected: false,
    play: async () => {
      const { uid } = (await world.client.create(SETS, statefulSet("bare", 1))).metadata;
      const set = { apiVersion: "apps/v1", kind: "StatefulSet", name: "bare", uid };
      await pause(SEEN_MS);
      const pod = await member(set, "n1");
      const { address, sandbox } = await add(pod);
      const { agent } = world.node("n1");
      await agent.kill("SIGKILL");
      await rm(agent.state, { recursive: true });
      await mkdir(agent.state);
      await agent.start();
      await world.wire.addForeign("n1", "bystander", address);
      const isTakenIn = async () => JSON.stringify(await agent.get("/v1/allocations")).includes(`"${address}"`);
      await until("the agent knows the address again", isTakenIn);
      await world.wire.unplug({ ...sandbox, ifName: "eth0" });
      await world.deletePod(pod);
      await world.node("n2").runtime.attach(await member(set, "n2"), { limitMs: PATIENCE_MS });
      return address;
    },
  },
  // The last, for its node is not the same afterwards.
  {
    name: "another machine under a node's name",
    finding: "unrecorded",
    isExpected: false,
    play: async () => {
      const controller = await startControllerProcess({ kubeconfig: await world.controllerKubeconfig(), name: "n" });
      world.defer(() => controller.kill());
      await world.setNode("n2", "True");
      const pod = await startPod(world, "n1", "cut-off");
      const [address = ""] = world.ledger.find(pod, "eth0")?.addresses ?? [];
      const { proxy } = world.node("n1");
      proxy.refuse();
      await world.setNode("n1", "Unknown");
      await world.deletePod(pod);
      const isLost = async () => (await objectOf(world, address))?.spec.state === "Quarantined";
      await until("the node is taken for lost", isLost, NOTICED_MS);
      // Both agents are on this machine, so the Node says which one it is.
      const bootID = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
      await world.setNode("n1", "True");
      await world.client.patch(`${NODES}/n1/status`, {
        status: { nodeInfo: { machineID: "other", systemUUID: "", bootID } },
      });
      const token = await requestNodeToken(world.client, "n1");
      const kubeconfig = await world.plane.writeKubeconfig("replacement.kubeconfig", { token });
      const wrapper = await world.wire.wrapper("replacement");
      const cniConf = { "10-underlay.conflist": CONFLIST };
      const agent = await startAgent({ kubeconfig, wrapper, cniConf, args: ["--node", "n1"] });
      world.defer(() => agent.delete());
      return address;
    },
  },
];

/** No pod is left, whatever the scene has done to it. */
async function clear(): Promise<void> {
  for (const { pod } of world.ledger.live()) await world.node(pod.node).runtime.detach(pod);
  await world.client.delete("/api/v1/namespaces/shop/pods", { gracePeriodSeconds: 0 });
  await pause(GRACE_MS);
  await world.wire.observer.take();
}

/** Where nothing is found, each waits until it would have been. */
const rows = SCENES.map((scene) => [scene.name, scene.finding, scene] as const);
it.each(rows)("%s: %s", { timeout: 240_000 }, async (_, kind, { isExpected, play }) => {
  try {
    const found = await find(await play(), kind);
    expect(found !== undefined).toBe(isExpected);
  } finally {
    await clear();
  }
});
