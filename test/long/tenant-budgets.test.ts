/**
 * The budget of tenants' objects (docs/develop/security.md, "What is kept of tenants' objects"): of each kind ten times
 * as much as an agent keeps, in the form that takes most of the heap for its text, on a built agent of a real API
 * server. The agent lives, also through a start among these objects, and serves all others. Printed: its memory, and
 * how long the others' ADDs took, quiet and while the tenant goes on. So is one pod measured that asks for all that it
 * may.
 *
 *   node_modules/.bin/vitest run --project long test/long/tenant-budgets.test.ts
 */
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { berthctl } from "../e2e/symptoms/node.ts";
import { startControllerProcess } from "../lab/cluster/controller-process.ts";
import * as objects from "../lab/cluster/objects.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import { runPlugin } from "../lab/cnitool.ts";
import { runCommand } from "../lab/command.ts";
import type { KubeObject } from "../lab/kube-client.ts";
import { inParallel } from "../lab/parallel.ts";
import { daemonRssMib, percentile } from "../lab/statistics.ts";

const NODE = "n1";
/** More than ten times an agent's budget: bytes. */
const WANTED = 10 * 32 * 1024 * 1024;
const MAX_RSS_MIB = 200;
/** So much slower may others' ADDs be. */
const MAX_RATIO = 3;
/** Others' ADDs in each turn. Quiet and attacked take turns, so that other load of the machine falls on both. */
const ADDS = 30;
const TURNS = 4;
/** Objects that the tenant writes in a second while others are measured: a client of Kubernetes' Go library. */
const CLIENT_RATE = 5;

let world: World;
let pods = 0;
beforeAll(async () => {
  const pools = [{ name: "blue", subnet: "10.32.0.0/16", default: true }];
  world = await startWorld({ namespaces: ["shop", "evil", "bank"], pools, isDirect: true });
  await world.addNode(NODE, { agent: { args: ["--metrics-listen", "127.0.0.1:0"] } });
  await others(ADDS);
}, 300_000);

afterAll(() => world?.stop());

const agent = () => world.node(NODE).agent;

async function call(command: "ADD" | "DEL", pod: objects.LabPod) {
  const { exitCode, text } = await run(command, pod);
  expect(exitCode, text).toBe(0);
}

function run(command: "ADD" | "DEL", { namespace, name, uid }: objects.LabPod) {
  return runPlugin({
    ...{ plugin: "berth", command, containerId: `${namespace}-${name}`, ifName: "eth0", env: agent().env },
    args: `IgnoreUnknown=1;K8S_POD_NAMESPACE=${namespace};K8S_POD_NAME=${name};K8S_POD_UID=${uid}`,
    netns: world.node(NODE).netnsPath,
    stdin: { cniVersion: "1.0.0", name: "lan", type: "macvlan", ipam: { type: "berth" } },
  });
}

/** Milliseconds. */
interface Samples {
  readonly addMs: number[];
  /** Of the pods' objects, in which Berth has no part. */
  readonly createMs: number[];
}

async function others(count: number): Promise<Samples> {
  const samples: Samples = { addMs: [], createMs: [] };
  for (let at = 0; at < count; at++) {
    const createdMs = performance.now();
    const pod = await objects.createPod(world.client, { name: `other-${pods++}`, node: NODE });
    const startedMs = performance.now();
    await call("ADD", pod);
    samples.addMs.push(performance.now() - startedMs);
    samples.createMs.push(startedMs - createdMs);
    await call("DEL", pod);
    await objects.deletePod(world.client, pod);
  }
  return samples;
}

/** The 99th of a hundred: of ADDs, quiet and meanwhile, and of creations. */
const slowestOf = (quiet: Samples, meanwhile: Samples) =>
  [quiet.addMs, meanwhile.addMs, quiet.createMs, meanwhile.createMs].map((all) => percentile(all, 0.99)) as [
    ...[number, number, number, number],
  ];

function take(all: Samples, { addMs, createMs }: Samples): void {
  all.addMs.push(...addMs);
  all.createMs.push(...createMs);
}

/** Of others, quiet and while the tenant goes on. */
async function inTurns(goOn: () => Promise<unknown>, adds = ADDS): Promise<readonly [Samples, Samples]> {
  const [quiet, meanwhile]: [Samples, Samples] = [
    { addMs: [], createMs: [] },
    { addMs: [], createMs: [] },
  ];
  for (let turn = 0; turn < TURNS; turn++) {
    take(quiet, await others(adds));
    let isOver = false;
    const goingOn = (async () => {
      while (!isOver) await goOn();
    })();
    const samples = await others(adds).finally(() => {
      isOver = true;
    });
    take(meanwhile, samples);
    await goingOn;
  }
  return [quiet, meanwhile];
}

