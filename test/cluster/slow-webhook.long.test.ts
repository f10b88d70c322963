/**
 * An admission webhook of others keeps each write of Berth's kinds and of Leases, or changes what is written: pods
 * start, addresses are released and retained, and the leader stays.
 */
import { once } from "node:events";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { startFinalizers } from "../../host/controller/finalizers/finalizer-controller.ts";
import { openElection } from "../../host/kubernetes/lease/election.ts";
import { openLog } from "../../host/lib/log.ts";
import { leadAddressOwners } from "../lab/cluster/collector.ts";
import { connectClient } from "../lab/cluster/in-process.ts";
import type * as lab from "../lab/cluster/objects.ts";
import { SETS, statefulSet } from "../lab/cluster/workload-kinds.ts";
import type { World } from "../lab/cluster/world.ts";
import { until } from "../lab/waiting.ts";
import { makeCertificate } from "../unit/kubernetes/certificate.ts";
import { add, openAgents } from "./workloads.ts";

const ADMISSION = "/apis/admissionregistration.k8s.io/v1";
const certificate = makeCertificate("webhook");
const PATCH = [
  { op: "add", path: "/metadata/labels", value: { "policy.example.org/team": "a" } },
  { op: "add", path: "/metadata/annotations", value: { "policy.example.org/seen": "b" } },
];

let world: World;
let sweep: () => Promise<void>;
let server: Server;
/** Undefined: it never answers. */
let keepMs: number | undefined;
let configured: string | undefined;

beforeAll(async () => {
  world = await openAgents(["n1", "n2"]);
  sweep = await leadAddressOwners(world);
  server = createServer({ ...certificate }, async (incoming, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const { request } = JSON.parse(Buffer.concat(chunks).toString());
    if (keepMs === undefined) return;
    await sleep(keepMs);
    const patch = incoming.url?.startsWith("/mutate")
      ? { patchType: "JSONPatch", patch: Buffer.from(JSON.stringify(PATCH)).toString("base64") }
      : {};
    const answer = { uid: request.uid, allowed: true, ...patch };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response: answer }));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
});

afterEach(async () => {
  await uninstall();
  await world.client.delete(`${SETS}/web`).catch(() => {});
  await world.clear();
});

afterAll(async () => {
  server?.closeAllConnections();
  server?.close();
  await world?.stop();
});

interface Webhook {
  readonly kind: "Validating" | "Mutating";
  readonly failurePolicy: "Fail" | "Ignore";
  readonly timeoutSeconds: number;
  readonly operations: readonly string[];
}

/** Resolves when the API server asks it. */
async function install({ kind, operations, ...terms }: Webhook): Promise<void> {
  const collection = `${ADMISSION}/${kind.toLowerCase()}webhookconfigurations`;
  const path = kind === "Mutating" ? "/mutate" : "/validate";
  const { port } = server.address() as AddressInfo;
  const caBundle = Buffer.from(certificate.cert).toString("base64");
  const rule = { apiVersions: ["*"], operations };
  await world.client.create(collection, {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: `${kind}WebhookConfiguration`,
    metadata: { name: "slow" },
    webhooks: [
      {
        ...{ name: "slow.example.org", sideEffects: "None", admissionReviewVersions: ["v1"], ...terms },
        clientConfig: { url: `https://127.0.0.1:${port}${path}`, caBundle },
        rules: [
          { ...rule, apiGroups: ["ipam.vendor.io"], resources: ["*/*"] },
          { ...rule, apiGroups: ["coordination.k8s.io"], resources: ["leases"] },
        ],
      },
    ],
  });
  configured = `${collection}/slow`;
  let isAsked = false;
  server.on("request", () => {
    isAsked = true;
  });
  await until("the API server asks the webhook", async () => {
    world.pool("probe", { subnet: "10.99.0.0/24" }).catch(() => {});
    await sleep(200);
    return isAsked;
  });
}

async function uninstall(): Promise<void> {
  if (configured !== undefined) await world.client.delete(configured);
  configured = undefined;
}

