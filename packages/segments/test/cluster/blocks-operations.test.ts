/**
 * `berthctl blocks`: an administrator's work with the blocks of a segment, on a cluster with an agent and a controller
 * in this process, and a hub of its own. A script in kubectl's place gives the agents' findings on the segment.
 */
import { randomUUID } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import type { KubeClient as ProductClient } from "../../../../host/kubernetes/client.ts";
import { borrowPlane } from "../../../../test/cluster/borrow-plane.ts";
import { runKubectlBerth } from "../../../../test/lab/berthctl.ts";
import type { AgentNode } from "../../../../test/lab/cluster/agent-node.ts";
import { connectClient } from "../../../../test/lab/cluster/in-process.ts";
import * as lab from "../../../../test/lab/cluster/objects.ts";
import { startWorld, type World } from "../../../../test/lab/cluster/world.ts";
import type { CommandOutcome } from "../../../../test/lab/command.ts";
import type { ControlPlane } from "../../../../test/lab/control-plane.ts";
import type { KubeObject } from "../../../../test/lab/kube-client.ts";
import { until } from "../../../../test/lab/waiting.ts";
import { temporaryDirectory } from "../../../../test/world/temporary-directory.ts";
import { startBlocks } from "../../controllers/blocks-controller.ts";
import { applyHubRights, createRange as createShared, leasesOf, MEMBERS, RANGES } from "../lab/hub.ts";

const SILENT = { link: "uplink", answered: [] };
const ANSWERED = { link: "uplink", answered: [{ address: "10.6.0.20", mac: "02:00:00:00:00:07" }] };

let hub: ControlPlane;
let world: World;
let agent: AgentNode;
let access: ProductClient;
const home = temporaryDirectory("berth-blocks-");
let range = "";
let serial = 0;
let subnet = "";

beforeAll(async () => {
  [hub, world] = await Promise.all([borrowPlane(), startWorld({ startPlane: borrowPlane })]);
  access = await connectClient(hub.kubeconfig);
  await applyHubRights(world.client);
  agent = await world.openAgent("n1");
  const script = `#!/bin/sh
case "$*" in
*"get pods"*) printf 'kube-system\\tberth-agent-1\\tn1\\tRunning\\t\\n' ;;
*"exec "*) while [ "$1" != -- ]; do shift; done; echo "$*" >>'${home}/asked'; cat '${home}/segment.json' ;;
esac
`;
  writeFileSync(join(home, "kubectl"), script, { mode: 0o755 });
  vi.stubEnv("HOME", home);
  vi.stubEnv("KUBECONFIG", world.plane.kubeconfig);
  vi.stubEnv("PATH", `${home}:${process.env.PATH}`);
  const hubAccess = { api: access, member: "east", namespace: lab.SYSTEM, checkMs: 300 };
  await world.lead({ blocks: (deps) => startBlocks({ ...deps, hub: hubAccess }) });
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await world?.stop();
  await access?.close();
  await hub?.stop();
});

beforeEach(async () => {
  range = `lan-${++serial}`;
  subnet = `10.${serial}.0.0/24`;
  finds(SILENT);
  writeFileSync(join(home, "asked"), "");
});

const at = (last: number | string): string => `10.${serial}.0.${last}`;
const questions = (): readonly string[] => readFileSync(join(home, "asked"), "utf8").split("\n").filter(Boolean);
const statusOf = async (member: string): Promise<KubeObject> =>
  (await hub.client.get(`${MEMBERS}/${range}.${member}`)).status;
const leases = () => leasesOf(hub.client, range);

function finds(record: object): void {
  writeFileSync(join(home, "segment.json"), JSON.stringify(record));
}

const createRange = (spec: object = {}) =>
  createShared(hub.client, range, { subnet, blockSize: 28, ...spec }, { east: 4, west: 4 });

async function blocks(...words: string[]): Promise<CommandOutcome> {
  const [command = "", ...rest] = words;
  const ending = await runKubectlBerth("blocks", command, "--hub-kubeconfig", hub.kubeconfig, ...rest);
  return { exitCode: ending.code, stdout: ending.out, stderr: ending.error };
}

let pods = 0;

