/**
 * Attacks of one tenant on the agent of his node (docs/security.md, "What one tenant may hold"): each attack on a
 * built agent of a real API server with 1,000 pools, while other pods come and go. Objects that are many or large:
 * tenant-budgets.test.ts; owners that are made up: test/cluster/workloads.test.ts.
 */
import { execFile } from "node:child_process";
import { availableParallelism } from "node:os";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import * as objects from "../lab/cluster/objects.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import { runPlugin } from "../lab/cnitool.ts";
import { inParallel } from "../lab/parallel.ts";
import { daemonRssMib, percentile } from "../lab/statistics.ts";

const execFileAsync = promisify(execFile);

const POOLS = 1_000;
/** Others' ADDs in each measurement; the 99th of a hundred is the sixth slowest. */
const ADDS = 600;
/** Quiet and attacked take turns, so that what else the machine does falls on both. */
const TURNS = 4;
/** So much slower may others' ADDs be while an attack goes on. */
const MAX_RATIO = 3;
/** Memory that the attacks may add to the agent's, most of it left by calls and not yet collected. */
const MAX_GROWTH_MIB = 32;
const NODE = "n1";

let world: World;
let pods = 0;

const agent = () => world.node(NODE).agent;
const netns = () => world.node(NODE).netnsPath;

beforeAll(async () => {
  world = await startWorld({ nodes: [NODE], namespaces: ["shop", "evil", "bank"], isDirect: true });
  const pools = Array.from({ length: POOLS }, (_, at) => at);
  await inParallel(pools, 8, (at) => world.client.create(objects.POOLS, poolOf(at)));
  await vi.waitFor(async () => expect(await agent().get("/v1/pools")).toHaveLength(POOLS), { timeout: 60_000 });
  await pin(world.plane.pids, 0);
  await pin([agent().pid, process.pid], 1);
}, 300_000);

afterAll(() => world?.stop());

/** The control plane on one processor, the agent on the other: an API server is on machines of its own. */
async function pin(pids: readonly number[], processor: number): Promise<void> {
  if (availableParallelism() < 2) return;
  for (const pid of pids) await execFileAsync("taskset", ["-acp", `${processor}`, `${pid}`]);
}

/** The first is for all namespaces; half of the others are the bank's. */
function poolOf(at: number): object {
  const subnet = at === 0 ? "10.32.0.0/20" : `10.${64 + (at >> 8)}.${at & 255}.0/24`;
  const isBank = at % 2 === 1;
  return objects.poolObject({
    name: `p${at}`,
    subnet,
    default: at === 0,
    ...(isBank ? { namespaceName: ["bank"] } : {}),
  });
}

/** As runtimes of today call it: with the pod's UID, for which the watched pod will do. */
async function add({ namespace, name, uid }: objects.LabPod, ifName = "eth0") {
  const identity = `IgnoreUnknown=1;K8S_POD_NAMESPACE=${namespace};K8S_POD_NAME=${name};K8S_POD_UID=${uid}`;
  const call = {
    plugin: "berth",
    containerId: `${namespace}-${name}`,
    netns: netns(),
    ifName,
    args: identity,
  } as const;
  const stdin = { cniVersion: "1.0.0", name: "lan", type: "macvlan", ipam: { type: "berth" } };
  return runPlugin({ ...call, command: "ADD", stdin, env: agent().env });
}

async function del(namespace: string, name: string) {
  const call = { plugin: "berth", containerId: `${namespace}-${name}`, netns: netns(), ifName: "eth0" } as const;
  const stdin = { cniVersion: "1.0.0", name: "lan", type: "macvlan", ipam: { type: "berth" } };
  expect((await runPlugin({ ...call, command: "DEL", stdin, env: agent().env })).exitCode).toBe(0);
}

/** Milliseconds of the ADDs of `times` other pods, one after the other. */
async function others(times: number): Promise<number[]> {
  const samples: number[] = [];
  for (let count = 0; count < times; count++) {
    const pod = await objects.createPod(world.client, { name: `other-${pods++}`, node: NODE });
    const startedMs = performance.now();
    const { exitCode, text } = await add(pod);
    samples.push(performance.now() - startedMs);
    expect(exitCode, text).toBe(0);
    await del("shop", pod.name);
    await objects.deletePod(world.client, pod);
  }
  return samples;
}

