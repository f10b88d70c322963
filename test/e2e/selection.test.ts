import { expect, it } from "vitest";
import { CONF, ipPool, podManifest } from "../lab/manifests.ts";
import { type NetnsWorld, withWorld } from "../lab/netns/world.ts";

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

it("a pod's pool is the one of the rule that comes first, and none hands out reserved addresses", () =>
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
