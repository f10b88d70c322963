import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { ipPool, vendorConf } from "../lab/manifests.ts";
import { withWorld } from "../lab/netns/world.ts";
import { PATIENCE } from "../lab/waiting.ts";
import { gateOrLong, times } from "../world/long-cases.ts";

const CHURN_MS = gateOrLong(3_000, 20_000);

/** The same addresses in shapes between which the file goes to and fro; the last one is removed altogether. */
const SHAPES = [
  ipPool("blue", "10.6.0.0/26", { default: true }),
  ipPool("blue", "10.6.0.0/26", { default: true, ips: ["10.6.0.1-10.6.0.20"] }),
  ipPool("azure", "10.6.0.0/26", { default: true, selection: "ascending" }),
  ipPool("blue", "10.6.0.0/26", { default: true, addressSpace: "lab" }),
  "",
];

it("ADDs and DELs while the pool is edited, and the agent killed, lose and leak nothing", () =>
  withWorld(
    { "conf.yaml": vendorConf({ enableIPv6: false, allocationCooldown: "0s" }), "pool.yaml": SHAPES[0] ?? "" },
    async (world) => {
      const endMs = performance.now() + CHURN_MS;
      const held = new Map<string, string>();
      const others = new Set<string>();
      const live = async (lane: number): Promise<void> => {
        for (let round = 0; performance.now() < endMs; round++) {
          const container = `c${lane}-${round}`;
          const outcome = await world.call("ADD", container);
          if (outcome.exitCode === 0) held.set(container, outcome.stdout.ips[0].address.split("/")[0]);
          else if (![100, 101].includes(outcome.stdout.code)) others.add(outcome.stdout.msg);
          if (outcome.exitCode !== 0 || round % 3 !== 0) {
            await world.del(container);
            held.delete(container);
          }
        }
      };
      const edit = async (): Promise<void> => {
        for (let round = 1; performance.now() < endMs; round++) {
          await world.agent.write("pool.yaml", SHAPES[round % SHAPES.length] ?? "");
          await sleep(15 + ((round * 7) % 40));
        }
      };
      const kill = async (): Promise<void> => {
        await sleep(CHURN_MS / 2);
        await world.agent.kill("SIGKILL");
        await world.agent.start();
      };
      await Promise.all([...Array.from({ length: 8 }, (_, lane) => live(lane)), edit(), kill()]);

      const killed = /(?:closed|broke) the connection before its answer was complete|cannot be reached/;
      expect([...others].filter((text) => !killed.test(text))).toEqual([]);
      expect(world.agent.stderr().match(/"Internal error"/g)).toBeNull();
      const places: { address: string; addressSpace: string; containerId: string }[] =
        await world.agent.get("/v1/allocations");
      const recorded = new Map(places.map(({ containerId, address }) => [containerId, address]));
      for (const [container, address] of held) expect(recorded.get(container), container).toBe(address);
      expect(new Set(places.map(({ address, addressSpace }) => `${address} ${addressSpace}`)).size).toBe(places.length);

      await Promise.all([...held.keys()].map((container) => world.del(container)));
      await expect.poll(() => world.agent.get("/v1/allocations"), PATIENCE).toEqual([]);
      for (const shape of SHAPES) {
        await world.agent.write("pool.yaml", shape);
        await sleep(100);
        for (const { used } of await world.agent.get("/v1/pools")) expect(used).toBe("0");
      }
    },
  ));

it("ADDs while the pool's file is rewritten in place are not refused", () =>
  withWorld({ "conf.yaml": vendorConf({ enableIPv6: false }), "pool.yaml": SHAPES[0] ?? "" }, async (world) => {
    let isOver = false;
    const rewrite = async (): Promise<void> => {
      const path = join(world.agent.configDir, "pool.yaml");
      while (!isOver) {
        await writeFile(path, "");
        await sleep(10);
        await writeFile(path, SHAPES[0] ?? "");
        await sleep(10);
      }
    };
    const attach = async (): Promise<void> => {
      for (let round = 0; round < times(50); round++) {
        await world.add(`c${round % 3}`);
        await world.del(`c${round % 3}`);
      }
    };
    const attached = attach().finally(() => {
      isOver = true;
    });
    await Promise.all([rewrite(), attached]);
  }));
