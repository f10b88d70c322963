/**
 * One workload of each kind that Berth follows, all of one Subnet: their pods get addresses, then they go, and at
 * last the Subnet.
 */
import { expect } from "vitest";
import { createOwned, type LabPod, type OwnerReference, POOLS, podTemplate, SUBNETS } from "../lab/cluster/objects.ts";
import type { World } from "../lab/cluster/world.ts";
import type { KubeObject } from "../lab/kube-client.ts";
import { until } from "../lab/waiting.ts";

const NETWORK = /^10\.9\.0\./;

/** Rejects when a pod gets no address, when the Subnet that is not there is not named, or when a pool stays. */
export async function runWorkloads(world: World): Promise<void> {
  const { client } = world;
  const generated = async (): Promise<KubeObject[]> =>
    (await client.get(POOLS)).items.filter(({ spec }: KubeObject) => spec.generated !== undefined);
  await world.subnet("lan", { subnet: "10.9.0.0/24" });
  const { owners, paths } = await makeWorkloads(world);
  const pods: LabPod[] = [];
  for (const [index, owner] of owners.entries()) {
    const node = index % 2 === 0 ? "n1" : "n2";
    const pod = await world.createPod({ name: `${owner.name}-x`, node, owner, annotations: annotationsOf("lan") });
    pods.push(pod);
    const { addresses, refusal } = await world.node(node).runtime.attach(pod);
    expect(addresses, `${owner.kind} ${owner.name}: ${refusal}`).toEqual([expect.stringMatching(NETWORK)]);
  }
  expect(await generated()).toHaveLength(owners.length);
  const stray = await world.createPod({
    name: "stray",
    node: "n1",
    owner: owners[0] as OwnerReference,
    annotations: annotationsOf("none"),
  });
  const { refusal } = await world.node("n1").runtime.attach(stray, { limitMs: 0 });
  expect(refusal).toMatch(/Subnet \\"none\\" does not exist/);
  // They all go; the garbage collector of the API server's objects is not here.
  for (const path of paths.reverse()) await client.delete(path, { propagationPolicy: "Background" });
  for (const pod of pods) {
    await world.node(pod.node).runtime.detach(pod);
    await world.deletePod(pod);
  }
  await world.deletePod(stray);
  await until("the pools are gone with their workloads", async () => (await generated()).length === 0);
  await client.delete(`${SUBNETS}/lan`);
  await until("the Subnet is gone", async () => (await client.get(SUBNETS)).items.length === 0);
}

const annotationsOf = (subnet: string): Readonly<Record<string, unknown>> => ({ subnet: { ipv4: [subnet] } });

/** Owners of the pods, and the paths of all that was made. */
async function makeWorkloads({ client }: World): Promise<{ owners: OwnerReference[]; paths: string[] }> {
  const paths: string[] = [];
  const make = async (group: "apps" | "batch", kind: string, name: string, spec: object, owner?: OwnerReference) => {
    const collection = `/apis/${group}/v1/namespaces/shop/${kind.toLowerCase()}s`;
    paths.push(`${collection}/${name}`);
    return createOwned(client, collection, { apiVersion: `${group}/v1`, kind }, name, spec, owner);
  };
  const template = (app: string) => podTemplate(app, { subnet: "lan" });
  const selector = (app: string) => ({ selector: { matchLabels: { app } }, template: template(app) });
  const job = { template: podTemplate("job", { subnet: "lan", restartPolicy: "Never" }) };
  const web = await make("apps", "Deployment", "web", { replicas: 1, ...selector("web") });
  const cron = await make("batch", "CronJob", "cron", { schedule: "0 0 * * *", jobTemplate: { spec: job } });
  const owners = [
    await make("apps", "ReplicaSet", "web-1", { replicas: 1, ...selector("web") }, web),
    await make("apps", "ReplicaSet", "bare", { replicas: 1, ...selector("bare") }),
    await make("apps", "StatefulSet", "keep", { replicas: 1, serviceName: "keep", ...selector("keep") }),
    await make("apps", "DaemonSet", "each", selector("each")),
    await make("batch", "Job", "once", job),
    await make("batch", "Job", "cron-1", job, cron),
  ];
  return { owners, paths };
}
