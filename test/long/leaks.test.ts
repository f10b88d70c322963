/** Leaks of an agent of files, by pods that came and went. */
import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { CONF, ipPool } from "../lab/manifests.ts";
import { type NetnsWorld, withWorld } from "../lab/netns/world.ts";
import { PATIENCE } from "../lab/waiting.ts";

/** Most growth of the agent's memory in 1,000 ADDs and DELs. */
const MOST_GROWTH_MIB = 12;

const CONFIG = { "conf.yaml": CONF, "wide.yaml": ipPool("wide", "10.8.0.0/16", { default: true }) };

function openDescriptors(world: NetnsWorld): number {
  return readdirSync(`/proc/${world.agent.pid}/fd`).length;
}

function residentMib(world: NetnsWorld): number {
  const status = readFileSync(`/proc/${world.agent.pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
}

it("1,000 ADDs and DELs leak no address, no descriptor, no memory", { timeout: 400_000 }, () =>
  withWorld(CONFIG, async (world) => {
    const cycle = async (first: number, count: number): Promise<void> => {
      for (let index = first; index < first + count; index += 10) {
        const names = Array.from({ length: 10 }, (_, offset) => `c${index + offset}`);
        await Promise.all(names.map((name) => world.add(name)));
        await Promise.all(names.map((name) => world.del(name)));
      }
    };
    // The agent's heap and compiled code have their size after some hundreds of calls; growth afterwards is a leak.
    await cycle(0, 1_000);
    const before = { descriptors: openDescriptors(world), mib: residentMib(world) };
    await cycle(1_000, 1_000);
    // The heap may find its size late; a leak grows each time.
    let [beforeMib, mib] = [before.mib, residentMib(world)];
    for (let more = 2_000; mib >= beforeMib + MOST_GROWTH_MIB && more <= 3_000; more += 1_000) {
      await cycle(more, 1_000);
      [beforeMib, mib] = [mib, residentMib(world)];
    }
    await expect.poll(() => world.usage(), PATIENCE).toEqual({});
    const [pool] = await world.agent.get("/v1/pools");
    expect(pool).toMatchObject({ used: "0", total: "65534" });
    expect(openDescriptors(world)).toBeLessThanOrEqual(before.descriptors + 1);
    expect(mib).toBeLessThan(beforeMib + MOST_GROWTH_MIB);
  }),
);