/** The highest that it ever was. */
function peakRssMib(): number {
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${agent().pid}/status`, "utf8"))?.[1]) / 1024;
}

const keysOf = (at: number, count: number, value = "x") =>
  Object.fromEntries(Array.from({ length: count }, (_, key) => [`k${at}x${key}`, value]));

const DEFINITIONS = "/apis/k8s.cni.cncf.io/v1/namespaces/evil/network-attachment-definitions";
const PODS = `${objects.NAMESPACES}/evil/pods`;

/** The problems' words about unused objects; "": they are small for the agent. */
const MORE = "would take more";
const EMPTY_OBJECTS = Array(21_666).fill({});

const definition = (x: unknown, type: object = { type: "coordinator" }) => ({
  apiVersion: "k8s.cni.cncf.io/v1",
  kind: "NetworkAttachmentDefinition",
  spec: { config: JSON.stringify({ name: "x", ...type, x }) },
});
const macvlan = { type: "macvlan", ipam: { type: "berth" } };
const podOf = (more: object) => objects.podObject({ name: "", namespace: "evil", node: NODE, ...more });

const namespaceOf = (metadata: object) => objects.namespaceObject("", metadata) as KubeObject;

/** `bytes`: the size of one object in the agent's memory without a limit. */
type Row = readonly [what: string, bytes: number, path: string, make: (at: number) => KubeObject, unused: string];
const rows: readonly Row[] = [
  ["definitions for another plugin", 1_390_000, DEFINITIONS, () => definition(EMPTY_OBJECTS, macvlan), ""],
  ["definitions with empty objects for Berth", 1_390_000, DEFINITIONS, () => definition(EMPTY_OBJECTS), MORE],
  ["definitions with many empty objects", 60_000, DEFINITIONS, () => definition(Array(980).fill({})), MORE],
  ["definitions with many short keys", 60_000, DEFINITIONS, (at) => definition(keysOf(at, 340)), MORE],
  ["definitions with long lists of numbers", 60_000, DEFINITIONS, () => definition(Array(2_600).fill(1)), MORE],
  [
    "pods with as many annotations as an object may have",
    ...([256_000, PODS, (at: number) => podOf({ annotations: keysOf(at, 15, "x".repeat(16_000)) }), ""] as const),
  ],
  ["pods with many labels", 24_000, PODS, (at) => podOf({ labels: keysOf(at, 128) }), MORE],
  ["namespaces with many labels", 60_000, objects.NAMESPACES, (at) => namespaceOf({ labels: keysOf(at, 330) }), MORE],
];

/** Many take the server longer than a client waits. */
async function deleteAll(path: string): Promise<void> {
  const deletion = (): Promise<boolean> =>
    world.client.delete(path, { gracePeriodSeconds: 0 }).then(
      () => true,
      () => false,
    );
  await expect.poll(deletion, { timeout: 600_000, interval: 1_000 }).toBe(true);
}

it("an unused object is named by `check`, a metric, Events and the controller's status; its pods are served", async () => {
  const labels = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`k${at}`, "x"]));
  await world.client.create(objects.NAMESPACES, objects.namespaceObject("evil-labels", { labels }));
  const controller = await startControllerProcess({ kubeconfig: await world.controllerKubeconfig(), name: "one" });
  world.defer(() => controller.kill());
  const wanted = "Of namespace evil-labels are not used: Namespaces evil-labels; each is longer than 262144 characters";
  const patience = { timeout: 120_000, interval: 1_000 };
  await expect.poll(() => berthctl(agent().socket, "check"), patience).toContain(wanted);
  await expect.poll(async () => JSON.stringify(await controller.status()), patience).toContain(wanted);
  const events = async (): Promise<string[]> => {
    const { items } = await world.client.get("/apis/events.k8s.io/v1/events");
    return items.map((each: KubeObject) => `${each.reason} ${each.regarding.kind} ${each.regarding.name} ${each.note}`);
  };
  await expect.poll(events, patience).toContainEqual(expect.stringMatching(/ObjectsNotUsed Node n1 .* by the agent/));
  const atNamespace = /ObjectsNotUsed Namespace evil-labels .* by the controller/;
  await expect.poll(events, patience).toContainEqual(expect.stringMatching(atNamespace));
  const url = /"metrics":"(?<url>http:[^"]+)"/.exec(agent().stderr())?.groups?.url;
  const metrics = await (await fetch(`${url}/metrics`)).text();
  expect(metrics).toMatch(/^berth_watch_unused_objects{collection="Namespaces"} [1-9]/m);
  await call("ADD", await objects.createPod(world.client, { name: "web-0", namespace: "evil", node: NODE }));
});

it.each(rows)("%s", { timeout: 1_800_000 }, async (what, bytes, path, make, unused) => {
  // Of the row before, its heap would be this one's.
  await agent().kill("SIGKILL");
  await agent().start();
  const { pid } = agent();
  const count = Math.ceil(WANTED / bytes);
  const put = (at: number): Promise<unknown> => {
    const made = make(at);
    return world.client.create(path, { ...made, metadata: { ...made.metadata, name: `evil-${at}` } });
  };
  const first = performance.now();
  await inParallel([...Array(count).keys()], 8, put);
  const filledMs = performance.now() - first;
  let next = count;
  const [quiet, meanwhile] = await inTurns(async () => {
    await put(next++);
    await sleep(1_000 / CLIENT_RATE);
  });
  const { problems } = await agent().get("/v1/health");
  const livedMib = peakRssMib();
  expect(agent().pid, "the agent is another one").toBe(pid);
  await agent().kill("SIGKILL");
  const killedMs = performance.now();
  await agent().start();
  const status = async () => (await agent().get("/v1/health")).status;
  await vi.waitFor(async () => expect(await status()).toBe("ready"), { timeout: 120_000, interval: 1_000 });
  const readyMs = performance.now() - killedMs;
  await others(10);
  const startedMib = peakRssMib();
  const [quietP99, p99, createQuiet, create] = slowestOf(quiet, meanwhile);
  console.log(
    `${what}: ${count} in ${(filledMs / 1000).toFixed(0)} s; RSS at most ${livedMib.toFixed(0)} MiB, ` +
      `started among them in ${(readyMs / 1000).toFixed(0)} s ${startedMib.toFixed(0)} MiB, now ${daemonRssMib(agent().pid).toFixed(0)} MiB; ` +
      `p99 of others ${quietP99.toFixed(1)} -> ${p99.toFixed(1)} ms (x ${(p99 / quietP99).toFixed(2)}); ` +
      `bare creations ${createQuiet.toFixed(1)} -> ${create.toFixed(1)} ms; problems: ${problems.map((text: string) => text.slice(-90)).join(" | ")}`,
  );
  expect(problems.join()).toContain(unused);
  // Each row alone is ten times the budget. Nothing here deletes namespaces.
  if (path !== objects.NAMESPACES) await deleteAll(path);
  expect(livedMib).toBeLessThan(MAX_RSS_MIB);
  expect(startedMib).toBeLessThan(MAX_RSS_MIB);
  expect(p99 / quietP99).toBeLessThanOrEqual(Math.max(MAX_RATIO, create / createQuiet));
});

const list = (ipv4: string[]) => ({
  ippools: Array.from({ length: 32 }, (_, at) => ({ interface: at === 0 ? "eth0" : `x${at}`, ipv4 })),
});

describe("one pod, where there are a thousand pools of which half are the bank's,", () => {
  beforeAll(async () => {
    const own = (at: number) => ({ default: false, ...(at % 2 === 1 ? { namespaceName: ["bank"] } : {}) });
    const poolOf = (at: number) =>
      objects.poolObject({ name: `p${at}`, subnet: `10.${64 + (at >> 8)}.${at & 255}.0/24`, ...own(at) });
    // An API server is on machines of its own.
    for (const [at, pids] of [world.plane.pids, [agent().pid, process.pid]].entries())
      for (const pid of pids) await runCommand(["taskset", "-acp", `${at % availableParallelism()}`, `${pid}`]);
    await inParallel([...Array(1_000).keys()], 8, (at) => world.client.create(objects.POOLS, poolOf(at)));
    await vi.waitFor(async () => expect(await agent().get("/v1/pools")).toHaveLength(1_001), { timeout: 60_000 });
  }, 300_000);

  it.each<[what: string, annotations: Record<string, unknown>, said: string]>([
    ["32 NICs of others' pools", list(["p*1", "p*3", "p*5", "p*7", "p*9"]), "500 pools: is for other namespaces"],
    [
      "64 patterns",
      { ippool: { ipv4: Array.from({ length: 64 }, (_, at) => `p${"*".repeat(1 + (at >> 2))}${1 + 2 * (at % 4)}`) } },
      "is for other namespaces",
    ],
    ["a list of NICs that the pod does not have", list(["p*"]), "10."],
  ])("with %s", { timeout: 1_800_000 }, async (what, annotations, said) => {
    const { pid } = agent();
    const strike = async (): Promise<string> => {
      const spec = { name: `evil-${pods++}`, namespace: "evil", node: NODE, annotations };
      const pod = await objects.createPod(world.client, spec);
      const { exitCode, text } = await run("ADD", pod);
      const isIts = ({ spec }: KubeObject) => spec.holders?.[0]?.podUID === pod.uid;
      expect((await world.allocations()).filter(isIts).length).toBeLessThanOrEqual(1);
      if (exitCode === 0) await call("DEL", pod);
      await objects.deletePod(world.client, pod);
      return text;
    };
    const [text, beforeMib] = [await strike(), daemonRssMib(pid)];
    expect(text).toContain(said);
    expect([text.includes("bank"), text.length < 10_000]).toEqual([false, true]);
    expect(agent().stderr()).not.toMatch(/[^\n]{16384}/);
    const [quiet, meanwhile] = await inTurns(strike, 5 * ADDS);
    const grownMib = daemonRssMib(agent().pid) - beforeMib;
    const [before, after, createQuiet, create] = slowestOf(quiet, meanwhile);
    console.log(`${what}: RSS +${grownMib.toFixed(1)} MiB, others' p99 ${before.toFixed(1)} -> ${after.toFixed(1)} ms`);
    expect([agent().pid, grownMib < 32], "the agent is another one, or grew").toEqual([pid, true]);
    expect(after / before).toBeLessThanOrEqual(Math.max(MAX_RATIO, create / createQuiet));
  });
});
