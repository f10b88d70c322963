/**
 * An admission webhook of others keeps each write of Berth's kinds and of Leases, or changes what is written: pods
 * start, addresses are released and retained, and the leader stays.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { startFinalizers } from "../../host/controller/finalizers/finalizer-controller.ts";
import { openCandidate as candidate } from "../lab/cluster/candidate.ts";
import { leadAddressOwners } from "../lab/cluster/collector.ts";
import type * as lab from "../lab/cluster/objects.ts";
import { type LabWebhook, openWebhook, type WebhookTerms } from "../lab/cluster/webhook.ts";
import { SETS, statefulSet } from "../lab/cluster/workload-kinds.ts";
import type { World } from "../lab/cluster/world.ts";
import { until } from "../lab/waiting.ts";
import { add, openAgents } from "./workloads.ts";

const ALL = ["CREATE", "UPDATE", "DELETE"];

let world: World;
let sweep: () => Promise<void>;
let webhook: LabWebhook;

beforeAll(async () => {
  world = await openAgents(["n1", "n2"]);
  sweep = await leadAddressOwners(world);
  webhook = await openWebhook(world.client);
});

afterEach(async () => {
  await webhook.uninstall();
  await world.client.delete(`${SETS}/web`).catch(() => {});
  await world.clear();
});

afterAll(async () => {
  webhook?.close();
  await world?.stop();
});

/** Of Berth's kinds and Leases; without `operations` all. */
function install(terms: Partial<WebhookTerms>): Promise<void> {
  const rules = [
    { apiGroups: ["ipam.vendor.io"], resources: ["*/*"] },
    { apiGroups: ["coordination.k8s.io"], resources: ["leases"] },
  ];
  const defaults = { kind: "Validating", failurePolicy: "Fail", timeoutSeconds: 10, operations: ALL, rules } as const;
  return webhook.install({ ...defaults, ...terms }, () => world.pool("probe", { subnet: "10.99.0.0/24" }));
}

const openCandidate = (identity: string, lease: string) => candidate(world.plane, identity, lease);

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

const CASES: readonly (readonly [what: string, keepMs: number | undefined, terms: Partial<WebhookTerms>])[] = [
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
  webhook.keepMs = keep;
  await install(terms);
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
    await webhook.uninstall();
    await Promise.all([first.close(), second.close()]);
  }
});

it("a webhook of 30 s may stop pods, and makes nothing twice", { timeout: 400_000 }, async () => {
  webhook.keepMs = undefined;
  await install({ failurePolicy: "Ignore", timeoutSeconds: 30 });
  const adding = start({ name: "late", node: "n1" });
  adding.catch(() => {});
  await sleep(50_000);
  await webhook.uninstall();
  const { ip } = await adding;
  await sleep(2_000);
  expect(await world.states()).toEqual([`${ip} Bound n1 late@n1`]);
});

it("a webhook that puts labels and annotations on everything does not stop finalizers", async () => {
  webhook.keepMs = 0;
  await world.pool("marked", { subnet: "10.9.0.0/24" });
  await install({ kind: "Mutating", operations: ["CREATE", "UPDATE"] });
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
