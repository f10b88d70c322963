import { describe, expect, it } from "vitest";
import { runCommand } from "../lab/command.ts";
import { CONF, ipPool, podManifest, vendorConf } from "../lab/manifests.ts";
import { type NetnsWorld, withWorld } from "../lab/netns/world.ts";
import { eventually } from "../lab/waiting.ts";

const NAMESPACE = `${JSON.stringify({
  apiVersion: "v1",
  kind: "Namespace",
  metadata: { name: "bank", annotations: { "ipam.vendor.io/default-ipv4-ippool": '["green"]' } },
})}\n`;

const RESERVED = `${JSON.stringify({
  apiVersion: "ipam.vendor.io/v1",
  kind: "ReservedIP",
  metadata: { name: "printers" },
  spec: { ips: ["10.2.0.2-10.2.0.5"] },
})}\n`;

const CONFIG = {
  "conf.yaml": CONF,
  "fallback.yaml": ipPool("fallback", "10.9.0.0/24", { default: true }),
  "blue.yaml": ipPool("blue", "10.1.0.0/24"),
  "green.yaml": ipPool("green", "10.2.0.0/29", { gateway: "10.2.0.1", selection: "ascending" }),
  "red.yaml": ipPool("red-1", "10.3.0.1/32"),
  "red2.yaml": ipPool("red-2", "10.4.0.0/24", { nodeName: ["elsewhere"] }),
  "bank.yaml": NAMESPACE,
  "reserved.yaml": RESERVED,
  "pods.yaml": [
    podManifest("shop", "blue", { ippool: { ipv4: ["blue"] } }),
    podManifest("bank", "own", { ippool: { ipv4: ["blue"] } }),
    podManifest("shop", "red", { ippool: { ipv4: ["red-*"] } }),
    podManifest("shop", "list", { ippool: { ipv4: ["red-1", "blue"] } }),
    podManifest("shop", "lost-route", {
      ippool: { ipv4: ["blue"] },
      routes: [{ dst: "172.16.0.0/12", gw: "10.77.0.1" }],
    }),
    podManifest("shop", "typing", { ippool: '{"ipv4": ["blue"], "ipv5": []}' }),
    podManifest("shop", "json", { ippool: '{"ipv4": ["blue"' }),
    podManifest("shop", "key", { "ipam.vendor.io/ipool": '{"ipv4": ["blue"]}' }),
  ].join("---\n"),
};

/** Annotations that only the runtime passes. */
const poolNames = (names: string[]) => ({
  "io.kubernetes.cri.pod-annotations": { "ipam.vendor.io/ippool": JSON.stringify({ ipv4: names }) },
});

/** The pool out of which the pod's address came. */
async function poolOf(world: NetnsWorld, pod: string, options: object = {}): Promise<string> {
  const [address = ""] = await world.add(pod.replace("/", "-"), { pod: `${pod}/${pod.replace("/", "-")}`, ...options });
  return address.split(".")[1] ?? "";
}

describe("a pod's pool", () => {
  const rows: [what: string, pod: string, options: object, network: string][] = [
    ["is the default without any rule", "shop/plain", {}, "9"],
    ["is the CNI configuration's", "shop/plain", { ipam: { default_ipv4_ippool: ["blue"] } }, "1"],
    ["is the namespace's, over the configuration", "bank/any", { ipam: { default_ipv4_ippool: ["blue"] } }, "2"],
    ["is the pod's own, over the namespace's", "bank/own", {}, "1"],
    ["is the first of a list that has an address", "shop/list", {}, "3"],
    [
      "is of the runtime's annotations when there is no manifest",
      "shop/none",
      {
        conf: { runtimeConfig: poolNames(["blue"]) },
      },
      "1",
    ],
  ];
  it.each(rows)("%s", (_what, pod, options, network) =>
    withWorld(CONFIG, async (world) => expect(await poolOf(world, pod, options)).toBe(network)),
  );

  it("is the next of the list when the first is full", () =>
    withWorld(CONFIG, async (world) => {
      await world.add("c0", { ipam: { default_ipv4_ippool: ["red-1"] } });
      expect(await poolOf(world, "shop/list")).toBe("1");
    }));
});

