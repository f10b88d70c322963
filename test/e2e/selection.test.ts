import { describe, expect, it } from "vitest";
import { runBerthctl } from "../lab/berthctl.ts";
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
    podManifest("shop", "late", { ippool: { ipv4: ["red-1", "blue"] } }),
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

it("a pod's pool is the one of the rule that comes first, and none hands out what is reserved", () =>
  withWorld(CONFIG, async (world) => {
    const ipam = { default_ipv4_ippool: ["blue"] };
    const rows: [what: string, pod: string, options: object, network: string][] = [
      ["the default without any rule", "shop/plain", {}, "9"],
      ["the CNI configuration's", "shop/other", { ipam }, "1"],
      ["the namespace's, over the configuration", "bank/any", { ipam }, "2"],
      ["the pod's own, over the namespace's", "bank/own", {}, "1"],
      ["of the runtime's annotations", "shop/none", { conf: { runtimeConfig: poolNames(["blue"]) } }, "1"],
      ["the first of a list that has an address", "shop/list", {}, "3"],
      ["the next of the list when the first is full", "shop/late", {}, "1"],
    ];
    for (const [what, pod, options, network] of rows) expect(await poolOf(world, pod, options), what).toBe(network);
    // Of a /29 without network, broadcast, gateway and reserved addresses one is left.
    const { code, msg } = await world.refused("ADD", "c2", { pod: "bank/b/2" });
    expect([code, msg]).toEqual([
      101,
      'No address is free for IPv4 of interface "eth0" (namespace annotation "ipam.vendor.io/default-ipv4-ippool"): ' +
        'pool "green" has no free address (1 of 1 in use or cooling)',
    ]);
  }));

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
        const explained = await runBerthctl("explain", "red", "-n", "shop", "--socket", world.agent.socket);
        expect(explained.out.trim().split("\n")).toEqual(lines);
        expect(explained.code).toBe(1);
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
});

describe("dual stack", () => {
  const DUAL = {
    "conf.yaml": vendorConf({ allocationCooldown: "1s" }),
    "four.yaml": ipPool("four", "10.1.0.0/24"),
    "six.yaml": ipPool("six", "fd00:6::1/128"),
    "pods.yaml": [podManifest("shop", "both", { ippool: { ipv4: ["four"], ipv6: ["six"] } })].join("---\n"),
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
