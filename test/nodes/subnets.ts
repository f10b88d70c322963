import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeAll, expect, test } from "vitest";
import { parseIp } from "../../host/net/ip.ts";
import { parseRange } from "../../host/net/range.ts";
import type { KubeObject } from "../lab/kube-client.ts";
import { LAN } from "../lab/nodes/networks.ts";
import {
  cronJobOf,
  daemonSetOf,
  deploymentOf,
  jobOf,
  paths,
  runOf,
  statefulSetOf,
  type WorkloadSpec,
} from "../lab/nodes/workloads.ts";
import { untilDefined } from "../lab/waiting.ts";
import { cluster, NAMESPACE, seen } from "./shared-cluster.ts";

const GROUP = "/apis/ipam.vendor.io/v1";
const deployments = paths.deployments(NAMESPACE);
/** Pools follow their workloads at once; addresses of pods that have gone rest for a second. */
const FOLLOWED_MS = 60_000;
/** A kubelet tries a pod again some ten seconds after it failed. */
const REFUSED_MS = 60_000;

/** All in the nodes' own network. */
const SUBNETS = {
  first: "10.99.40.1-10.99.40.254",
  second: "10.99.41.1-10.99.41.254",
  tiny: "10.99.42.1-10.99.42.6",
} as const;

beforeAll(async () => {
  const { subnet, gateway } = LAN;
  for (const [name, ips] of Object.entries(SUBNETS))
    await cluster.client.create(`${GROUP}/subnets`, {
      ...{ apiVersion: "ipam.vendor.io/v1", kind: "Subnet", metadata: { name } },
      spec: { subnet, gateway, ips: [ips] },
    });
});
/** Every pool and every address comes back after every test. */
afterEach(async () => {
  await seePools();
  await seen.untilReturned();
  const assigned = async (): Promise<string> => {
    const { items } = await cluster.client.get(`${GROUP}/subnets`);
    return items.map(({ status }: KubeObject) => status?.assigned).join();
  };
  await untilDefined(async () => (await assigned()) === "0,0,0" || undefined, assigned, FOLLOWED_MS);
});

const from = (name: keyof typeof SUBNETS) => ({ "ipam.vendor.io/subnet": JSON.stringify({ ipv4: [name] }) });
const addressOf = (pod: KubeObject): string => pod.status.podIP;

function sizeOf(ips: readonly string[]): number {
  return ips.map(parseRange).reduce((sum, range) => {
    if (range === undefined) throw new TypeError(`${ips.join()} are no ranges`);
    return sum + Number(range.last.value - range.first.value) + 1;
  }, 0);
}

async function generatedPools(): Promise<KubeObject[]> {
  const { items } = await cluster.client.get(`${GROUP}/ippools`);
  return items.filter(({ spec }: KubeObject) => spec.generated !== undefined);
}

/** `first Deployment/web 11 of 11`, all of them, sorted. */
async function poolLines(): Promise<string[]> {
  const lines = (await generatedPools()).map(({ spec }) => {
    const { subnet, application, wanted } = spec.generated;
    return `${subnet} ${application.kind}/${application.name} ${sizeOf(spec.ips)} of ${wanted}`;
  });
  return lines.sort();
}

/** Waits until these are all. */
async function seePools(...wanted: readonly string[]): Promise<void> {
  const isSo = async () => (await poolLines()).join() === [...wanted].sort().join() || undefined;
  const describe = async () => `${wanted.join(", ") || "no pool"}; there are ${(await poolLines()).join(", ")}`;
  await untilDefined(isSo, describe, FOLLOWED_MS);
}

function expectFrom(name: keyof typeof SUBNETS, pods: readonly KubeObject[]): void {
  const range = parseRange(SUBNETS[name]);
  for (const pod of pods) {
    const value = parseIp(addressOf(pod))?.value ?? 0n;
    const isIn = range !== undefined && range.first.value <= value && value <= range.last.value;
    expect(isIn, `${pod.metadata.name} has ${addressOf(pod)} of ${SUBNETS[name]}`).toBe(true);
  }
}

async function remove(collection: string, name: string): Promise<void> {
  await cluster.client.delete(`${collection}/${name}`, { propagationPolicy: "Background" });
  await seen.untilGone(name);
}

