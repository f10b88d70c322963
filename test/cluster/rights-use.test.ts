/**
 * The rights of deploy/rbac.yaml and deploy/controller.yaml beside the real use by built agents and the controller, by
 * the API server's own audit log: nothing is refused, and nothing is granted that is not used, except UNUSED's rows.
 */

import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ControllerProcess, openController } from "../../host/controller/controller-process.ts";
import { CONTROLLERS } from "../../host/controller/controllers.ts";
import { MISSING_KIND_RETRY_MS } from "../../host/kubernetes/reflector.ts";
import { openLog } from "../../host/lib/log.ts";
import { root } from "../../scripts/setup/paths.mjs";
import { readDocuments } from "../lab/apply.ts";
import { connectClient } from "../lab/cluster/in-process.ts";
import { ALLOCATIONS, boundObject, createWorkload, type LabPod, NODES, POOLS } from "../lab/cluster/objects.ts";
import { startPlane } from "../lab/cluster/plane.ts";
import { requestNodeToken } from "../lab/cluster/rights.ts";
import { applyWorkloadKinds, SETS } from "../lab/cluster/workload-kinds.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import type { KubeObject } from "../lab/kube-client.ts";
import { until } from "../lab/waiting.ts";
import { runWorkloads } from "./rights-workloads.ts";

const PREFIX = "system:serviceaccount:kube-system:";
const ACCOUNTS = ["berth-agent", "berth-controller"] as const;
type Account = (typeof ACCOUNTS)[number];

const EVENT_COUNTS = "when an event has repeated for five minutes: unit/kubernetes/events.test.ts";

/** Granted and not used here, or not always: why it is needed nevertheless. */
const UNUSED: Readonly<Record<Account, Readonly<Record<string, string>>>> = {
  "berth-agent": {
    "get ipam.vendor.io/ippoolusages": "in a pool of more than 4,096 addresses that is nearly full",
    "get ipam.vendor.io/ippools": "for an address of a leased block: shared-segment.test.ts",
    "get k8s.cni.cncf.io/ipamclaims": "for a pod whose network refers to one: workloads.test.ts",
    "get kubevirt.io/virtualmachineinstances": "for a machine's pod: workloads.test.ts",
    "get kubevirt.io/virtualmachines": "the same",
    "get /namespaces": "when a pod is faster than the watch of namespaces",
    "watch ipam.vendor.io/ipallocations": "for agents of the version before, during an upgrade",
    "patch events.k8s.io/events": EVENT_COUNTS,
  },
  "berth-controller": {
    "create /configmaps": "when the registry's epoch is gone: absent.test.ts",
    "get /configmaps": "after the API server went back in time: the registry's epoch",
    "list apiextensions.k8s.io/customresourcedefinitions": "then, which kind of allocations there is",
    "patch /configmaps": "an epoch that is not the first: begun and settled",
    "get k8s.cni.cncf.io/ipamclaims": "for what such a claim keeps: workloads.test.ts",
    "patch k8s.cni.cncf.io/ipamclaims/status": "which addresses a claim has: the same",
    "get kubevirt.io/virtualmachineinstances": "for what a machine keeps: workloads.test.ts",
    "get kubevirt.io/virtualmachines": "the same",
    "get ipam.vendor.io/ippoolusages": "when another writer has created one",
    "watch cilium.io/ciliumpodippools": "where Cilium is: controllers.test.ts",
    "watch cilium.io/ciliumloadbalancerippools": "the same",
    "watch metallb.io/ipaddresspools": "where MetalLB is",
    "watch crd.projectcalico.org/ippools": "where Calico is",
    "watch projectcalico.org/ippools": "where Calico's own API server is",
    "patch events.k8s.io/events": EVENT_COUNTS,
    "create discovery.k8s.io/endpointslices": "for a Service that names a network: services.test.ts",
    "patch discovery.k8s.io/endpointslices": "the same",
    "delete discovery.k8s.io/endpointslices": "the same",
    "create ipam.vendor.io/ipallocations": "for what Nodes and Services have: machines.test.ts",
    "get /services": "before such a record ends: the same",
    "patch /services/status": "for an address of a load balancer: load-balancers.test.ts",
    "patch /pods": "for a scheduling gate: scheduling-gate.test.ts",
    "patch /pods/status": "the same",
  },
};

const policy = {
  ...{ apiVersion: "audit.k8s.io/v1", kind: "Policy", omitStages: ["RequestReceived"] },
  rules: [{ level: "Metadata", users: ACCOUNTS.map((name) => `${PREFIX}${name}`) }, { level: "None" }],
};