/** Strikes until others have come and gone; gives their milliseconds. */
async function attacked(strikeOnce: () => Promise<unknown>, times: number): Promise<number[]> {
  let isOver = false;
  const attacking = (async () => {
    while (!isOver) await strikeOnce();
  })();
  const samples = await others(times).finally(() => {
    isOver = true;
  });
  await attacking;
  return samples;
}

/** Others' ADDs are hardly slower in turns with the attack than in those between, and the agent does not grow. */
async function measure(what: string, strikeOnce: () => Promise<unknown>): Promise<void> {
  const { pid } = agent();
  const quiet = await others(ADDS / TURNS);
  const beforeMib = daemonRssMib(pid);
  const meanwhile: number[] = [];
  for (let turn = 0; turn < TURNS; turn++) {
    meanwhile.push(...(await attacked(strikeOnce, ADDS / TURNS)));
    if (turn + 1 < TURNS) quiet.push(...(await others(ADDS / TURNS)));
  }
  const afterMib = daemonRssMib(agent().pid);
  const [before, after] = [percentile(quiet, 0.99), percentile(meanwhile, 0.99)];
  console.log(
    `${what}: RSS ${beforeMib.toFixed(1)} -> ${afterMib.toFixed(1)} MiB, p99 of others ${before.toFixed(1)} -> ${after.toFixed(1)} ms`,
  );
  expect(agent().pid, `${what}: the agent is another one`).toBe(pid);
  expect((await agent().request("/v1/health")).status).toBeLessThan(500);
  expect(afterMib - beforeMib).toBeLessThan(MAX_GROWTH_MIB);
  expect(after / before).toBeLessThanOrEqual(MAX_RATIO);
}

/** A pod of the tenant that asks for addresses; gives the refusal, or "". */
async function strike(annotations: Record<string, unknown>): Promise<{ text: string; refusal: string }> {
  const pod = await objects.createPod(world.client, {
    name: `evil-${pods++}`,
    namespace: "evil",
    node: NODE,
    annotations,
  });
  const { exitCode, text } = await add(pod);
  if (exitCode === 0) await del("evil", pod.name);
  await objects.deletePod(world.client, pod);
  return { text, refusal: exitCode === 0 ? "" : text };
}

const boundOf = async (namespace: string): Promise<number> => {
  const { items } = await world.client.get(objects.ALLOCATIONS);
  const isIts = ({ spec }: { spec: { holders?: { namespace: string }[] } }): boolean =>
    spec.holders?.[0]?.namespace === namespace;
  return items.filter(isIts).length;
};

describe("one tenant", () => {
  const list = (nics: number, ipv4: string[]) =>
    Array.from({ length: nics }, (_, at) => ({ interface: at === 0 ? "eth0" : `x${at}`, ipv4 }));

  it("with as many NICs and patterns as there may be, none of which has an address", async () => {
    // Each matches a hundred pools and more, and none of them is for the namespace.
    const patterns = Array.from({ length: 64 }, (_, at) => `p${"*".repeat(1 + (at >> 2))}${1 + 2 * (at % 4)}`);
    const attack = () => strike({ ippools: list(32, ["p*1", "p*3", "p*5", "p*7", "p*9"]) });
    const { text } = await attack();
    expect(text).toContain("500 pools: is for other namespaces (spec.namespaceName)");
    expect(text).not.toContain("bank");
    expect(text.length).toBeLessThan(10_000);
    const longest = Math.max(
      ...agent()
        .stderr()
        .split("\n")
        .map(({ length }) => length),
    );
    expect(longest).toBeLessThan(16_384);
    await measure("32 NICs, refused", attack);
    await measure("64 patterns", () => strike({ ippool: { ipv4: patterns } }));
  });

  it("with a list of NICs that the pod does not have", async () => {
    const pod = await objects.createPod(world.client, {
      name: "hoard",
      namespace: "evil",
      node: NODE,
      annotations: { ippools: list(32, ["p*"]) },
    });
    expect((await add(pod)).exitCode).toBe(0);
    expect(await boundOf("evil")).toBe(1);
    await measure("lists of 32 NICs", () => strike({ ippools: list(32, ["p*"]) }));
  });
});
