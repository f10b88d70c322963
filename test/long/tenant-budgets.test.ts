/**
 * The budget of what tenants write (docs/develop/security.md, "What is kept of tenants' objects"): of each kind ten
 * times as much as an agent keeps, in the form that takes most of the heap for its text, on a built agent of a real API
 * server.
 * The agent lives, also through a start among these objects, and serves all others. Printed: its memory, and how long
 * the others' ADDs took, quiet and while the tenant goes on.
 *
 *   node_modules/.bin/vitest run --project long test/long/tenant-budgets.test.ts
 */
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import * as objects from "../lab/cluster/objects.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import { runPlugin } from "../lab/cnitool.ts";
import { inParallel } from "../lab/parallel.ts";
import { daemonRssMib, percentile } from "../lab/statistics.ts";

const NODE = "n1";
/** More than ten times what an agent keeps: bytes. */
const WANTED = 10 * 32 * 1024 * 1024;
const MAX_RSS_MIB = 200;
/** So much slower may others' ADDs be. */
const MAX_RATIO = 3;
/** Others' ADDs in each turn. Quiet and attacked take turns, so that what else the machine does falls on both. */
const ADDS = 30;
const TURNS = 4;
/** Objects that the tenant writes in a second while others are measured: a client of Kubernetes' Go library. */
const CLIENT_RATE = 5;

let world: World;
let pods = 0;
beforeAll(async () => {
  const pools = [{ name: "blue", subnet: "10.32.0.0/16", default: true }];
  world = await startWorld({ nodes: [NODE], namespaces: ["shop", "evil"], pools, isDirect: true });
  await others(ADDS);
}, 300_000);

afterAll(() => world?.stop());

const agent = () => world.node(NODE).agent;