describe("never handed out", () => {
  it("are network, broadcast, gateway and reserved addresses: of a /29 one is left", () =>
    withWorld(CONFIG, async (world) => {
      expect(await world.add("c1", { pod: "bank/a/1" })).toEqual(["10.2.0.6"]);
      const { code, msg } = await world.refused("ADD", "c2", { pod: "bank/b/2" });
      expect([code, msg]).toEqual([
        101,
        'No address is free for IPv4 of interface "eth0" (namespace annotation "ipam.vendor.io/default-ipv4-ippool"): ' +
          'pool "green" has no free address (1 of 1 in use or cooling)',
      ]);
    }));
});

describe("cleangateway", () => {
  const rows: [what: string, cleangateway: boolean | undefined, gateway: string | undefined, routes: object[]][] = [
    ["absent", undefined, "10.2.0.1", [{ dst: "0.0.0.0/0", gw: "10.2.0.1" }]],
    ["false", false, "10.2.0.1", [{ dst: "0.0.0.0/0", gw: "10.2.0.1" }]],
    ["true", true, undefined, []],
  ];
  it.each(rows)("%s: gateway and default route of a pool that has one", (_what, cleangateway, gateway, routes) =>
    withWorld(
      {
        ...CONFIG,
        "pods.yaml": podManifest("shop", "nic", { ippools: [{ interface: "eth0", ipv4: ["green"], cleangateway }] }),
      },
      async (world) => {
        const { stdout, text } = await world.call("ADD", "c1", { pod: "shop/nic/1" });
        expect([stdout.ips?.[0]?.address, stdout.ips?.[0]?.gateway, stdout.routes ?? []], text).toEqual([
          "10.2.0.6/29",
          gateway,
          routes,
        ]);
      },
    ),
  );
});

describe("a refusal", () => {
  it("counts what a pattern found, and berthctl and the log name it", () =>
    withWorld(
      CONFIG,
      async (world) => {
        await world.add("c0", { ipam: { default_ipv4_ippool: ["red-1"] } });
        const { code, msg, details } = await world.refused("ADD", "c1", { pod: "shop/red/1" });
        expect(code).toBe(101);
        expect(details?.split("\n")).toEqual([
          'eth0: by annotation "ipam.vendor.io/ippool"',
          "eth0 IPv4 1 pool: has no free address",
          "eth0 IPv4 1 pool: is for other nodes (spec.nodeName)",
        ]);
        expect(`${msg}${details}`).not.toMatch(/red-\d|elsewhere/);
        const lines = [
          `an ADD of eth0 now would be refused with code 101: ${msg}`,
          'eth0: by annotation "ipam.vendor.io/ippool"',
          'eth0 IPv4 pool "red-1": fits, but its only address is not free',
          `eth0 IPv4 pool "red-2": nodeName is "elsewhere", this node is "n1"`,
          "note: no definition of the network of eth0 is known here: its default pools are not considered",
        ];
        const { stdout: explained, exitCode } = await runCommand(
          [process.execPath, "dist/berthctl.mjs", "explain", "red", "-n", "shop"],
          { env: world.agent.env },
        );
        expect(explained.trim().split("\n")).toEqual(lines);
        expect(exitCode).toBe(1);
        const refusals = () => world.agent.stderr().match(/.*"level":"warn".*"audit":"ADD".*/) ?? [];
        const [logged = ""] = await eventually(
          async () => refusals(),
          ({ length }) => length > 0,
        );
        expect(JSON.parse(logged).names).toMatch(
          /pool "red-1" has no free address \(1 of 1 in use or cooling\); pool "red-2" nodeName is "elsewhere", this node is "n1"$/,
        );
      },
      { env: { BERTH_NODE: "n1" } },
    ));

  it("of an address that another namespace's pod has names no pod but its own namespace's", () =>
    withWorld(CONFIG, async (world) => {
      const conf = { args: { cni: { ips: ["10.9.0.7"] } }, runtimeConfig: poolNames(["fallback"]) };
      await world.add("c1", { pod: "bank/vault/u1", conf });
      const foreign = await world.refused("ADD", "c2", { pod: "shop/plain/u2", conf });
      const own = await world.refused("ADD", "c3", { pod: "bank/other/u3", conf });
      const head = "The address requested by args.cni.ips is refused: 10.9.0.7: it is Bound to";
      expect([foreign.msg, own.msg]).toEqual([
        `${head} a pod of another namespace`,
        `${head} pod bank/vault, interface eth0`,
      ]);
      const full = `"names":"${head} pod bank/vault, interface eth0"`;
      const log = async () => world.agent.stderr();
      expect(await eventually(log, (text) => text.includes(full))).toContain(full);
    }));

  const rows: [what: string, pod: string, text: RegExp][] = [
    ["an unknown key", "shop/typing", /annotation "ipam\.vendor\.io\/ippool".*ipv5/i],
    ["malformed JSON, with its place", "shop/json", /annotation "ipam\.vendor\.io\/ippool".*(line|column|position)/i],
    ["an annotation that is a typing mistake", "shop/key", /ipam\.vendor\.io\/ipool.*ipam\.vendor\.io\/ippool/],
    ["a route that no NIC can carry", "shop/lost-route", /no NIC of the pod can carry the route to 172\.16\.0\.0\/12/],
  ];
  it.each(rows)("names %s", (_what, pod, text) =>
    withWorld(CONFIG, async (world) => {
      const { code, msg } = await world.refused("ADD", "c1", { pod: `${pod}/1` });
      expect(code).toBe(102);
      expect(msg).toMatch(text);
      expect(await world.usage()).toEqual({});
    }),
  );
});

