import { describe, expect, it } from "vitest";
import { type CachedDefinition, decodeCachedDefinition } from "../../../../host/agent/cluster/cached-definition.ts";
import { heapBytesOf } from "../../../../host/lib/object-budget.ts";

const decode = (config: object | string): CachedDefinition =>
  decodeCachedDefinition({
    kind: "NetworkAttachmentDefinition",
    metadata: { namespace: "shop", name: "lan" },
    spec: { config: typeof config === "string" ? config : JSON.stringify(config) },
  });

const MACVLAN = { name: "x", type: "macvlan", ipam: { type: "berth" } };

/** Of almost 64 KiB of text. */
const many = (item: unknown): unknown[] => Array(Math.floor(65_000 / (JSON.stringify(item).length + 1))).fill(item);

describe("an agent's memory of a network definition", () => {
  it("of another's plugin is the part read of it, whatever it says besides", () => {
    const known = { name: "x", type: "bridge", isGateway: true, mac: "02:00:00:00:00:01" };
    const ipam = { type: "berth", default_ipv4_ippool: ["blue"] };
    const config = {
      ...{ ...known, ipam, cniVersion: "1.0.0", master: "eth1", capabilities: { mac: true, ips: true } },
      args: { cni: { ips: ["10.0.0.1"], labels: many({}) } },
    };
    const entry = { ...known, ipam, capabilities: { mac: true }, args: { cni: { ips: ["10.0.0.1"] } } };
    expect(decode(config)).toMatchObject({ kind: "network", network: { name: "x", plugins: [{ entry }] } });
  });

  it("of Berth's own plugins is all of it, for their mistakes are to be told", () => {
    const coordinator = { type: "coordinator", mode: "underlay", tunePodRoute: 1 };
    const plugins = [{ type: "macvlan", ipam: { type: "static", addresses: many({}) } }, coordinator];
    expect(decode({ name: "x", plugins })).toMatchObject({
      network: { plugins: [{ entry: { type: "macvlan", ipam: {} } }, { entry: coordinator }] },
    });
  });

  it.each([
    ["empty objects", { ...MACVLAN, x: many({}) }],
    ["empty lists", { ...MACVLAN, x: many([]) }],
    ["numbers", { ...MACVLAN, x: many(0) }],
    ["many keys", { ...MACVLAN, ...Object.fromEntries(Array.from({ length: 6_000 }, (_, at) => [`k${at}`, 0])) }],
    ["addresses of another IPAM", { ...MACVLAN, ipam: { type: "static", addresses: many({}) } }],
  ])("is small if another's plugin has %s", (_, config) => {
    const decoded = decode(config);
    expect(decoded.kind).toBe("network");
    expect(heapBytesOf("", decoded)).toBeLessThan(4_000);
  });

  it.each([
    ["short", '{"name":"x","name":"y"', /^NetworkAttachmentDefinition "shop\/lan", spec.config: .*line 1/],
    ["long", `{"a":"${"x".repeat(10_000)}"`, /^NetworkAttachmentDefinition "shop\/lan", spec.config: .*JSON/],
  ])("is why it cannot be used, of a %s text", (_, text, reason) =>
    expect(decode(text)).toEqual({ kind: "invalid", reason: expect.stringMatching(reason) }),
  );
});