/** Returns the address that the agent gives it. */
async function start(pool: string): Promise<{ readonly pod: lab.LabPod; readonly address: string }> {
  const name = `web-${++pods}`;
  const pod = await world.bindPod({ name, node: "n1", annotations: { ippool: { ipv4: [pool] } } });
  await until("the node knows the pod", () => agent.snapshot.pods.get(`shop/${name}`)?.uid === pod.uid);
  return { pod, address: (await agent.add(pod)).addresses };
}

/** Pods start and end all the time; `given` gets their addresses. */
function startLoad(pool: string, given: string[]) {
  let isOver = false;
  const ended = (async () => {
    while (!isOver) {
      const { pod, address } = await start(pool);
      given.push(address);
      await agent.del(pod);
      await world.deletePod(pod);
    }
  })();
  return {
    end: () => {
      isOver = true;
      return ended;
    },
  };
}

const sourceOf = (pool: string) =>
  agent.snapshot.pools.get(pool)?.source?.blocks.map(({ block, state }) => `${block} ${state}`);

describe("a hand-cut pool", () => {
  const pool = () => `cut-${serial}`;
  const words = (...more: string[]) => ["adopt", "--range", range, "--pool", pool(), "--member", "east", ...more];

  it("gets its blocks, and leaves with them, while pods keep their addresses and start", {
    timeout: 120_000,
  }, async () => {
    await createRange({ excludeIPs: [`${at(16)}-${at(63)}`], nodeIPs: [at(49)] });
    await world.pool(pool(), {
      subnet,
      ips: [`${at(20)}-${at(31)}`, `${at(48)}-${at(63)}`],
      excludeIPs: [at(31), at(49)],
    });
    await until("the node knows the pool", () => agent.snapshot.pools.has(pool()));
    const first = await start(pool());
    const given: string[] = [];
    const load = startLoad(pool(), given);
    onTestFinished(load.end);

    const dry = await blocks(...words("--dry-run"));
    expect(dry, dry.stderr).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining(`${at("16/28")}: pool "${pool()}"`),
    });
    expect((await leases()).length).toBe(0);
    const done = await blocks(...words());
    expect([done.exitCode, done.stdout.split("\n").at(-2)], done.stderr).toEqual([
      0,
      `AddressRange "${range}": 2 blocks of "east" are active`,
    ]);
    const { spec } = await hub.client.get(`${RANGES}/${range}`);
    const leased = Object.entries<KubeObject>((await statusOf("east")).blocks).map(([block, { pool }]) => [
      block,
      pool,
    ]);
    expect(leased).toEqual([at("16/28"), at("48/28")].map((block) => [block, pool()]));
    // Exclusions outside the pool stay, and its own.
    expect(spec.excludeIPs).toEqual([`${at(16)}-${at(19)}`, `${at(31)}-${at(47)}`, at(49)]);
    const wanted = [`${at("16/28")} Active`, `${at("48/28")} Active`];
    await until("the node knows the blocks", () => sourceOf(pool())?.join() === wanted.join());
    expect((await world.read("ippools", pool())).spec).toMatchObject({
      source: { range },
      excludeIPs: [at(31), at(49)],
    });
    expect((await agent.add(first.pod)).addresses).toBe(first.address);
    const second = await start(pool());

    const left = await blocks("leave", "--pool", pool());
    expect([left.exitCode, left.stderr], left.stdout).toEqual([0, ""]);
    const after = await hub.client.get(`${RANGES}/${range}`);
    expect([(await leases()).length, after.spec.excludeIPs]).toEqual([0, [`${at(16)}-${at(63)}`]]);
    const ranges = [`${at(16)}-${at(31)}`, `${at(48)}-${at(63)}`];
    expect((await world.read("ippools", pool())).spec).toMatchObject({
      ips: ranges,
      excludeIPs: [`${at(16)}-${at(19)}`, at(31), at(49)],
    });
    await until("the node knows the ranges", () => agent.snapshot.pools.get(pool())?.source === undefined);
    for (const { pod, address } of [first, second]) expect((await agent.add(pod)).addresses).toBe(address);
    await load.end();
    expect(given.length).toBeGreaterThan(3);
    expect(given.filter((address) => [at(16), at(19), at(31), at(49)].includes(address))).toEqual([]);
  });

  it("stays as it is when a machine answers for an additional address of a block", async () => {
    await createRange();
    await world.pool(pool(), { subnet, ips: [`${at(16)}-${at(24)}`] });
    finds({ link: "uplink", answered: [{ address: at(29), mac: "02:00:00:00:00:07" }] });
    const { exitCode, stdout } = await blocks(...words());
    expect([exitCode, stdout]).toEqual([
      1,
      expect.stringContaining(`${at(29)}: 02:00:00:00:00:07 answers, as the agent of node n1`),
    ]);
    expect(questions().at(-1)).toBe(`-- berthctl blocks probe ${subnet} --ranges ${at(25)}-${at(31)} -o json`);
    expect((await leases()).length).toBe(0);
  });
});

