/**
 * A StatefulSet's pod that leaves its node in every way in which its earlier life could go on there, with detection
 * and without. The hung kubelet itself is in test/nodes/trouble.ts. No sample of the kernel state shows two holders
 * of the address, and the set has it in the end.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { requireCommand } from "../lab/command.ts";
import { NAMESPACE, type RealCluster, startRealCluster } from "../lab/nodes/cluster.ts";
import { LAN } from "../lab/nodes/networks.ts";
import type { RealNode } from "../lab/nodes/node.ts";
import { type Observer, observe } from "../lab/nodes/observe.ts";
import { paths } from "../lab/nodes/workloads.ts";
import { untilDefined } from "../lab/waiting.ts";
import { fencingNotes, type OrphanScene, withOrphan } from "../nodes/orphan-world.ts";

/** Longest pause of a kubelet between two sandboxes of a pod, and the time in which a node is found to be lost. */
const PATIENCE_MS = 180_000;
const SETTINGS = "/api/v1/namespaces/kube-system/configmaps/vendor-conf";

let cluster: RealCluster;
let seen: Observer;
beforeAll(async () => {
  cluster = await startRealCluster({ nodes: 3, isObserved: true });
  seen = observe(cluster);
}, 300_000);
afterAll(() => cluster?.stop());

/** Until the successor was refused with this; meanwhile the earlier pod alone has the address. */
async function untilRefused(scene: OrphanScene, text: string): Promise<void> {
  const isRefused = async () => {
    expect(scene.holders()).toEqual([scene.node.name]);
    return (await scene.refusals()).some((refusal) => refusal.includes(text)) || undefined;
  };
  await untilDefined(isRefused, async () => (await scene.refusals()).join("\n"), PATIENCE_MS);
}

const awaited = ({ address, node }: OrphanScene): string =>
  `Address ${address} is retained for StatefulSet "${NAMESPACE}/orphan", and its earlier pod ${NAMESPACE}/orphan-0, which is deleted, still has it on node "${node.name}"`;
const answered = ({ node }: OrphanScene): string => `was on node "${node.name}", which is lost, and `;

/**
 * Between the node and the API server nothing passes while there are black holes; the pods' NICs are on the wire as
 * before.
 */
async function routeBothWays(change: "add" | "del", { machine, address }: RealNode): Promise<void> {
  const route = (to: string): string[] => ["ip", "route", change, "blackhole", `${to}/32`];
  await machine.run(route(LAN.gateway));
  await requireCommand(["nsenter", `--net=/proc/${cluster.plane.server.pid}/ns/net`, ...route(address)]);
}

async function setFencing(isEnabled: boolean): Promise<void> {
  const { data } = await cluster.client.get(SETTINGS);
  const lines = String(data["conf.yml"]).split("\n");
  const others = lines.filter((line) => line !== "" && !line.startsWith("enableFencing"));
  const text = [...others, `enableFencing: ${isEnabled}`, ""].join("\n");
  await cluster.client.patch(SETTINGS, { data: { "conf.yml": text } });
}

describe.each(["berth", "detecting"] as const)("on the network %s", (network) => {
  const play = (scene: (scene: OrphanScene) => Promise<void>): Promise<void> =>
    withOrphan({ cluster, seen }, network, scene);

  it("a hung kubelet and a dead agent: the successor waits for that agent", () =>
    play(async (scene) => {
      const { node } = scene;
      await node.agent.kill("SIGKILL");
      node.signal("kubelet", "SIGSTOP");
      await scene.forceAway();
      await untilRefused(scene, awaited(scene));
      await node.agent.start();
      await scene.untilSucceeded(PATIENCE_MS);
      expect((await fencingNotes(scene)).join("\n")).toContain(`removed address ${scene.address} from it`);
      node.signal("kubelet", "SIGCONT");
      await cluster.ready(node.name);
    }));

  it("a hung kubelet and a dead agent, until the node is lost: what answers on the segment is the earlier pod, and no conflict", () =>
    play(async (scene) => {
      const { node } = scene;
      await node.agent.kill("SIGKILL");
      node.signal("kubelet", "SIGSTOP");
      await scene.forceAway();
      await untilRefused(scene, answered(scene));
      await node.agent.start();
      await scene.untilSucceeded(PATIENCE_MS);
      node.signal("kubelet", "SIGCONT");
      await cluster.ready(node.name);
    }));

  it("a node that is cut off from the API server: it fences when it is back", () =>
    play(async (scene) => {
      const { node } = scene;
      await routeBothWays("add", node);
      await scene.forceAway();
      await untilRefused(scene, awaited(scene));
      await untilRefused(scene, answered(scene));
      await routeBothWays("del", node);
      await scene.untilSucceeded(PATIENCE_MS);
      await cluster.ready(node.name);
    }));

  it("a member that is ended and moves: nothing waits", () =>
    play(async (scene) => {
      await cluster.client.patch(`/api/v1/nodes/${scene.node.name}`, { spec: { unschedulable: true } });
      await cluster.client.delete(`${paths.pods(NAMESPACE)}/${scene.earlier.metadata.name}`);
      await scene.untilSucceeded(PATIENCE_MS);
      expect((await scene.refusals()).filter((refusal) => refusal.includes(scene.address))).toEqual([]);
    }));

  it("fencing is disabled: the successor waits for the end of the sandbox", async () => {
    await setFencing(false);
    await play(async (scene) => {
      scene.node.signal("kubelet", "SIGSTOP");
      await scene.forceAway();
      await untilRefused(scene, awaited(scene));
      scene.node.signal("kubelet", "SIGCONT");
      await scene.untilSucceeded(PATIENCE_MS);
    });
    await setFencing(true);
  });
});