test("a Deployment's pool comes, grows, shrinks, moves to another Subnet and goes with it", async () => {
  const web = (more: Partial<WorkloadSpec>) => {
    const object = deploymentOf({ name: "web", replicas: 10, annotations: from("first"), ...more });
    const strategy = { rollingUpdate: { maxSurge: 4, maxUnavailable: 0 } };
    return { ...object, spec: { ...object.spec, strategy } };
  };
  await cluster.client.create(deployments, web({}));
  expectFrom("first", await seen.untilReady("web", 10));
  await seePools("first Deployment/web 11 of 11");
  await seen.untilConsistent();

  await cluster.client.patch(`${deployments}/web`, { spec: web({ version: "2" }).spec });
  const sizes: number[] = [];
  const isNew = ({ metadata }: KubeObject): boolean => metadata.labels.version === "2";
  const rolled = seen.untilReady("web", 10, isNew);
  await whilePending(rolled, async () => sizes.push(...(await generatedPools()).map(({ spec }) => sizeOf(spec.ips))));
  expectFrom("first", await rolled);
  // 10 replicas and 4 more, and those that are ending.
  expect(Math.max(...sizes)).toBeGreaterThanOrEqual(14);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(10 + 4 + 10);
  await seePools("first Deployment/web 11 of 11");

  await cluster.client.patch(`${deployments}/web`, { spec: { replicas: 4 } });
  await seen.untilReady("web", 4);
  await seePools("first Deployment/web 5 of 5");

  const edited = web({ replicas: 4, version: "3", annotations: from("second") });
  await cluster.client.patch(`${deployments}/web`, { spec: edited.spec });
  const moved = await seen.untilReady("web", 4, ({ metadata }) => metadata.labels.version === "3");
  expectFrom("second", moved);
  await seePools("second Deployment/web 5 of 5");
  await seen.untilConsistent();
  await seen.reach(moved[0], moved);
  await remove(deployments, "web");
});

/** Repeats the call until the other promise is resolved. */
async function whilePending(pending: Promise<unknown>, call: () => Promise<unknown>): Promise<void> {
  let isPending = true;
  const end = (): void => {
    isPending = false;
  };
  pending.then(end, end);
  while (isPending) {
    await call();
    await sleep(50);
  }
}

test("StatefulSet, DaemonSet, Job and CronJob have pools of their own", async () => {
  const { client } = cluster;
  const annotations = from("first");
  const brief = { annotations, busybox: ["sleep", "4"] };
  await client.create(paths.statefulSets(NAMESPACE), statefulSetOf({ name: "db", replicas: 3, annotations }));
  await client.create(paths.daemonSets(NAMESPACE), daemonSetOf({ name: "log", annotations }));
  await client.create(paths.jobs(NAMESPACE), jobOf({ name: "sum", replicas: 4, ...brief }));
  const nightly = cronJobOf({ name: "nightly", replicas: 2, ...brief });
  const created = await client.create(paths.cronJobs(NAMESPACE), nightly);
  await seePools(
    "first StatefulSet/db 4 of 4",
    "first DaemonSet/log 4 of 4",
    "first Job/sum 5 of 5",
    "first CronJob/nightly 3 of 3",
  );
  await client.create(paths.jobs(NAMESPACE), runOf(created, "tonight"));
  expectFrom("first", await seen.untilReady("db", 3));
  expectFrom("first", await seen.untilReady("log", 3));
  await untilSucceeded("sum", 4);
  await untilSucceeded("tonight", 2);
  // A Job that has finished needs nothing more, though it is still there.
  await seePools("first StatefulSet/db 4 of 4", "first DaemonSet/log 4 of 4", "first CronJob/nightly 3 of 3");
  await Promise.all([
    remove(paths.statefulSets(NAMESPACE), "db"),
    remove(paths.daemonSets(NAMESPACE), "log"),
    remove(paths.jobs(NAMESPACE), "sum"),
    remove(paths.cronJobs(NAMESPACE), "nightly"),
  ]);
});

async function untilSucceeded(job: string, count: number): Promise<void> {
  const path = `${paths.jobs(NAMESPACE)}/${job}`;
  const status = async (): Promise<KubeObject> => (await cluster.client.get(path)).status;
  await untilDefined(
    async () => (await status()).succeeded === count || undefined,
    () => status().then(JSON.stringify),
    REFUSED_MS,
  );
}

test("of a full Subnet pods wait with a reason, and start by themselves when another workload goes", async () => {
  const annotations = from("tiny");
  await cluster.client.create(deployments, deploymentOf({ name: "before", replicas: 5, annotations }));
  await seen.untilReady("before", 5);
  await seePools("tiny Deployment/before 6 of 6");
  await cluster.client.create(deployments, deploymentOf({ name: "after", replicas: 2, annotations }));
  for (const kind of ["Deployment", "Pod"]) {
    const told = await untilDefined(
      () => warningOf(kind, "after"),
      () => seen.pods("after").then(JSON.stringify),
      REFUSED_MS,
    );
    console.log(`${kind}: ${told}`);
    expect(told).toMatch(/Subnet "tiny" has 0 free of 6/);
  }
  await seePools("tiny Deployment/before 6 of 6", "tiny Deployment/after 0 of 3");
  await remove(deployments, "before");
  expectFrom("tiny", await seen.untilReady("after", 2));
  await remove(deployments, "after");
});

/** Returns a Subnet's warning about an object of that kind whose name begins so. */
async function warningOf(kind: string, name: string): Promise<string | undefined> {
  const { items } = await cluster.client.get(`/api/v1/namespaces/${NAMESPACE}/events?fieldSelector=type%3DWarning`);
  const isOne = ({ type, involvedObject: about }: KubeObject): boolean =>
    type === "Warning" && about.kind === kind && about.name.startsWith(name);
  return items
    .filter(isOne)
    .map(({ message }: KubeObject) => message)
    .find((text: string) => text.includes("Subnet"));
}