describe("a lost cluster", () => {
  const words = (...more: string[]) => [
    "release",
    "--cluster",
    "west",
    "--i-know-it-is-off",
    "--range",
    range,
    "--interval",
    "0.05",
    ...more,
  ];
  const west = { cluster: "uid-west", token: "t1", writes: 3 };

  beforeEach(async () => {
    await createRange({ nodeIPs: [at(17)] });
    const block = { pool: "lan", request: randomUUID(), since: "2026-01-01T00:00:00Z" };
    const status = { ...west, blocks: { [at("16/28")]: block, [at("32/28")]: block } };
    await hub.client.patch(`${MEMBERS}/${range}.west/status`, { status });
  });

  it("is released after three silent rounds of all of its addresses", async () => {
    const { exitCode, stdout, stderr } = await blocks(...words());
    expect([exitCode, stdout]).toEqual([0, `AddressRange "${range}": "west" is released, 2 blocks of it are free\n`]);
    expect(stderr).toMatch(/probing 2 blocks of "west" from n1; 3 rounds of 1 s/);
    expect(questions().filter((line) => line.includes("--ranges"))).toEqual(
      Array(3).fill(`-- berthctl blocks probe ${subnet} --ranges ${at(16)},${at(18)}-${at(47)} -o json`),
    );
    expect(await statusOf("west")).toEqual({
      ...{ cluster: "uid-west", token: expect.not.stringMatching("t1"), writes: 4, contested: true, blocks: {} },
    });
    expect(await blocks(...words())).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("it has no blocks"),
    });
  });

  it.each<[what: string, record: object, error: RegExp]>([
    ["a machine answers", ANSWERED, /addresses of its blocks are in use/],
    ["no agent is on the segment", { answered: [] }, /No agent is on the segment of/],
  ])("is not released when %s", async (_, record, error) => {
    finds(record);
    const before = await statusOf("west");
    const { exitCode, stdout, stderr } = await blocks(...words());
    expect([exitCode, stderr]).toEqual([1, expect.stringMatching(error)]);
    if (record === ANSWERED)
      expect(stdout).toBe("10.6.0.20: 02:00:00:00:00:07 answers, as the agent of node n1 has found\n");
    expect(await statusOf("west")).toEqual(before);
  });
});

describe("a cluster that was restored", () => {
  const words = () => ["rejoin", "--range", range, "--i-know-its-copy-is-off"];
  const pool = () => `lan-${serial}`;

  it("goes on when no other cluster uses its blocks, and leases again", { timeout: 60_000 }, async () => {
    await createRange();
    await world.pool(pool(), { subnet, source: { range } });
    await until("it has a block", async () => (await leases()).length > 0);
    expect(await blocks(...words())).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("nothing is contested"),
    });
    const { writes } = await statusOf("east");
    const status = { token: randomUUID(), writes: writes + 3 };
    await hub.client.patch(`${MEMBERS}/${range}.east/status`, { status });
    await until("it is contested", async () => (await statusOf("east")).contested === true);
    finds({ link: "uplink", answered: [{ address: at(20), mac: "02:00:00:00:00:07" }] });
    expect(await blocks(...words())).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("another cluster uses blocks"),
    });
    finds(SILENT);
    const { exitCode, stdout, stderr } = await blocks(...words());
    expect([exitCode, stdout], stderr).toEqual([0, expect.stringContaining('this cluster goes on as "east"')]);
    await until("it goes on", async () => (await statusOf("east")).contested === undefined);
  });
});
