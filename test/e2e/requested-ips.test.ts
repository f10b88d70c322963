import { describe, expect, it } from "vitest";
import { CONF, ipPool, vendorConf } from "../lab/manifests.ts";
import { withWorld } from "../lab/netns/world.ts";

const BLUE = { "conf.yaml": CONF, "blue.yaml": ipPool("blue", "10.6.0.0/24", { gateway: "10.6.0.1", default: true }) };

describe("requested addresses", () => {
  it("are honoured, and refused when they are taken, when they are none of the pool, and when the NIC has another", () =>
    withWorld(BLUE, async (world) => {
      const sources: [source: string, ip: string, options: object][] = [
        ["runtimeConfig.ips", "10.6.0.77", { conf: { runtimeConfig: { ips: ["10.6.0.77/24"] } } }],
        ["args.cni.ips", "10.6.0.78", { conf: { args: { cni: { ips: ["10.6.0.78"] } } } }],
        ["CNI_ARGS IP", "10.6.0.79", { args: "IgnoreUnknown=1;IP=10.6.0.79" }],
      ];
      for (const [source, ip, options] of sources) {
        for (const _time of ["first", "again"]) expect(await world.add(ip, options)).toEqual([ip]);
        expect(await world.refused("ADD", "other", options)).toMatchObject({
          code: 101,
          msg: `The address requested by ${source} is refused: ${ip}: it is Bound to container ${ip}, interface eth0`,
        });
      }
      const refusals: [container: string, ips: string[], code: number, text: string][] = [
        ["10.6.0.77", ["10.6.0.80"], 101, "has 10.6.0.77"],
        ["other", ["10.6.0.1"], 100, 'pool "blue" may not hand out 10.6.0.1'],
        ["other", ["10.7.0.5"], 100, 'pool "blue" may not hand out 10.7.0.5'],
        ["other", ["10.6.0.5/16"], 7, 'the subnet of pool "blue" has length 24'],
        ["other", ["10.6.0.5", "10.6.0.6"], 7, "10.6.0.5 and 10.6.0.6: a NIC gets one IPv4 address"],
        ["other", ["fd00::5"], 100, "names no IPv6 pool"],
        ["other", ["10.6.0.300"], 7, "10.6.0.300"],
      ];
      for (const [container, ips, code, text] of refusals) {
        const refusal = await world.refused("ADD", container, { conf: { args: { cni: { ips } } } });
        expect(refusal, ips.join()).toMatchObject({ code, msg: expect.stringContaining(text) });
      }
      expect((await world.usage()).Bound).toHaveLength(sources.length);
    }));

  it("that just cooled are waited for", () =>
    withWorld({ ...BLUE, "conf.yaml": vendorConf({ enableIPv6: false, allocationCooldown: "1h" }) }, async (world) => {
      const requested = { conf: { args: { cni: { ips: ["10.6.0.77"] } } } };
      await world.add("c1", requested);
      const startMs = performance.now();
      await world.del("c1");
      expect(await world.add("c2", requested)).toEqual(["10.6.0.77"]);
      expect(performance.now() - startMs).toBeGreaterThan(1_500);
    }));
});
