/** A machine of the segment that plays the router: pods take from it neither addresses nor routes, unless they may. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { encodeIp } from "../../host/kernel/netlink/ip-bytes.ts";
import { createFrame, ETH_P_IPV6, HEADER_BYTES } from "../../host/kernel/packet/ethernet.ts";
import { ALL_NODES, multicastMac } from "../../host/kernel/packet/ndp.ts";
import { openSendingSocket } from "../../host/kernel/packet/socket.ts";
import { writeSysctl } from "../../host/kernel/sysctl.ts";
import { ipPool, macvlan, podManifest } from "../lab/manifests.ts";
import { macvlanOn } from "../lab/netns/coordinator.ts";
import type { LabPod } from "../lab/netns/world.ts";
import { until } from "../lab/waiting.ts";
import { ip, mac } from "../world/values.ts";
import { ENTRY, makeNicLab, type NicLab } from "./coordinator-nics.ts";

const ROUTER = "fe80::bad";
const PREFIX = "fd00:bad::";

let lab: NicLab;
const stack = new DisposableStack();
const network = (name: string) => `ro${process.pid}-${name}`;

/** A default route and a prefix to make addresses of, with checksum (RFC 4861 §4.2, §4.6.2). */
function advertisement(): Uint8Array {
  const frame = createFrame(multicastMac(ALL_NODES), mac("02:00:00:00:0b:ad"), ETH_P_IPV6, 40 + 16 + 32);
  const packet = frame.subarray(HEADER_BYTES);
  packet.set([0x60, 0, 0, 0, 0, 48, 58, 255]);
  packet.set(encodeIp(ip(ROUTER)), 8);
  packet.set(encodeIp(ALL_NODES), 24);
  packet.set([134, 0, 0, 0, 64, 0, 0x07, 0x08], 40);
  packet.set([3, 4, 64, 0xc0, 0, 1, 0x51, 0x80, 0, 0, 0x38, 0x40], 56);
  packet.set(encodeIp(ip(PREFIX)), 72);
  let sum = 48 + 58;
  for (let at = 8; at < packet.length; at += 2) sum += ((packet[at] ?? 0) << 8) | (packet[at + 1] ?? 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  packet.set([(~sum >> 8) & 0xff, ~sum & 0xff], 42);
  return frame;
}

beforeAll(async () => {
  const near6 = ipPool("near", "fd00:66::/64", { gateway: ROUTER });
  const pod = podManifest("shop", "routes", { routes: [{ dst: "::/0", gw: ROUTER }] });
  lab = await makeNicLab("ro", { config: { "near.yaml": near6, "pod.yaml": pod } });
  const { router } = lab.fabric;
  const [{ ifindex: link } = { ifindex: 0 }] = await router.ipJson<{ ifindex: number }>("link show dev seg0");
  const socket = stack.use(openSendingSocket({ netnsPath: router.path, link }));
  const frame = advertisement();
  const timer = setInterval(() => socket.send(frame), 5);
  stack.defer(() => clearInterval(timer));
  await lab.define(network("v4"), [macvlanOn(0, [4]), ENTRY]);
  for (const name of ["both", "routes"]) await lab.define(network(name), [macvlanOn(0), ENTRY]);
  await lab.define(network("sbr"), [macvlanOn(0), { type: "sbr" }, ENTRY]);
  const near = { type: "berth", default_ipv4_ippool: ["seg0-v4"], default_ipv6_ippool: ["near"] };
  await lab.define(network("near"), [macvlan("eth0", near), ENTRY]);
  await lab.define(network("alone"), [macvlan("eth0", near)]);
  await lab.define(network("open"), [macvlanOn(0), { ...ENTRY, acceptRA: true }]);
});

afterAll(async () => {
  stack.dispose();
  await lab?.delete();
});

const learned = async (pod: LabPod): Promise<string[]> => {
  const texts = [await pod.netns.ip("-6 addr show dev eth0"), await pod.netns.ip("-6 route show table all dev eth0")];
  return texts.flatMap((text) => text.split("\n")).filter((line) => line.includes(PREFIX) || line.includes(ROUTER));
};

it("a pod that may takes address, prefix and default route of the router", async () => {
  const pod = await lab.addPod(lab.node1, "open");
  await pod.attach(network("open"));
  await until("something learned", async () => (await learned(pod)).length >= 3);
  await pod.check(network("open"));
  await pod.detach(network("open"));
});

it.each(["v4", "both", "sbr"])("a pod has only what it was given: network %s", async (name) => {
  const pod = await lab.addPod(lab.node1, name);
  for (let round = 0; round < 5; round++) {
    await pod.attach(network(name));
    expect(await learned(pod)).toEqual([]);
    const { stdout } = await pod.netns.exec(["sh", "-c", "cat /proc/sys/net/ipv[46]/conf/eth0/accept_redirects"]);
    expect(stdout).toMatch(/^(0\n)+$/);
    await sleep(100);
    expect(await learned(pod)).toEqual([]);
    if (name !== "sbr") await pod.check(network(name)); // macvlan misses what sbr has moved
    await pod.detach(network(name));
  }
});

it.each(["near", "alone", "routes"])("a pod whose router advertises itself has its own default: %s", async (name) => {
  const pod = await lab.addPod(lab.node1, name);
  // The main plugin waits for that before it adds its routes.
  writeSysctl(pod.netns.path, "ipv6/conf/default/accept_dad", "1");
  await pod.attach(network(name));
  const routes = await pod.netns.ip("-6 route show default");
  expect(routes.trim()).toBe(`default via ${ROUTER} dev eth0 metric 1024 pref medium`);
  await pod.check(network(name));
  await pod.detach(network(name));
});
