import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { KubeObject } from "../lab/kube-client.ts";
import type { RealNode } from "../lab/nodes/node.ts";
import { deploymentOf, paths, podOf } from "../lab/nodes/workloads.ts";
import { untilDefined } from "../lab/waiting.ts";
import { itLong, ofRun } from "../world/long-cases.ts";
import { fencingNotes, type OrphanScene, withOrphan } from "./orphan-world.ts";
import { cluster, NAMESPACE, seen } from "./shared-cluster.ts";

const deployments = paths.deployments(NAMESPACE);
const NOTICED_MS = 60_000;
/** Several times the grace, the cooldown and the pause between two sweeps of the lab. */
const WATCHED_MS = 12_000;

let node: RealNode;
beforeAll(async () => {
  node = cluster.node("node2");
});

/** Everything of a pod that must not change while it lives. */
const lifeOf = ({ metadata, spec, status }: KubeObject): unknown => ({
  name: metadata.name,
  uid: metadata.uid,
  node: spec.nodeName,
  address: status.podIP,
  containers: status.containerStatuses.map(({ containerID, restartCount }: KubeObject) => [containerID, restartCount]),
});
const livesOf = (pods: readonly KubeObject[]): unknown[] => pods.map(lifeOf);

async function deploy(name: string, replicas: number, pod: object = {}): Promise<KubeObject[]> {
  await cluster.client.create(deployments, deploymentOf({ name, replicas, pod }));
  return seen.untilReady(name, replicas);
}

async function remove(name: string): Promise<void> {
  await cluster.client.delete(`${deployments}/${name}`, { propagationPolicy: "Background" });
  await seen.untilGone(name);
}

async function untilNode(status: "True" | "Unknown"): Promise<void> {
  const ask = async (): Promise<KubeObject> => {
    const { status } = await cluster.client.get(`/api/v1/nodes/${node.name}`);
    return status.conditions.find(({ type }: KubeObject) => type === "Ready");
  };
  await untilDefined(
    async () => (await ask()).status === status || undefined,
    () => ask().then(JSON.stringify),
    NOTICED_MS,
  );
}

const onNode = { nodeName: "node2" };

describe("pods live on with their addresses, and new ones get theirs, over the restart of", () => {
  let before: KubeObject[];
  beforeAll(async () => {
    before = await deploy("steady", 3, onNode);
  });
  afterAll(async () => {
    await remove("steady");
    await seen.untilReturned();
  });

  const restarts = [
    { what: "a kubelet", restart: () => node.restart("kubelet") },
    { what: "a killed kubelet", restart: () => node.restart("kubelet", "SIGKILL") },
    { what: "a containerd", restart: () => node.restart("containerd") },
    { what: "a killed containerd", restart: () => node.restart("containerd", "SIGKILL") },
    { what: "a killed agent", restart: () => node.restartAgent() },
  ];

  test.each(ofRun(restarts, ({ what }) => what.includes("killed")))("$what", async ({ what, restart }) => {
    await restart();
    const name = what.replaceAll(" ", "-");
    const [later, ...others] = await deploy(name, 2, onNode);
    expect(livesOf(await seen.untilReady("steady", 3))).toEqual(livesOf(before));
    await seen.untilConsistent();
    await seen.reach(later, [...others, ...before]);
    await remove(name);
  });
});

test("node-lost: a killed node's addresses stay its pods', or its own when a pod is forced away, until it is back", async () => {
  const before = await deploy("there", 4, onNode);
  const taken = before.map(addressOf);
  await node.crash();
  await untilNode("Unknown");
  const meanwhile = await deploy("meanwhile", 8, { nodeSelector: { "kubernetes.io/hostname": "node1" } });
  expect(meanwhile.map(addressOf).filter((address) => taken.includes(address))).toEqual([]);
  expect(await statesOf(taken)).toEqual(taken.map(() => "Bound"));

  const [forced, ...others] = before;
  await cluster.client.delete(`${paths.pods(NAMESPACE)}/${forced.metadata.name}`, { gracePeriodSeconds: 0 });
  const isLost = async () => (await statesOf([addressOf(forced)])).includes("Quarantined NodeLost") || undefined;
  await untilDefined(isLost, () => statesOf(taken), NOTICED_MS);
  expect(await statesOf(others.map(addressOf))).toEqual(others.map(() => "Bound"));

  await node.boot();
  await untilNode("True");
  const uids = others.map(({ metadata }) => metadata.uid);
  const isAgain = ({ metadata, status }: KubeObject): boolean =>
    !uids.includes(metadata.uid) || status.containerStatuses[0].restartCount > 0;
  const after = await seen.untilReady("there", 4, isAgain);
  await seen.untilConsistent();
  await seen.reach(meanwhile[0], after);
  await remove("there");
  await remove("meanwhile");
  await seen.untilReturned();
});