let directory: string;
let world: World;
let controller: ControllerProcess;
const closers: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "berth-audit-"));
  closers.push(() => rm(directory, { recursive: true, force: true }));
  await writeFile(join(directory, "policy.json"), JSON.stringify(policy));
  const audit = ["policy-file=policy.json", "log-path=audit.log"].map(
    (each) => `--audit-${each.replace("=", `=${directory}/`)}`,
  );
  world = await startWorld({
    startPlane: () => startPlane({ serverArgs: audit }),
    hasDefinitions: false,
    pools: [
      { name: "blue", subnet: "10.6.0.0/24", ips: ["10.6.0.10-10.6.0.199"] },
      { name: "two", subnet: "10.7.0.0/24", ips: ["10.7.0.10-10.7.0.11"], default: false },
    ],
    settings: { enableStatefulSet: true, garbageCollection: { interval: "1s", grace: "1s", nodeLost: "1s" } },
  });
  closers.push(() => world.stop());
  await applyWorkloadKinds(world.client);
  await Promise.all(["n1", "n2"].map((name) => world.addNode(name)));
  controller = await startController();
  closers.push(() => controller.close());
});
afterAll(async () => {
  for (const close of closers.reverse()) await close();
});

async function startController(): Promise<ControllerProcess> {
  const token = await requestNodeToken(world.client, "n1", { account: "berth-controller" });
  const kubeconfig = await world.plane.writeKubeconfig("controller", { token });
  const api = await connectClient(kubeconfig, "berth-controller");
  closers.push(() => api.close());
  return openController({
    ...{ api, configNamespace: "kube-system", now: () => new Date(), random: Math.random },
    controllers: CONTROLLERS,
    lease: {
      ...{ namespace: "kube-system", name: "berth-controller", identity: "lab" },
      // It leads to the end, however slow the machine is.
      timings: { durationMs: 30_000, renewDeadlineMs: 25_000, retryMs: 400 },
    },
    clock: { nowMs: () => performance.now(), pause: (waitMs, signal) => sleep(waitMs, undefined, { signal }) },
    log: openLog("berth-controller", "silent"),
  });
}

interface Call {
  readonly account: Account;
  /** `list ipam.vendor.io/ippools` */
  readonly right: string;
  readonly code: number;
  readonly text: string;
}

async function readCalls(): Promise<Call[]> {
  const lines = (await readFile(join(directory, "audit.log"), "utf8")).trim().split("\n");
  return lines.flatMap((line): Call[] => {
    const { user, verb, objectRef, responseStatus, requestURI } = JSON.parse(line);
    const account = ACCOUNTS.find((name) => user.username === `${PREFIX}${name}`);
    if (account === undefined || objectRef === undefined) return [];
    const { apiGroup = "", resource, subresource } = objectRef;
    const right = rightOf(verb, apiGroup, subresource === undefined ? resource : `${resource}/${subresource}`);
    return [
      { account, right, code: responseStatus?.code ?? 0, text: `${verb} ${requestURI}: ${responseStatus?.message}` },
    ];
  });
}

const rightOf = (verb: string, group: string, resource: string): string => `${verb} ${group}/${resource}`;

/** Reads the grants of all roles of that name. */
async function readGrants(account: Account): Promise<Set<string>> {
  const files = ["rbac.yaml", "controller.yaml"].map((name) => join(root, "deploy", name));
  const documents = (await Promise.all(files.map(readDocuments))).flat();
  const roles = documents.filter(({ kind, metadata }) => /Role$/.test(kind) && metadata.name === account);
  const rules: KubeObject[] = roles.flatMap((role) => role.rules);
  return new Set(
    rules.flatMap(({ apiGroups, resources, verbs }) =>
      apiGroups.flatMap((group: string) =>
        resources.flatMap((name: string) => verbs.map((verb: string) => rightOf(verb, group, name))),
      ),
    ),
  );
}

it("agents and controller follow a kind that is installed later", async () => {
  const followers = async () =>
    (await readCalls()).filter(
      ({ right, code }) => right === "watch k8s.cni.cncf.io/network-attachment-definitions" && code === 200,
    ).length;
  expect(await followers()).toBe(0);
  const startMs = performance.now();
  await world.installDefinitions();
  // Two agents and the controller.
  await until("all follow the kind", async () => (await followers()) === 3, 1.5 * MISSING_KIND_RETRY_MS);
  console.log(
    `rights-use: a new kind is followed by all ${(performance.now() - startMs).toFixed(0)} ms after it was installed`,
  );
});

