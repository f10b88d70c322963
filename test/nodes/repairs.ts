import { expect, test } from "vitest";
import type { KubeObject } from "../lab/kube-client.ts";
import { paths, podOf } from "../lab/nodes/workloads.ts";
import { untilDefined } from "../lab/waiting.ts";
import { cluster, NAMESPACE, seen } from "./shared-cluster.ts";

const REPAIRED_MS = 20_000;

/** The note of the node's Event. */
async function noteOf(wanted: string): Promise<string> {
  const find = async (): Promise<KubeObject | undefined> => {
    const { items } = await cluster.client.get("/apis/events.k8s.io/v1/events");
    return items.find(({ reason }: KubeObject) => reason === wanted);
  };
  const { regarding, note } = await untilDefined(find, () => `there is no Event ${wanted}`, REPAIRED_MS);
  expect(regarding).toMatchObject({ kind: "Node", name: "node2" });
  return note;
}

test("objects that other software removes of a node's network are back without an ADD, and an Event of the Node says so", async () => {
  const { machine } = cluster.node("node2");
  await cluster.client.create(
    paths.pods(NAMESPACE),
    podOf({ name: "repaired", app: "repaired", pod: { nodeName: "node2" } }),
  );
  const [pod] = await seen.untilReady("repaired", 1);
  // Throws without an answer.
  const reach = () => machine.run(["ping", "-c1", "-W1", pod?.status.podIP]).catch(() => undefined);
  expect(await reach()).toBeDefined();
  await machine.run(["sh", "-ec", "ip rule del pref 900; ip route flush table 500; nft delete table inet berth"]);
  await untilDefined(reach, () => machine.run(["ip", "rule"]), REPAIRED_MS);
  expect(await noteOf("NodeNetworkRestored")).toMatch(
    /^Restored what .* had removed of the node's network: .*the rule/,
  );
  // As with the node's interface under it. Another link of the node goes as well.
  const find = `ip -n $each -o addr show to ${pod?.status.podIP}`;
  const gone = `for each in $(ls /run/netns); do [ -z "$(${find})" ] || ip -n $each link del eth0; done`;
  await machine.run(["sh", "-ec", `${gone}; ip link add other1 type veth peer name other2; ip link del other1`]);
  expect(await noteOf("PodNicsGone")).toContain(`eth0 of ${NAMESPACE}/${pod?.metadata.name}`);
  await cluster.client.delete(`${paths.pods(NAMESPACE)}/repaired`);
  await seen.untilGone("repaired");
});
