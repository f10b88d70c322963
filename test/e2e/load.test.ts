import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { CONF, ipPool, vendorConf } from "../lab/manifests.ts";
import { type NetnsWorld, withWorld } from "../lab/netns/world.ts";
import { eventually } from "../lab/waiting.ts";

/** Of 1,000 ADDs and DELs. */
const MOST_GROWTH_MIB = 12;

const CONFIG = { "conf.yaml": CONF, "wide.yaml": ipPool("wide", "10.8.0.0/16", { default: true }) };

function openDescriptors(world: NetnsWorld): number {
  return readdirSync(`/proc/${world.agent.pid}/fd`).length;
}

/** Resident memory, MiB. */
function residentMib(world: NetnsWorld): number {
  const status = readFileSync(`/proc/${world.agent.pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
}

describe("many at once", () => {
  it("40 ADDs at once get 40 addresses", () =>
    withWorld(CONFIG, async (world) => {
      const adds = Array.from({ length: 40 }, (_, index) => world.add(`c${index}`));
      expect(new Set((await Promise.all(adds)).flat()).size).toBe(40);
    }));

  it("40 ADDs at once fill a pool of 40 exactly, one more is refused", () =>
    withWorld(
      {
        "conf.yaml": CONF,
        "p.yaml": ipPool("p", "10.8.0.0/24", { ips: ["10.8.0.10-10.8.0.49"], default: true, selection: "ascending" }),
      },
      async (world) => {
        const adds = Array.from({ length: 40 }, (_, index) => world.add(`c${index}`));
        expect(new Set((await Promise.all(adds)).flat()).size).toBe(40);
        expect((await world.refused("ADD", "c40")).code).toBe(101);
      },
    ));

  it("pods that come and go on a pool with no address to spare all get one", () =>
    withWorld(
      {
        "conf.yaml": vendorConf({ enableIPv6: false, allocationCooldown: "1h" }),
        "p.yaml": ipPool("p", "10.8.0.0/24", { ips: ["10.8.0.10-10.8.0.14"], default: true }),
      },
      async (world) => {
        await Promise.all(Array.from({ length: 5 }, (_, index) => world.add(`a${index}`)));
        await Promise.all(Array.from({ length: 5 }, (_, index) => world.del(`a${index}`)));
        const second = await Promise.all(Array.from({ length: 5 }, (_, index) => world.add(`b${index}`)));
        expect(new Set(second.flat()).size).toBe(5);
      },
    ));

  it("ADD and DEL of one attachment at once leave it either bound or cooling", () =>
    withWorld(CONFIG, async (world) => {
      for (let round = 0; round < 20; round++) {
        const [added] = await Promise.all([world.add(`c${round}`), world.del(`c${round}`)]);
        const usage = await world.usage();
        expect(Object.values(usage).flat()).toContain(added?.[0]);
        await world.del(`c${round}`);
      }
      expect((await world.usage()).Bound).toBeUndefined();
    }));
});

describe("1,000 ADDs and DELs", () => {
  it("leak no address, no descriptor, no memory", { timeout: 400_000 }, () =>
    withWorld(CONFIG, async (world) => {
      const cycle = async (first: number, count: number): Promise<void> => {
        for (let index = first; index < first + count; index += 10) {
          const names = Array.from({ length: 10 }, (_, offset) => `c${index + offset}`);
          await Promise.all(names.map((name) => world.add(name)));
          await Promise.all(names.map((name) => world.del(name)));
        }
      };
      // The agent's heap and compiled code have their size after some hundreds of calls; what grows afterwards leaks.
      await cycle(0, 1_000);
      const before = { descriptors: openDescriptors(world), mib: residentMib(world) };
      await cycle(1_000, 1_000);
      // The heap may find its size late; what leaks grows each time.
      let [beforeMib, mib] = [before.mib, residentMib(world)];
      for (let more = 2_000; mib >= beforeMib + MOST_GROWTH_MIB && more <= 3_000; more += 1_000) {
        await cycle(more, 1_000);
        [beforeMib, mib] = [mib, residentMib(world)];
      }
      expect(
        await eventually(
          () => world.usage(),
          (usage) => Object.keys(usage).length === 0,
        ),
      ).toEqual({});
      const [pool] = await world.agent.get("/v1/pools");
      expect(pool).toMatchObject({ used: "0", total: "65534" });
      expect(openDescriptors(world)).toBeLessThanOrEqual(before.descriptors + 1);
      expect(mib).toBeLessThan(beforeMib + MOST_GROWTH_MIB);
    }),
  );
});
