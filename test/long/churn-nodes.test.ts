/**
 * Churn on three real nodes: first with agents that restart, while `kubectl berth check` finds nothing that is no
 * damage, then with faults of everything that Berth stands on. A census of the kernel finds no address on two NICs at
 * any moment, the members of the set keep theirs, and in the end nothing is left anywhere.
 *
 *   BERTH_CHURN_S=60 BERTH_SEED=7 vitest run --project long test/long/churn-nodes.test.ts
 */
import { readdir } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { seededRandom } from "../lab/cluster/api-faults.ts";
import { requireCommand } from "../lab/command.ts";
import { type Census, startCensus } from "../lab/nodes/census.ts";
import { NAMESPACE, type RealCluster, startRealCluster } from "../lab/nodes/cluster.ts";
import type { RealNode } from "../lab/nodes/node.ts";
import { type Observer, observe } from "../lab/nodes/observe.ts";
import { deploymentOf, paths, podOf, statefulSetOf } from "../lab/nodes/workloads.ts";
import { untilDefined } from "../lab/waiting.ts";
import { Operator } from "../nodes/operator.ts";

const DURATION_MS = Number(process.env.BERTH_CHURN_S ?? 240) * 1_000;
const SEED = Number(process.env.BERTH_SEED ?? Date.now() % 2 ** 31);
const MEMBERS = 4;
const MAX_BARE_PODS = 6;
const MAX_REPLICAS = 10;
/** The part without faults. */
const CHECKED_MS = DURATION_MS / 4;
/** After the last fault, until all pods are Ready and every address fits. */
const RECOVERY_MS = 180_000;
const deployments = paths.deployments(NAMESPACE);
const sets = paths.statefulSets(NAMESPACE);
const pods = paths.pods(NAMESPACE);
const WITH_PODS = { propagationPolicy: "Background" };

let cluster: RealCluster;
let seen: Observer;
beforeAll(async () => {
  cluster = await startRealCluster({ nodes: 3, controllers: 2, isObserved: true });
  seen = observe(cluster);
}, 300_000);
afterAll(() => cluster?.stop());

/** A call of the API server may be lost while that is paused: a call that is repeated later need not succeed now. */
async function attempt(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch {
    return false;
  }
}

/** Until it has succeeded once. */
async function insist(work: () => Promise<unknown>): Promise<void> {
  await untilDefined(
    async () => (await attempt(work)) || undefined,
    () => String(work),
    RECOVERY_MS,
  );
}

type Random = () => number;
type Step = (random: Random) => Promise<unknown>;
const pick = <T>(random: Random, items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
const below = (random: Random, most: number): number => Math.floor(random() * most);

let barePods = 0;
const WORKLOAD_STEPS: Readonly<Record<string, Step>> = {
  "starts a pod": async () => {
    const running = (await seen.pods()).filter(({ metadata }) => metadata.name.startsWith("bare-"));
    if (running.length < MAX_BARE_PODS) await cluster.client.create(pods, podOf({ name: `bare-${++barePods}` }));
  },
  "ends a pod": async (random) => {
    const running = (await seen.pods()).filter(({ metadata }) => metadata.name.startsWith("bare-"));
    if (running.length > 0) await cluster.client.delete(`${pods}/${pick(random, running).metadata.name}`);
  },
  "scales the Deployment": (random) =>
    cluster.client.patch(`${deployments}/web`, { spec: { replicas: below(random, MAX_REPLICAS + 1) } }),
  "rolls the Deployment": () => cluster.client.patch(`${deployments}/web`, newTemplate()),
  "ends a member": (random) => cluster.client.delete(`${pods}/db-${below(random, MEMBERS)}`),
  "ends a member by force": (random) =>
    cluster.client.delete(`${pods}/db-${below(random, MEMBERS)}`, { gracePeriodSeconds: 0 }),
  "rolls the StatefulSet": () => cluster.client.patch(`${sets}/db`, newTemplate()),
};

let versions = 1;
const newTemplate = (): object => ({ spec: { template: { metadata: { labels: { version: String(++versions) } } } } });

const node = (random: Random): RealNode => pick(random, cluster.nodes);
/** Each ends by undoing itself. */
const FAULTS: Readonly<Record<string, Step>> = {
  "kills an agent": (random) => node(random).restartAgent(),
  "kills a controller": (random) => cluster.restartController(below(random, 2)),
  "pauses the API server": async (random) => {
    const { pid } = cluster.plane.server;
    process.kill(pid, "SIGSTOP");
    try {
      await sleep(1_000 + 5_000 * random());
    } finally {
      process.kill(pid, "SIGCONT");
    }
  },
  "kills a kubelet": (random) => node(random).restart("kubelet", "SIGKILL"),
  "hangs a kubelet, and forces a member away": async (random) => {
    const hung = node(random);
    hung.signal("kubelet", "SIGSTOP");
    try {
      for (const { metadata, spec } of await seen.pods("db").catch(() => []))
        if (spec.nodeName === hung.name)
          await attempt(() => cluster.client.delete(`${pods}/${metadata.name}`, { gracePeriodSeconds: 0 }));
      await sleep(10_000);
    } finally {
      hung.signal("kubelet", "SIGCONT");
    }
  },
  "kills a containerd": (random) => node(random).restart("containerd", "SIGKILL"),
};

/** Carries out steps at random until `isOver`, and counts them by name; those that failed are counted as such. */
async function churn(
  steps: Readonly<Record<string, Step>>,
  options: {
    readonly random: Random;
    readonly pauseMs: number;
    readonly isOver: () => boolean;
    readonly insists: boolean;
  },
): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  while (!options.isOver()) {
    const [name, step] = pick(options.random, Object.entries(steps));
    // A fault that cannot be taken back is a fault of the lab.
    const isDone = options.insists
      ? await step(options.random).then(() => true)
      : await attempt(() => step(options.random));
    const key = isDone ? name : `${name}, unanswered`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
    await sleep(options.pauseMs * (0.5 + options.random()));
  }
  return counts;
}