describe("what is switched off", () => {
  /** A namespace's own annotations, of a family that is off. */
  const bank = (value: string) =>
    NAMESPACE.replace('"annotations":{', `$&"ipam.vendor.io/default-ipv6-ippool":${JSON.stringify(value)},`);
  const families: [what: string, ipv6: unknown][] = [
    ["an empty list", []],
    ["null", null],
    ["a text", "six"],
    ["names that are none", [7, "A/B"]],
  ];
  it.each(families)(
    "IPv6: %s is ignored in each annotation and in the CNI configuration, with a warning",
    (_what, ipv6) =>
      withWorld(
        {
          ...CONFIG,
          "bank.yaml": bank(JSON.stringify(ipv6)),
          "pods.yaml": [
            podManifest("shop", "one", { ippool: { ipv4: ["blue"], ipv6 } }),
            podManifest("shop", "list", { ippools: [{ interface: "eth0", ipv4: ["blue"], ipv6 }] }),
          ].join("---\n"),
        },
        async (world) => {
          expect(await poolOf(world, "shop/one")).toBe("1");
          expect(await poolOf(world, "shop/list")).toBe("1");
          expect(await poolOf(world, "bank/any")).toBe("2");
          const ipam = { default_ipv4_ippool: ["blue"], default_ipv6_ippool: ipv6 };
          expect(await poolOf(world, "shop/plain", { ipam })).toBe("1");
          const warning =
            'annotation \\"ipam.vendor.io/ippool\\" names IPv6 pools, which are ignored because enableIPv6 is false';
          expect(world.agent.stderr()).toContain(warning);
        },
      ),
  );

  it("Subnets: their four annotations have no effect, whatever they hold", () =>
    withWorld(
      {
        ...CONFIG,
        "conf.yaml": vendorConf({ enableIPv6: false, enableSubnet: false }),
        "pods.yaml": ["subnet", "subnets", "ippool-ip-number", "ippool-reclaim"]
          .flatMap((key) => ["{", "", "nonsense", '{"ipv4":[]}'].map((value, index) => ({ key, value, index })))
          .map(({ key, value, index }) => podManifest("shop", `${key}-${index}`, { [key]: value }))
          .join("---\n"),
      },
      async (world) => {
        for (const key of ["subnet", "subnets", "ippool-ip-number", "ippool-reclaim"]) {
          for (const index of [0, 1, 2, 3]) expect(await poolOf(world, `shop/${key}-${index}`)).toBe("9");
        }
      },
    ));
});

