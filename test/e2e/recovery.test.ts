import { execFile } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { root } from "../../scripts/setup/paths.mjs";
import { CONF, ipPool } from "../lab/manifests.ts";
import { type NetnsWorld, withWorld } from "../lab/netns/world.ts";
import { gateOrLong } from "../world/long-cases.ts";

/** In the long run as many as a kubelet runs, in a pool of 254. A third of the pool: a wrong answer is not missed. */
const [PODS, OTHERS, SUBNET] = gateOrLong([20, 20, "10.8.0.0/26"] as const, [100, 60, "10.8.0.0/24"]);
const LAST = `c${PODS - 1}`;
const CONFIG = { "conf.yaml": CONF, "pool.yaml": ipPool("blue", SUBNET, { default: true }) };

interface Place {
  readonly results: string;
  readonly netns: string;
}

async function withPlace(test: (world: NetnsWorld, place: Place) => Promise<void>): Promise<void> {
  await withWorld(CONFIG, async (world) => {
    const place = { results: join(world.agent.directory, "results"), netns: join(world.agent.directory, "netns") };
    mkdirSync(place.results);
    mkdirSync(place.netns);
    await test(world, place);
  });
}

const runFile = promisify(execFile);

async function berthctl(world: NetnsWorld, { results, netns }: Place, ...args: string[]): Promise<string> {
  const argv = [join(root, "dist", "berthctl.mjs"), "recover", "--results", results, "--netns", netns, ...args];
  const { stdout } = await runFile(process.execPath, argv, { env: { ...process.env, ...world.agent.env } });
  return stdout;
}

/** ADDs of live pods, whose results are kept as libcni keeps them (libcni/api.go, `cacheAdd`). */
async function attachPods(world: NetnsWorld, { results }: Place): Promise<Map<string, string>> {
  const addresses = new Map<string, string>();
  const attach = async (number: number): Promise<void> => {
    const containerId = `c${number}`;
    const outcome = await world.call("ADD", containerId, { pod: `shop/web-${number}/uid-${number}` });
    expect(outcome.exitCode, outcome.text).toBe(0);
    addresses.set(containerId, outcome.stdout.ips[0].address.split("/")[0]);
    const about = { kind: "cniCacheV1", containerId, ifName: "eth0", networkName: "lab", config: "e30=" };
    const cniArgs = [
      ["IgnoreUnknown", "1"],
      ["K8S_POD_NAMESPACE", "shop"],
      ["K8S_POD_NAME", `web-${number}`],
      ["K8S_POD_UID", `uid-${number}`],
    ];
    const interfaces = [{ name: "eth0", mac: "02:00:00:00:00:01", sandbox: world.sandbox.path }];
    const ips = outcome.stdout.ips.map((one: object) => ({ ...one, interface: 0 }));
    const result = { ...outcome.stdout, interfaces, ips };
    writeFileSync(join(results, `lab-${containerId}-eth0`), JSON.stringify({ ...about, cniArgs, result }));
  };
  for (let first = 0; first < PODS; first += 10) {
    await Promise.all(Array.from({ length: 10 }, (_, index) => attach(first + index)));
  }
  return addresses;
}

function removeRegistry(world: NetnsWorld): void {
  for (const name of ["registry.sqlite", "registry.sqlite-wal"]) rmSync(join(world.agent.state, name), { force: true });
}

/** Returns the answers to so many ADDs: addresses, and codes of refusals. */
async function addMany(
  world: NetnsWorld,
  count: number,
  prefix: string,
): Promise<{ given: string[]; codes: number[] }> {
  const [given, codes]: [string[], number[]] = [[], []];
  const add = async (number: number): Promise<void> => {
    const { exitCode, stdout } = await world.call("ADD", `${prefix}${number}`);
    if (exitCode === 0) given.push(stdout.ips[0].address.split("/")[0]);
    else codes.push(stdout.code);
  };
  for (let first = 0; first < count; first += 10) {
    await Promise.all(Array.from({ length: 10 }, (_, index) => add(first + index)));
  }
  return { given, codes };
}

async function expectWhole(world: NetnsWorld, live: ReadonlyMap<string, string>): Promise<void> {
  const { given, codes } = await addMany(world, OTHERS, "new");
  expect(codes).toEqual([]);
  expect(given.filter((address) => [...live.values()].includes(address))).toEqual([]);
  const rows: { address: string; containerId: string; state: string }[] = await world.agent.get("/v1/allocations");
  const bound = new Map(rows.filter(({ state }) => state === "Bound").map((row) => [row.containerId, row.address]));
  for (const [containerId, address] of live) expect(bound.get(containerId), containerId).toBe(address);
}

describe("a registry that was removed while pods live", () => {
  it("gives none of their addresses away, and has them again after berthctl recover", () =>
    withPlace(async (world, place) => {
      const live = await attachPods(world, place);
      await world.agent.kill("SIGKILL");
      removeRegistry(world);
      await world.agent.start();
      expect(await addMany(world, OTHERS, "lost")).toEqual({ given: [], codes: Array(OTHERS).fill(107) });
      await world.del(LAST);
      live.delete(LAST);
      rmSync(join(place.results, `lab-${LAST}-eth0`));

      expect(await berthctl(world, place, "--dry-run")).toMatch(
        new RegExp(`${PODS - 1} addresses of live pods are missing.*[\\s\\S]*Dry run`),
      );
      expect((await world.refused("ADD", "still")).code).toBe(107);
      expect(await berthctl(world, place)).toContain(
        `  ${live.get("c7")} (blue): shop/web-7, eth0, from ${join(place.results, "lab-c7-eth0")}`,
      );
      await expectWhole(world, live);
      expect((await world.call("STATUS", "", { conf: { cniVersion: "1.1.0" } })).exitCode).toBe(0);
      for (const containerId of live.keys()) await world.del(containerId);
      expect((await world.usage()).Bound).toHaveLength(OTHERS);
      await world.agent.stop();
      await world.agent.start();
      expect((await world.usage()).Bound).toHaveLength(OTHERS);
      await world.add("c-after");
    }));

  it("is written again from the agent that still has it open, whatever the runtimes know", () =>
    withPlace(async (world, place) => {
      const live = await attachPods(world, place);
      rmSync(world.agent.state, { recursive: true });
      expect((await world.refused("ADD", "lost")).code).toBe(107);
      rmSync(place.results, { recursive: true });
      expect(await berthctl(world, place)).toContain(`${PODS} addresses are in the registry`);
      await world.agent.kill("SIGKILL");
      await world.agent.start();
      await expectWhole(world, live);
    }));
});
