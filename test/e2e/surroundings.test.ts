/** What is around a pod: settings, machines and programs that Berth did not make. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeSysctl } from "../../host/kernel/sysctl.ts";
import { FAMILIES } from "../../host/net/ip.ts";
import { lengthOf, segmentAddress } from "../lab/addressing.ts";
import { requireCommand } from "../lab/command.ts";
import { macvlanOn } from "../lab/netns/coordinator.ts";
import type { LabPod } from "../lab/netns/world.ts";
import { addVeth, type Netns } from "../lab/netns.ts";
import { NoTraffic } from "../lab/sockets.ts";
import { ask, ping, serve } from "../lab/traffic.ts";
import { eventually } from "../lab/waiting.ts";
import { ENTRY, makeScene, PORT, type Scene, SERVICE, SILENCE } from "./coordinator-scene.ts";

let scene: Scene;
/** A machine of the pods' segment. */
let machine: Netns;

beforeAll(async () => {
  scene = await makeScene(`su${process.pid}`, FAMILIES);
  machine = await scene.lab.fabric.addHost("machine", 7);
});

afterAll(() => scene.delete());

describe.each(FAMILIES)("a pod whose settings forward IPv%i", (family) => {
  const key = family === 4 ? "ipv4/ip_forward" : "ipv6/conf/all/forwarding";
  const forwarding = (value: string) => writeSysctl(scene.client.netns.path, key, value);
  const via = (place: string) => `-${family} route replace ${place} via ${scene.client.address(family)}`;

  beforeAll(() => forwarding("1"));
  afterAll(() => forwarding("0"));

  it("is no way from its segment to what its node filters there, nor to services", async () => {
    const node = segmentAddress(0, 11, family);
    const guard = `table inet guard { chain input { type filter hook input priority 0; iifname "eth0" tcp dport ${PORT} drop; }; }`;
    const { netns } = scene.lab.node1;
    await requireCommand(netns.enter(["nft", guard]));
    await expect(ask(machine, node, PORT, SILENCE)).rejects.toThrow(NoTraffic);
    await machine.ip(via(node));
    await expect(ask(machine, node, PORT, SILENCE)).rejects.toThrow(NoTraffic);
    await machine.ip(`-${family} route del ${node}`);
    await machine.ip(via(SERVICE[family]));
    await scene.withService(segmentAddress(0, 12, family), { address: SERVICE[family], port: PORT }, async () => {
      await expect(ask(scene.client.netns, SERVICE[family], PORT)).resolves.toBeDefined();
      await expect(ask(machine, SERVICE[family], PORT, SILENCE)).rejects.toThrow(NoTraffic);
    });
    await requireCommand(netns.enter(["nft", "delete table inet guard"]));
  });

  it("is the way of what is behind it, to services and by its NIC", async () => {
    const inner = await scene.lab.addNetns(`inner${family}`);
    await addVeth({ netns: scene.client.netns, name: `in${family}` }, { netns: inner, name: "eth0" });
    const [near, far] = family === 4 ? ["192.168.9.1", "192.168.9.2"] : ["fd00:9::1", "fd00:9::2"];
    await scene.client.netns.ip(`addr add ${near}/${lengthOf(family)} dev in${family} nodad`);
    await inner.ip(`addr add ${far}/${lengthOf(family)} dev eth0 nodad`);
    await inner.ip(`-${family} route add default via ${near}`);
    const hide = `table inet hide { chain post { type nat hook postrouting priority 100; iifname "in${family}" masquerade; }; }`;
    await requireCommand(scene.client.netns.enter(["nft", hide]));
    await scene.withService(segmentAddress(0, 12, family), { address: SERVICE[family], port: PORT }, async () => {
      await expect(ask(inner, SERVICE[family], PORT)).resolves.toBeDefined();
    });
    await using _server = await serving(machine);
    expect((await ask(inner, segmentAddress(0, 7, family), PORT)).seenPeer).toBe(scene.client.address(family));
    await requireCommand(scene.client.netns.enter(["nft", "delete table inet hide"]));
  });
});

describe.each(FAMILIES)("rules of others for IPv%i that come to stand before Berth's", (family) => {
  const node = () => scene.lab.node1.netns;
  const source = segmentAddress(0, 11, family);
  const rules = [
    `from ${source}`,
    `from ${source}/${family === 4 ? 24 : 64} iif lo`,
    `to ${segmentAddress(0, 0, family)}/${family === 4 ? 24 : 64} pref 7`,
    "not fwmark 0xca6c pref 300",
  ];
  const isConnected = async (pod: LabPod): Promise<boolean> =>
    (await ping(node(), pod.address(family))) && (await ping(pod.netns, source));

  it("cut no pod off its node, and no later one", async () => {
    await node().ip(`-${family} route add default via ${segmentAddress(0, 1, family)} dev eth0 table 7`);
    for (const rule of rules) await node().ip(`-${family} rule add ${rule} lookup 7`);
    const isRight = async (): Promise<boolean> =>
      (await scene.client.call("check", scene.network)).exitCode === 0 && (await isConnected(scene.client));
    expect(await eventually(isRight, Boolean, 5_000)).toBe(true);
    const later = await scene.addPod(scene.lab.node1, `later${family}`, {});
    expect([await isConnected(scene.client), await isConnected(later)]).toEqual([true, true]);
    for (const rule of rules) await node().ip(`-${family} rule del ${rule} lookup 7`);
    expect([await isConnected(scene.client), await isConnected(later)]).toEqual([true, true]);
    await scene.client.check(scene.network);
    expect((await node().ip(`-${family} rule`)).match(/lookup 500/g)).toHaveLength(1);
  });
});

it.each([
  ["its NIC's", { mtu: 1_400 }, {}, 1_400],
  ["the one that is set", { mtu: 1_400 }, { vethMTU: 1_380 }, 1_380],
])("a pair has the MTU that is %s, at both ends", async (_what, nic, settings, wanted) => {
  const network = `su-mtu-${wanted}`;
  await scene.lab.define(network, [
    { ...macvlanOn(0), ...nic },
    { ...ENTRY, ...settings },
  ]);
  const pod = await scene.lab.addPod(scene.lab.node1, `mtu${wanted}`);
  await pod.attach(network);
  const [end] = await pod.netns.ipJson<{ mtu: number; link_index: number }>("link show veth0");
  const links = await scene.lab.node1.netns.ipJson<{ ifindex: number; mtu: number }>("link");
  expect([end?.mtu, links.find(({ ifindex }) => ifindex === end?.link_index)?.mtu]).toEqual([wanted, wanted]);
  await pod.check(network);
});

it("a node whose new links do not forward forwards what comes from pods", async () => {
  const { netns } = scene.lab.node1;
  const setting = (value: string) => writeSysctl(netns.path, "ipv4/conf/default/forwarding", value);
  setting("0");
  try {
    const pod = await scene.addPod(scene.lab.node1, "still", {});
    await scene.withService(segmentAddress(0, 12, 4), { address: SERVICE[4], port: PORT }, async () => {
      await expect(ask(pod.netns, SERVICE[4], PORT)).resolves.toBeDefined();
    });
  } finally {
    setting("1");
  }
});

async function serving(place: Netns): Promise<AsyncDisposable> {
  const server = await serve(place, PORT);
  return { [Symbol.asyncDispose]: () => server.close() };
}