describe("dual stack", () => {
  const DUAL = {
    "conf.yaml": vendorConf({ allocationCooldown: "1s" }),
    "four.yaml": ipPool("four", "10.1.0.0/24"),
    "six.yaml": ipPool("six", "fd00:6::1/128"),
    "pods.yaml": [
      podManifest("shop", "both", { ippool: { ipv4: ["four"], ipv6: ["six"] } }),
      podManifest("shop", "half", { ippool: { ipv4: ["four"] } }),
    ].join("---\n"),
  };

  it("is all or nothing: a full family gives the other one's address back", () =>
    withWorld(DUAL, async (world) => {
      const first = await world.add("c1", { pod: "shop/both/1" });
      for (let attempt = 0; attempt < 3; attempt++) {
        expect((await world.refused("ADD", `d${attempt}`, { pod: "shop/both/2" })).code).toBe(101);
      }
      expect((await world.usage()).Bound).toEqual(first);
      expect((await world.agent.get("/v1/pools")).map(({ used }: { used: string }) => used)).toEqual(["1", "1"]);
    }));

  it("is what a namespace says with its two annotations", () =>
    withWorld(
      {
        ...DUAL,
        "other6.yaml": ipPool("other6", "fd07::/64", { default: true }),
        "bank.yaml": `${JSON.stringify({
          ...{ apiVersion: "v1", kind: "Namespace" },
          metadata: {
            name: "bank",
            annotations: {
              "ipam.vendor.io/default-ipv4-ippool": '["four"]',
              "ipam.vendor.io/default-ipv6-ippool": '["six"]',
            },
          },
        })}\n`,
      },
      async (world) => {
        const [four = "", six] = await world.add("c1", { pod: "bank/any/1" });
        expect([four.startsWith("10.1.0."), six]).toEqual([true, "fd00:6::1"]);
      },
    ));

  it("is required of an annotation that names one family", () =>
    withWorld(DUAL, async (world) => {
      expect(await world.refused("ADD", "c1", { pod: "shop/half/1" })).toMatchObject({
        code: 102,
        msg: expect.stringMatching(
          /annotation "ipam\.vendor\.io\/ippool": field "ipv6" is required because enableIPv6 is true/i,
        ),
      });
      await world.agent.write("conf.yaml", vendorConf({ allowSingleFamily: true }));
      expect(await world.add("c1", { pod: "shop/half/1" })).toHaveLength(1);
    }));
});

describe("a change of the manifests", () => {
  it("holds for the very next ADD, and only for new pods", () =>
    withWorld(CONFIG, async (world) => {
      const old = await world.add("c1", { pod: "shop/blue/1" });
      await world.agent.write("blue.yaml", ipPool("blue", "10.1.0.0/24", { ips: ["10.1.0.200"] }));
      expect(await world.add("c2", { pod: "shop/blue/2" })).toEqual(["10.1.0.200"]);
      expect(await world.add("c1", { pod: "shop/blue/1" })).toEqual(old);
      await world.agent.write("blue.yaml", ipPool("blue", "10.1.0.0/24", { disable: true }));
      expect((await world.refused("ADD", "c3", { pod: "shop/blue/3" })).msg).toContain("is disabled (spec.disable)");
      expect(await world.add("c1", { pod: "shop/blue/1" })).toEqual(old);
    }));

  it("a pool that was deleted and comes back knows what it gave out", () =>
    withWorld({ "conf.yaml": CONF, "one.yaml": ipPool("one", "10.5.0.7/32", { default: true }) }, async (world) => {
      const held = await world.add("c1");
      await world.agent.remove("one.yaml");
      expect((await world.refused("ADD", "c2")).code).toBe(100);
      expect(await world.usage()).toEqual({ Bound: held });
      await world.agent.write("one.yaml", ipPool("one", "10.5.0.7/32", { default: true }));
      expect((await world.refused("ADD", "c2")).code).toBe(101);
    }));
});