itLong(
  "node-lost: a pod that was deleted by force while its kubelet is down keeps its address as long as it has it on its NIC",
  async () => {
    const pods = paths.pods(NAMESPACE);
    await cluster.client.create(pods, podOf({ name: "left", pod: onNode }));
    const [pod] = await seen.untilReady("left", 1);
    const address = addressOf(pod);
    await node.stop("kubelet");
    await cluster.client.delete(`${pods}/left`, { gracePeriodSeconds: 0 });
    await untilNode("Unknown");
    const endMs = performance.now() + WATCHED_MS;
    while (performance.now() < endMs) {
      const { stdout } = await node.execInPod(pod.metadata.uid, ["ip", "-4", "-o", "addr", "show", "eth0"]);
      expect(stdout, "the pod lives").toContain(`inet ${address}/`);
      expect((await statesOf([address]))[0]).toMatch(/^(?:Bound|Quarantined NodeLost)$/);
      await sleep(200);
    }
    await node.start("kubelet");
    await untilNode("True");
    await seen.untilReturned();
  },
);

test.each(ofRun(["berth", "detecting"] as const, (network) => network === "berth"))(
  "retention: a member that is forced away from a hung kubelet is fenced, and its successor has its address (%s)",
  async (network) => {
    await withOrphan({ cluster, seen }, network, async (scene) => {
      scene.node.signal("kubelet", "SIGSTOP");
      try {
        await scene.forceAway();
        const tookMs = await scene.untilSucceeded();
        console.log(`${network}: the successor had its address ${tookMs.toFixed(0)} ms after the forced deletion`);
        const { stdout } = await scene.node.execInPod(scene.earlier.metadata.uid, ["ip", "-o", "link", "show", "eth0"]);
        expect(stdout, "the orphan lives").toContain("state DOWN");
        expect((await fencingNotes(scene)).join("\n")).toContain(`removed address ${scene.address} from it`);
        expect(scene.node.agent.stderr()).toContain(`removed address ${scene.address} from it`);
      } finally {
        scene.node.signal("kubelet", "SIGCONT");
      }
    });
  },
);

test("retention: a member that comes back on the node where its earlier pod still ends has the address, which leads to it alone", async () => {
  const stubborn = ["sh", "-c", "trap '' TERM; nc -l -p 7777"];
  const spec = { busybox: stubborn, pod: { nodeName: "node1", terminationGracePeriodSeconds: 30 } };
  const play = async (scene: OrphanScene): Promise<void> => {
    await scene.forceAway({ mayComeBack: true });
    await scene.untilSucceeded();
    const ping = ["ping", "-c", "1", "-w", "8", scene.address];
    expect(await scene.node.machine.run(ping), "the node reaches the successor").toContain("1 received");
    await scene.node.execInPod(scene.earlier.metadata.uid, ["bash", "-c", "echo end > /dev/tcp/127.0.0.1/7777"]);
  };
  await withOrphan({ cluster, seen }, "berth", play, spec);
});

const addressOf = (pod: KubeObject): string => pod.status.podIP;

/** `Bound`, `Quarantined NodeLost`, or `free`. */
async function statesOf(addresses: readonly string[]): Promise<string[]> {
  const objects = await seen.allocations();
  return addresses.map((address) => {
    const spec = objects.find((each) => each.spec.address === address)?.spec;
    return spec === undefined ? "free" : [spec.state, spec.quarantine?.reason ?? ""].join(" ").trim();
  });
}
