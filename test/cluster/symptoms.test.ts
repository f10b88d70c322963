/** Symptoms of docs/troubleshooting.md that need an API server: the output of `kubectl`, and pods that do not start. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect } from "vitest";
import { startFinalizers } from "../../host/controller/finalizers/finalizer-controller.ts";
import { startSettings } from "../../host/controller/settings-controller.ts";
import { referenceTool } from "../../scripts/setup/paths.mjs";
import { berthctl } from "../e2e/symptoms/node.ts";
import { symptom } from "../e2e/symptoms/page.ts";
import { type OwnerReference, type PodSpec, poolObject } from "../lab/cluster/objects.ts";
import { SETS, statefulSet } from "../lab/cluster/workload-kinds.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import type { PluginOutcome } from "../lab/cnitool.ts";
import { runCommand } from "../lab/command.ts";
import { until } from "../lab/waiting.ts";
import { borrowPlane } from "./borrow-plane.ts";

const SUBNET = { subnet: { ipv4: ["desk"] } };

let world: World;

beforeAll(async () => {
  world = await startWorld({
    startPlane: borrowPlane,
    nodes: ["n1"],
    pools: [{ name: "blue", subnet: "10.6.0.0/24" }],
    settings: { maxAddressesPerPod: 1 },
  });
});
afterAll(() => world?.stop());

async function kubectl(...args: readonly string[]): Promise<string> {
  const program = join(referenceTool("kubectl").directory, "kubectl");
  const { stdout, stderr } = await runCommand([program, "--kubeconfig", world.plane.kubeconfig, ...args]);
  return stdout + stderr;
}

async function apply(object: object): Promise<string> {
  const file = join(world.node("n1").agent.directory, "manifest.json");
  writeFileSync(file, JSON.stringify(object));
  return kubectl("apply", "-f", file);
}

/** Returns the runtime's report of the pod, which must be refused. */
async function refusal(name: string, spec: Partial<PodSpec>): Promise<string> {
  const pod = await world.createPod({ name, node: "n1", ...spec });
  const { runtime } = world.node("n1");
  return messageOf(await runtime.add(pod, runtime.newContainerId()));
}

function messageOf({ exitCode, text }: PluginOutcome): string {
  if (exitCode === 0) throw new Error(`The pod was attached: ${text}`);
  return JSON.parse(text).msg;
}

async function setOf(name: string): Promise<OwnerReference> {
  const { uid } = (await world.client.create(SETS, statefulSet(name, 1))).metadata;
  return { apiVersion: "apps/v1", kind: "StatefulSet", name, uid };
}

symptom("FailedCreatePodSandBox and a Warning of berth-agent", async () => {
  await refusal("lost", { annotations: { ippool: { ipv4: ["bleu"] } } });
  let events = "";
  await until(
    () => events,
    async () => {
      events = await kubectl("describe", "pod", "--namespace", "shop", "lost");
      return events.includes("Warning");
    },
  );
  return events;
});
symptom("Pod is unknown", async () => {
  const { runtime } = world.node("n1");
  const pod = { namespace: "shop", name: "ghost", uid: "6b6c2f2e-0000-4000-8000-000000000000", node: "n1" };
  return messageOf(await runtime.add(pod, runtime.newContainerId()));
});
symptom("generated pools belong to workloads", () => refusal("bare", { annotations: SUBNET }));
symptom("The pool of a Subnet does not come", async () =>
  refusal("desk-0", { annotations: SUBNET, owner: await setOf("desk") }),
);
symptom("has reached the limit of addresses", async () => {
  const pod = await world.createPod({ name: "greedy", node: "n1" });
  const { runtime } = world.node("n1");
  await runtime.attach(pod);
  return messageOf(await runtime.add(pod, runtime.newContainerId(), { ifName: "net1" }));
});
symptom("An IPPool is invalid", () => apply(poolObject({ name: "wide", subnet: "10.6.0.0/33" })));
symptom("no matches for kind", () =>
  apply({ apiVersion: "ipam.vendor.io/v2", kind: "IPPool", metadata: { name: "x" } }),
);
symptom("A deleted pool stays", async () => {
  await world.lead({ finalizers: startFinalizers });
  await world.pool("grey", { subnet: "10.22.0.0/24" });
  await world.allocate("10.22.0.9", { pool: "grey" });
  await until("it is marked", async () => (await world.read("ippools", "grey"))?.metadata.finalizers?.length > 0);
  const output = await kubectl("delete", "ippools.ipam.vendor.io", "grey", "--timeout", "2s");
  return output + (await kubectl("get", "ipallocations.ipam.vendor.io"));
});
symptom("vendor-conf cannot be used", async () => {
  const { agent } = world.node("n1");
  await world.lead({ settings: startSettings });
  await world.settings({ enableIPV6: false });
  await until("it is reported", async () => (await agent.request("/v1/health")).body.includes("enableIPV6"));
  const events = () => kubectl("describe", "configmaps", "vendor-conf", "--namespace", "kube-system");
  await expect.poll(events, { timeout: 10_000 }).toMatch(/Warning +InvalidSettings .*want the key "enableIPv6"/);
  const checked = await berthctl(agent.socket, "check");
  await world.settings({ maxAddressesPerPod: 1 });
  return checked;
});
symptom("Unauthorized", async () => {
  const { agent } = await world.addNode("n2", { proxy: { token: "expired" } });
  await until("it is not ready", async () => (await agent.request("/v1/health")).body.includes("401"));
  return berthctl(agent.socket, "check");
});
symptom("The API server cannot be reached", async () => {
  const { proxy } = world.node("n1");
  await proxy.stop();
  return refusal("alone", {});
});
