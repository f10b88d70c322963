/**
 * Addresses are probed before a Service gets them: the built controller and an agent in this process, whose segment is
 * a table, on a real API server.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { QUARANTINE_PROBE_MAX_MS } from "../../../../host/agent/detection/quarantine-prober.ts";
import { borrowPlane } from "../../../../test/cluster/borrow-plane.ts";
import type { AgentNode } from "../../../../test/lab/cluster/agent-node.ts";
import { createPod, NAMESPACES } from "../../../../test/lab/cluster/objects.ts";
import { probeDue } from "../../../../test/lab/cluster/probe-due.ts";
import { openWorld, type World } from "../../../../test/lab/cluster/world.ts";
import type { KubeObject } from "../../../../test/lab/kube-client.ts";
import { recordLog } from "../../../../test/world/recorded-log.ts";
import { RIVAL } from "../../../../test/world/values.ts";
import { CLASS } from "../../service.ts";

const SERVICES = `${NAMESPACES}/shop/services`;
const PATIENCE = { timeout: 60_000, interval: 200 };
const answering = new Set<string>();
let world: World;
let node: AgentNode;

beforeAll(async () => {
  world = await openWorld(borrowPlane);
  for (const name of ["kube-system", "shop"]) await world.namespace(name);
  await world.settings({
    enableIPv6: false,
    allocationCooldown: "1s",
    garbageCollection: { interval: "10s", grace: "1s" },
  });
  await world.pool("blue", { subnet: "10.6.0.0/16", ips: ["10.6.0.1-10.6.0.99"], default: true });
  node = await world.openAgent("n1", { recorded: recordLog() });
  await world.setNode("n1", "True", []);
  await node.attach("10.6.0.1", await createPod(world.client, { name: "web-0", node: "n1" }));
  await world.startController("a");
}, 120_000);
afterAll(() => world?.stop());

async function make(name: string, ips?: string): Promise<void> {
  const annotations = ips === undefined ? {} : { "ipam.vendor.io/ips": ips };
  const spec = { type: "LoadBalancer", loadBalancerClass: CLASS, ports: [{ port: 80 }] };
  await world.client.create(SERVICES, { apiVersion: "v1", kind: "Service", metadata: { name, annotations }, spec });
}

/** `INGRESS REASON MESSAGE`, after the agent's due probes. */
async function told(name: string): Promise<string> {
  await probeDue(node, answering);
  const { loadBalancer, conditions = [] } = (await world.client.get(`${SERVICES}/${name}`)).status;
  const ips = (loadBalancer.ingress ?? []).map(({ ip }: KubeObject) => ip);
  return `${ips} ${conditions[0]?.reason} ${conditions[0]?.message}`;
}

async function records(): Promise<string[]> {
  return (await world.allocations())
    .map(({ spec }) => `${spec.address} ${spec.state} ${spec.node} ${spec.quarantine?.mac ?? ""}`.trim())
    .sort();
}

it("a Service gets no address that a machine answers for, and a fixed one is refused with its MAC", {
  timeout: 180_000,
}, async () => {
  answering.add("10.6.0.99");
  await make("any");
  await expect.poll(() => told("any"), PATIENCE).toBe("10.6.0.98 Assigned 10.6.0.98");
  const taken = `10.6.0.99 Quarantined n1 ${RIVAL}`;
  expect(await records()).toEqual(["10.6.0.1 Bound n1", "10.6.0.98 Kept -", taken]);
  await make("fixed", "10.6.0.99");
  await expect.poll(() => told("fixed"), PATIENCE).toContain(`10.6.0.99 is in use, ${RIVAL} answers for it`);
  // The machine is switched off at last.
  answering.clear();
  node.advance(QUARANTINE_PROBE_MAX_MS);
  await expect.poll(() => told("fixed"), PATIENCE).toBe("10.6.0.99 Assigned 10.6.0.99");
});

it("a question is forgotten with the controller, and ended by the agent; without an agent nothing is probed", {
  timeout: 180_000,
}, async () => {
  await make("late");
  await expect.poll(records, PATIENCE).toContain("10.6.0.97 Quarantined n1");
  await world.killControllers();
  await probeDue(node, answering);
  expect(await records()).not.toContain("10.6.0.97 Quarantined n1");
  await world.startController("a");
  await expect.poll(() => told("late"), PATIENCE).toBe("10.6.0.97 Assigned 10.6.0.97");
  // It does not answer in time.
  await make("silent");
  const message = () => world.client.get(`${SERVICES}/silent`).then(({ status }) => status.conditions?.[0]?.message);
  await expect.poll(message, PATIENCE).toBe("10.6.0.96; 10.6.0.96 was not probed");
  // There is none.
  await world.setNode("n1", "False", []);
  await make("alone");
  await expect.poll(() => told("alone"), PATIENCE).toBe("10.6.0.95 Assigned 10.6.0.95; 10.6.0.95 was not probed");
  for (const name of ["any", "fixed", "late", "silent", "alone"]) await world.client.delete(`${SERVICES}/${name}`);
  await expect.poll(records, PATIENCE).toEqual(["10.6.0.1 Bound n1"]);
});