const textOf = (counts: ReadonlyMap<string, number>): string =>
  [...counts].map(([name, count]) => `${name} ${count}`).join(", ");

async function memberAddresses(): Promise<string[]> {
  return (await seen.pods("db")).map(({ metadata, status }) => `${metadata.name} ${status.podIP}`).sort();
}

/**
 * Links, routes and namespaces of pods that are left on the node. The rule of the table stays: it belongs to the node.
 */
async function leftOnNode({ name, machine }: RealNode): Promise<string[]> {
  const run = async (argv: readonly string[], own: RegExp): Promise<string[]> =>
    (await requireCommand(argv)).split("\n").filter((line) => line !== "" && !own.test(line));
  const links = await run(machine.enter(["ip", "-o", "link"]), /^\d+: (?:lo|eth0)[:@]/);
  const routes = await run(machine.enter(["sh", "-c", "ip route show table 500 2>/dev/null || true"]), /^$/);
  const folder = `${machine.root}/run/netns`;
  const namespaces = await readdir(folder).catch(() => []);
  // A killed containerd may forget a namespace that it has just made, without a NIC. Others may have gone by now.
  const nics = namespaces.map((each) =>
    run(["nsenter", `--net=${folder}/${each}`, "ip", "-o", "link"], /^\d+: lo:/).catch(() => []),
  );
  return [...links, ...routes, ...(await Promise.all(nics)).flat()].map((text) => `${name}: ${text}`);
}

async function leftInAgent({ name, agent }: RealNode): Promise<string[]> {
  const { spool, problems } = await agent.get("/v1/health");
  const rows = (await agent.get("/v1/allocations")).map((row: unknown) => `${name}: ${JSON.stringify(row)}`);
  return [...rows, ...(spool > 0 ? [`${name}: ${spool} spooled`] : []), ...problems];
}

/** Asks again and again, from the first state of the pods on. Returns its comparisons as text. */
async function checkUntil(isOver: () => boolean): Promise<string> {
  using operator = new Operator(cluster, ["node1", "node2", "node3"]);
  const away = new Set<string>();
  let [checks, compared] = [0, 0];
  for (; !isOver(); checks++) {
    const { report, found } = await operator.check();
    // Of an agent that has just started.
    expect(
      found.filter((finding) => !finding.startsWith("agent ")),
      `seed ${SEED}`,
    ).toEqual([]);
    // An agent that starts does not answer.
    for (const { level, node, text } of report.findings) if (level === "unknown") away.add(`${node}: ${text}`);
    compared += report.nodes.reduce((sum, { attachments }) => sum + attachments, 0);
  }
  expect(compared).toBeGreaterThan(checks);
  return `${checks} checks, ${compared} comparisons of attachments, not compared: ${[...away].join("; ") || "none"}`;
}