async function call(command: "ADD" | "DEL", { namespace, name, uid }: objects.LabPod) {
  const { exitCode, text } = await runPlugin({
    ...{ plugin: "berth", command, containerId: `${namespace}-${name}`, ifName: "eth0", env: agent().env },
    args: `IgnoreUnknown=1;K8S_POD_NAMESPACE=${namespace};K8S_POD_NAME=${name};K8S_POD_UID=${uid}`,
    netns: world.node(NODE).netnsPath,
    stdin: { cniVersion: "1.0.0", name: "lan", type: "macvlan", ipam: { type: "berth" } },
  });
  expect(exitCode, text).toBe(0);
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

function take(all: Samples, { addMs, createMs }: Samples): void {
  all.addMs.push(...addMs);
  all.createMs.push(...createMs);
}

/** The highest that it ever was. */
function peakRssMib(): number {
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${agent().pid}/status`, "utf8"))?.[1]) / 1024;
}

const keysOf = (at: number, count: number, value = "x") =>
  Object.fromEntries(Array.from({ length: count }, (_, key) => [`k${at}x${key}`, value]));

const DEFINITIONS = "/apis/k8s.cni.cncf.io/v1/namespaces/evil/network-attachment-definitions";
const PODS = `${objects.NAMESPACES}/evil/pods`;

const definition = (name: string, config: object) => ({
  apiVersion: "k8s.cni.cncf.io/v1",
  kind: "NetworkAttachmentDefinition",
  metadata: { name },
  spec: { config: JSON.stringify(config) },
});

const many = (item: unknown, bytes: number): unknown[] =>
  Array(Math.floor(bytes / (JSON.stringify(item).length + 1))).fill(item);

const EMPTY_OBJECTS = many({}, 65_000);

interface Row {
  readonly what: string;
  /** What the agent would keep of one object without a limit: bytes. */
  readonly bytes: number;
  readonly path: string;
  readonly make: (at: number) => object;
  /** What the problems say of objects that are not used; "": they are small for the agent. */
  readonly unused: "" | "would take more";
}

const rows: readonly Row[] = [
  {
    what: "definitions with empty objects for another plugin",
    bytes: 1_390_000,
    path: DEFINITIONS,
    make: (at) => definition(`a${at}`, { name: "x", type: "macvlan", ipam: { type: "berth" }, x: EMPTY_OBJECTS }),
    unused: "",
  },
  {
    what: "definitions with empty objects for Berth",
    bytes: 1_390_000,
    path: DEFINITIONS,
    make: (at) => definition(`b${at}`, { name: "x", type: "coordinator", x: EMPTY_OBJECTS }),
    unused: "would take more",
  },
  {
    what: "definitions with many empty objects",
    bytes: 60_000,
    path: DEFINITIONS,
    make: (at) => definition(`c${at}`, { name: "x", type: "coordinator", x: Array(980).fill({}) }),
    unused: "would take more",
  },
  {
    what: "definitions with many short keys",
    bytes: 60_000,
    path: DEFINITIONS,
    make: (at) => definition(`d${at}`, { name: "x", type: "coordinator", x: keysOf(at, 340) }),
    unused: "would take more",
  },
  {
    what: "definitions with long lists of numbers",
    bytes: 60_000,
    path: DEFINITIONS,
    make: (at) => definition(`e${at}`, { name: "x", type: "coordinator", x: Array(2_600).fill(1) }),
    unused: "would take more",
  },
  {
    what: "pods with as many annotations as an object may have",
    bytes: 256_000,
    path: PODS,
    make: (at) => {
      const annotations = keysOf(at, 15, "x".repeat(16_000));
      return objects.podObject({ name: `a${at}`, namespace: "evil", node: NODE, annotations });
    },
    unused: "",
  },
  {
    what: "pods with many labels",
    bytes: 24_000,
    path: PODS,
    make: (at) => objects.podObject({ name: `b${at}`, namespace: "evil", node: NODE, labels: keysOf(at, 128) }),
    unused: "would take more",
  },
  {
    what: "namespaces with many labels",
    bytes: 60_000,
    path: objects.NAMESPACES,
    make: (at) => objects.namespaceObject(`evil-${at}`, { labels: keysOf(at, 330) }),
    unused: "would take more",
  },
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

it.each(rows)("$what", { timeout: 1_800_000 }, async ({ what, bytes, path, make, unused }) => {
  const { pid } = agent();
  const count = Math.ceil(WANTED / bytes);
  const first = performance.now();
  await inParallel([...Array(count).keys()], 8, (at) => world.client.create(path, make(at)));
  const filledMs = performance.now() - first;
  const [quiet, meanwhile]: [Samples, Samples] = [
    { addMs: [], createMs: [] },
    { addMs: [], createMs: [] },
  ];
  let next = count;
  for (let turn = 0; turn < TURNS; turn++) {
    take(quiet, await others(ADDS));
    let isOver = false;
    const goingOn = (async () => {
      for (; !isOver; next++) {
        await world.client.create(path, make(next));
        await sleep(1_000 / CLIENT_RATE);
      }
    })();
    take(
      meanwhile,
      await others(ADDS).finally(() => {
        isOver = true;
      }),
    );
    await goingOn;
  }
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
  const [quietP99, p99, createQuiet, create] = [
    percentile(quiet.addMs, 0.99),
    percentile(meanwhile.addMs, 0.99),
    percentile(quiet.createMs, 0.99),
    percentile(meanwhile.createMs, 0.99),
  ];
  console.log(
    `${what}: ${count} in ${(filledMs / 1000).toFixed(0)} s; RSS at most ${livedMib.toFixed(0)} MiB, ` +
      `started among them in ${(readyMs / 1000).toFixed(0)} s ${startedMib.toFixed(0)} MiB, now ${daemonRssMib(agent().pid).toFixed(0)} MiB; ` +
      `p99 of others ${quietP99.toFixed(1)} -> ${p99.toFixed(1)} ms (x ${(p99 / quietP99).toFixed(2)}); ` +
      `bare creations ${createQuiet.toFixed(1)} -> ${create.toFixed(1)} ms; problems: ${problems.map((text: string) => text.slice(-90)).join(" | ")}`,
  );
  expect(problems.join()).toContain(unused);
  // Each row alone is ten times what is kept. Nothing here deletes namespaces.
  if (path !== objects.NAMESPACES) await deleteAll(path);
  expect(livedMib).toBeLessThan(MAX_RSS_MIB);
  expect(startedMib).toBeLessThan(MAX_RSS_MIB);
  expect(p99 / quietP99).toBeLessThanOrEqual(Math.max(MAX_RATIO, create / createQuiet));
});
