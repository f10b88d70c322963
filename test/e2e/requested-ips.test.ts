import { describe, expect, it } from "vitest";
import { CONF, ipPool, vendorConf } from "../lab/manifests.ts";
import { withWorld } from "../lab/netns/world.ts";

const BLUE = { "conf.yaml": CONF, "blue.yaml": ipPool("blue", "10.6.0.0/24", { gateway: "10.6.0.1", default: true }) };

describe("requested addresses", () => {
  const rows: [source: string, options: object][] = [
    ["runtimeConfig.ips", { conf: { runtimeConfig: { ips: ["10.6.0.77/24"] } } }],
    ["args.cni.ips", { conf: { args: { cni: { ips: ["10.6.0.77"] } } } }],
    ["CNI_ARGS IP", { args: "IgnoreUnknown=1;IP=10.6.0.77" }],
  ];
  it.each(rows)("%s is honoured, and refused when it is taken", (source, options) =>
    withWorld(BLUE, async (world) => {
      expect(await world.add("c1", options)).toEqual(["10.6.0.77"]);
      expect(await world.add("c1", options)).toEqual(["10.6.0.77"]);
      const { code, msg } = await world.refused("ADD", "c2", options);
      expect(code).toBe(101);
      expect(msg).toBe(
        `The address requested by ${source} is refused: 10.6.0.77: it is Bound to container c1, interface eth0`,
      );
    }),
  );

  it("that just cooled is waited for", () =>
    withWorld({ ...BLUE, "conf.yaml": vendorConf({ enableIPv6: false, allocationCooldown: "1h" }) }, async (world) => {
      const requested = { conf: { args: { cni: { ips: ["10.6.0.77"] } } } };
      await world.add("c1", requested);
      const startMs = performance.now();
      await world.del("c1");
      expect(await world.add("c2", requested)).toEqual(["10.6.0.77"]);
      expect(performance.now() - startMs).toBeGreaterThan(1_500);
    }));

  const refusals: [ips: string[], code: number, text: string][] = [
    [["10.6.0.1"], 100, 'pool "blue" may not hand out 10.6.0.1'],
    [["10.7.0.5"], 100, 'pool "blue" may not hand out 10.7.0.5'],
    [["10.6.0.5/16"], 7, 'the subnet of pool "blue" has length 24'],
    [["10.6.0.5", "10.6.0.6"], 7, "10.6.0.5 and 10.6.0.6: a NIC gets one IPv4 address"],
    [["fd00::5"], 100, "names no IPv6 pool"],
    [["10.6.0.300"], 7, "10.6.0.300"],
  ];
  it.each(refusals)("%j is refused", (ips, code, text) =>
    withWorld(BLUE, async (world) => {
      const refusal = await world.refused("ADD", "c1", { conf: { args: { cni: { ips } } } });
      expect(refusal).toMatchObject({ code, msg: expect.stringContaining(text) });
      expect(await world.usage()).toEqual({});
    }),
  );

  it("another one than the attachment has is refused", () =>
    withWorld(BLUE, async (world) => {
      await world.add("c1", { conf: { args: { cni: { ips: ["10.6.0.77"] } } } });
      const refusal = await world.refused("ADD", "c1", { conf: { args: { cni: { ips: ["10.6.0.78"] } } } });
      expect(refusal).toMatchObject({ code: 101, msg: expect.stringContaining("has 10.6.0.77") });
    }));
});