/** With the default times of `berth-controller`. */
async function openCandidate(identity: string, name: string) {
  const client = await connectClient(world.plane.kubeconfig, `berth-${identity}`);
  const terms: string[] = [];
  const election = openElection({
    ...{ api: client, namespace: "default", name, identity },
    timings: { durationMs: 30_000, renewDeadlineMs: 25_000, retryMs: 2_000 },
    clock: { nowMs: () => performance.now(), pause: (waitMs, signal) => sleep(waitMs, undefined, { signal }) },
    now: () => new Date(),
    random: Math.random,
    lead: ({ signal }) => {
      terms.push(identity);
      return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    },
    log: openLog("test", "silent"),
  });
  const close = async (): Promise<void> => {
    await election.close();
    await client.close();
  };
  return { election, terms, close };
}

/** As the kubelet does, the ADD is repeated. */
async function start(spec: lab.PodSpec): Promise<{ readonly pod: lab.LabPod; readonly ip: string }> {
  const pod = await world.createPod(spec);
  for (let attempt = 1; ; attempt++) {
    try {
      const [ip = ""] = await add(world, pod);
      return { pod, ip };
    } catch (error) {
      if (attempt === 2) throw error;
    }
  }
}

const CASES: readonly (readonly [what: string, keepMs: number | undefined, terms: Partial<Webhook>])[] = [
  ["answers after 6 s", 6_000, {}],
  ["answers after 10 s", 10_000, { timeoutSeconds: 30 }],
  ["never answers, and is ignored after 10 s", undefined, { failurePolicy: "Ignore" }],
];

it.for(CASES)("a webhook that %s delays, and stops nothing", { timeout: 400_000 }, async ([, keep, terms]) => {
  const lease = `lease-${String(keep)}`;
  const first = await openCandidate("a", lease);
  await until("one leads", () => first.election.isLeading);
  const second = await openCandidate("b", lease);
  const { uid } = (await world.client.create(SETS, statefulSet("web", 1))).metadata;
  const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name: "web", uid };
  keepMs = keep;
  const operations = ["CREATE", "UPDATE", "DELETE"];
  await install({ kind: "Validating", failurePolicy: "Fail", timeoutSeconds: 10, operations, ...terms });
  try {
    const [member, other] = await Promise.all([
      start({ name: "web-0", node: "n1", owner }),
      start({ name: "other", node: "n1" }),
    ]);
    await Promise.all([world.endPod(member.pod), world.endPod(other.pod)]);
    await world.untilStates([`${member.ip} Kept n1`], sweep, 120_000);
    const again = await start({ name: "web-0", node: "n2", owner });
    expect(again.ip).toBe(member.ip);
    expect([first.terms, second.terms, first.election.isLeading]).toEqual([["a"], [], true]);
  } finally {
    await uninstall();
    await Promise.all([first.close(), second.close()]);
  }
});

it("a webhook of 30 s may stop pods, and makes nothing twice", { timeout: 400_000 }, async () => {
  keepMs = undefined;
  const operations = ["CREATE", "UPDATE", "DELETE"];
  await install({ kind: "Validating", failurePolicy: "Ignore", timeoutSeconds: 30, operations });
  const adding = start({ name: "late", node: "n1" });
  adding.catch(() => {});
  await sleep(50_000);
  await uninstall();
  const { ip } = await adding;
  await sleep(2_000);
  expect(await world.states()).toEqual([`${ip} Bound n1 late@n1`]);
});

it("a webhook that puts labels and annotations on everything does not stop finalizers", async () => {
  keepMs = 0;
  await world.pool("marked", { subnet: "10.9.0.0/24" });
  await install({ kind: "Mutating", failurePolicy: "Fail", timeoutSeconds: 10, operations: ["CREATE", "UPDATE"] });
  await world.lead({ finalizers: startFinalizers });
  await until("the pool has its finalizer", async () => {
    const { metadata } = await world.read("ippools", "marked");
    return (
      metadata.finalizers?.includes("ipam.vendor.io/in-use") && metadata.labels?.["policy.example.org/team"] === "a"
    );
  });
  const { ip } = await start({ name: "marked", node: "n1" });
  expect(await world.states()).toEqual([`${ip} Bound n1 marked@n1`]);
});