function expectNoDuplicate(census: Census): void {
  expect(census.duplicates(), `seed ${SEED}`).toEqual([]);
}

it(
  `${DURATION_MS / 1_000} s of churn with faults: no address twice, members keep theirs, nothing is left`,
  async () => {
    await cluster.client.create(deployments, deploymentOf({ name: "web", replicas: 5 }));
    await cluster.client.create(sets, statefulSetOf({ name: "db", replicas: MEMBERS }));
    await cluster.client.create(deployments, deploymentOf({ name: "still", replicas: 6 }));
    for (const [name, count] of [
      ["web", 5],
      ["db", MEMBERS],
      ["still", 6],
    ] as const)
      await seen.untilReady(name, count);
    const before = await memberAddresses();
    await using census = startCensus(cluster);

    const { "ends a member by force": _, ...quietSteps } = WORKLOAD_STEPS;
    const { "kills an agent": kill } = FAULTS;
    const random = seededRandom(SEED);
    const faultsMs = performance.now() + CHECKED_MS;
    const isChecked = (): boolean => performance.now() > faultsMs;
    const [checked] = await Promise.all([
      checkUntil(isChecked),
      churn(quietSteps, { random, pauseMs: 1_000, isOver: isChecked, insists: false }),
      churn({ kill: kill as Step }, { random, pauseMs: 15_000, isOver: isChecked, insists: true }),
    ]);
    console.log(checked);
    await insist(() => cluster.client.delete(`${deployments}/still`, WITH_PODS));

    const endMs = performance.now() + DURATION_MS - CHECKED_MS;
    const isOver = (): boolean => performance.now() > endMs || census.duplicates().length > 0;
    const [works, faults] = await Promise.all([
      churn(WORKLOAD_STEPS, { random: seededRandom(SEED), pauseMs: 1_000, isOver, insists: false }),
      churn(FAULTS, { random: seededRandom(SEED + 1), pauseMs: 8_000, isOver, insists: true }),
    ]);
    console.log(`seed ${SEED}: ${textOf(works)}; faults: ${textOf(faults)}`);
    expectNoDuplicate(census);

    await insist(() => cluster.client.patch(`${deployments}/web`, { spec: { replicas: 5 } }));
    const calmMs = performance.now();
    const isWell = async (): Promise<true | undefined> => {
      const all = await seen.pods();
      const isUp = all.every(
        ({ metadata, status }) => metadata.deletionTimestamp === undefined && status.phase === "Running",
      );
      const counts = [
        all.filter(({ metadata }) => metadata.labels.app === "web").length,
        (await seen.pods("db")).length,
      ];
      return (isUp && counts.join() === `5,${MEMBERS}` && (await seen.audit()).length === 0) || undefined;
    };
    await untilDefined(isWell, async () => `seed ${SEED}: ${(await seen.audit()).join("\n")}`, RECOVERY_MS);
    console.log(`well again ${Math.round(performance.now() - calmMs)} ms after the last fault`);
    expect(await memberAddresses(), `seed ${SEED}`).toEqual(before);

    for (const path of [`${deployments}/web`, `${sets}/db`]) await cluster.client.delete(path, WITH_PODS);
    for (const { metadata } of await seen.pods())
      if (metadata.name.startsWith("bare-")) await attempt(() => cluster.client.delete(`${pods}/${metadata.name}`));
    const noPods = async () => (await seen.pods()).length === 0 || undefined;
    await untilDefined(
      noPods,
      async () => (await seen.pods()).map(({ metadata }) => metadata.name).join(),
      RECOVERY_MS,
    );
    const returnedMs = await seen.untilReturned();
    const left = async (): Promise<string[]> => {
      const lists = await Promise.all(cluster.nodes.flatMap((each) => [leftOnNode(each), leftInAgent(each)]));
      return lists.flat();
    };
    const nothing = async () => (await left()).length === 0 || undefined;
    await untilDefined(nothing, async () => (await left()).join("\n"), RECOVERY_MS);
    expectNoDuplicate(census);
    const { samples, longestPauseMs } = census;
    console.log(
      `${samples} samples, the longest pause ${Math.round(longestPauseMs)} ms; all addresses back after ${Math.round(returnedMs)} ms`,
    );
    expect(samples).toBeGreaterThan((DURATION_MS / 1_000) * 2);
  },
  DURATION_MS + 1_200_000,
);
