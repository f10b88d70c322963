import { describe, expect, it } from "vitest";
import { CONF, ipPool, vendorConf } from "../lab/manifests.ts";
import { withWorld } from "../lab/netns/world.ts";

const CONFIG = { "conf.yaml": CONF, "wide.yaml": ipPool("wide", "10.8.0.0/16", { default: true }) };

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