it("agents and controller do all their work, and are refused nothing", async () => {
  const { client } = world;
  await until(
    "the controller leads",
    () => controller.status.isLeading && controller.status.parts.length === Object.keys(CONTROLLERS).length,
  );
  // Pods come and go; one DEL is lost; one pod of a StatefulSet moves.
  const [n1, n2] = [world.node("n1"), world.node("n2")];
  const web = await world.createPod({ name: "web-0", node: "n1" });
  await n1.runtime.attach(web);
  const lost = await world.createPod({ name: "web-1", node: "n2" });
  await n2.runtime.attach(lost);
  world.ledger.drop(world.ledger.live().find(({ pod }) => pod.uid === lost.uid) ?? fail("web-1 has an address"));
  await world.deletePod(lost);
  const { namespace: _, ...owner } = await createWorkload(client, "StatefulSet", "db", { replicas: 1 });
  const before = await world.createPod({ name: "db-0", node: "n1", owner });
  const kept = await n1.runtime.attach(before);
  await n1.runtime.detach(before);
  await world.deletePod(before);
  const after = await world.createPod({ name: "db-0", node: "n2", owner });
  expect((await n2.runtime.attach(after)).addresses).toEqual(kept.addresses);
  // A pool is full; then it goes, with an address in use.
  const annotations = { ippool: { ipv4: ["two"] } };
  const full: LabPod[] = [];
  for (const [index, node] of [n1, n1, n2].entries()) {
    const pod = await world.createPod({ name: `two-${index}`, node: node.name, annotations });
    full.push(pod);
    expect((await node.runtime.attach(pod, { limitMs: 0 })).addresses.length).toBe(index < 2 ? 1 : 0);
  }
  await client.delete(`${POOLS}/two`);
  for (const pod of full) await world.deletePod(pod);
  for (const pod of full.slice(0, 2)) await n1.runtime.detach(pod);
  await until("the pool is gone", async () => (await client.get(POOLS)).items.length === 1);
  await runWorkloads(world);
  // A reservation of an address in use, and a subnet that overlaps.
  const [address] = world.ledger.find(web, "eth0")?.addresses ?? [];
  await world.create("ReservedIP", "taken", { ips: [address] });
  await world.subnet("over", { subnet: "10.6.0.0/16", ips: ["10.6.0.1-10.6.0.9"] });
  const isSynced = async () => (await client.get("/apis/ipam.vendor.io/v1/coordinators/default")).status !== undefined;
  await until("the Coordinator is made, and has a status", () => isSynced().catch(() => false));
  // A node is lost that never confirms, and one is off; a workload ends.
  await client.create(NODES, {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: "off" },
    spec: { taints: [{ key: "node.kubernetes.io/out-of-service", effect: "NoExecute" }] },
  });
  await client.create(ALLOCATIONS, boundObject({ address: "10.6.0.201", node: "gone" }));
  await client.create(ALLOCATIONS, boundObject({ address: "10.6.0.202", node: "off" }));
  await world.node("n2").runtime.detach(after);
  await world.deletePod(after);
  await client.delete(`${SETS}/db`, { propagationPolicy: "Background" });
  // No node here can probe the segment for the lost node's address.
  const states = async () => (await world.allocations()).map(({ spec }) => spec.state).sort();
  await until("addresses without a pod are free", async () => (await states()).join() === "Bound,Quarantined");
  const calls = await readCalls();
  const refused = calls.filter(({ code }) => code === 401 || code === 403);
  expect([...new Set(refused.map(({ account, text }) => `${account}: ${text}`))]).toEqual([]);
});

it.each(ACCOUNTS)("%s has no right that it does not use", async (account) => {
  await controller.close();
  const calls = (await readCalls()).filter((call) => call.account === account);
  const used = new Set(calls.map(({ right }) => right));
  const grants = await readGrants(account);
  const unused = [...grants].filter((right) => !used.has(right)).sort();
  console.log(`${account}: ${[...grants].length} rights, ${calls.length} calls; unused: ${unused.join(", ")}`);
  const explained = Object.keys(UNUSED[account]);
  expect(unused.filter((right) => !explained.includes(right))).toEqual([]);
  expect(explained.filter((right) => !grants.has(right))).toEqual([]);
  expect([...used].filter((right) => !grants.has(right))).toEqual([]);
});

function fail(message: string): never {
  throw new Error(message);
}
