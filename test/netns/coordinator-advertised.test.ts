/** Routers that advertise themselves on the segment of a pod's first NIC, and what the next NIC's ADD makes of that. */
import { describe, expect, it } from "vitest";
import { encodeIp } from "../../host/kernel/netlink/ip-bytes.ts";
import { createFrame, ETH_P_IPV6, HEADER_BYTES } from "../../host/kernel/packet/ethernet.ts";
import { ALL_NODES, multicastMac } from "../../host/kernel/packet/ndp.ts";
import { openSendingSocket } from "../../host/kernel/packet/socket.ts";
import { ip, mac } from "../world/values.ts";
import { coordinateEach } from "./coordinator-lab.ts";
import { makeNic, nicOf } from "./coordinator-world.ts";
import { showIn } from "./kernel-scene.ts";

const lab = coordinateEach("bra");

const eth0 = nicOf("eth0", 6);
const net1 = nicOf("net1", 7);

const ROUTER = ip("fe80::1:1");
const ICMPV6_AT = 40;
const ADVERTISEMENT_BYTES = 16;

/**
 * A router advertisement without options to all nodes (RFC 4861 §4.2): hop limit 255, and the router's lifetime in
 * seconds.
 */
function advertisement(lifetimeS: number): Uint8Array {
  const frame = createFrame(
    multicastMac(ALL_NODES),
    mac("02:00:00:00:0a:0a"),
    ETH_P_IPV6,
    ICMPV6_AT + ADVERTISEMENT_BYTES,
  );
  const packet = frame.subarray(HEADER_BYTES);
  packet.set([0x60, 0, 0, 0, 0, ADVERTISEMENT_BYTES, 58, 255]);
  packet.set(encodeIp(ROUTER), 8);
  packet.set(encodeIp(ALL_NODES), 24);
  packet.set([134, 0, 0, 0, 64, 0, lifetimeS >> 8, lifetimeS & 0xff], ICMPV6_AT);
  let sum = ADVERTISEMENT_BYTES + 58;
  for (let at = 8; at < packet.length; at += 2) sum += ((packet[at] ?? 0) << 8) | (packet[at + 1] ?? 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  packet.set([(~sum >> 8) & 0xff, ~sum & 0xff], ICMPV6_AT + 2);
  return frame;
}

const routes = (what = "") => showIn(lab.names.pod, `-6 route show ${what}`.trim());

async function advertise(): Promise<void> {
  const index = Number(/^\d+/.exec(showIn(lab.names.node, "-o link show far0"))?.[0]);
  using socket = openSendingSocket({ netnsPath: `/run/netns/${lab.names.node}`, link: index });
  socket.send(advertisement(300));
  await expect.poll(() => routes("proto ra")).toContain("default");
}

const defaults = () =>
  routes("default")
    .split("\n")
    .map((line) => line.replace(/expires.*/, "").trim());

describe.each([
  ["before the first NIC's ADD", 0],
  ["between the ADDs", 1],
  ["after the second NIC was made", 2],
])("a router advertises itself %s", (_, when) => {
  it("and the second NIC is attached, whose default route the kernel has joined with the first one's", async () => {
    makeNic(lab.names, eth0);
    if (when === 0) await advertise();
    await lab.world.add(eth0, {});
    if (when === 1) await advertise();
    makeNic(lab.names, net1);
    if (when === 2) await advertise();
    expect(defaults()).toContain("nexthop via fd00:7::1 dev net1 weight 1");

    const undo = await lab.world.addAbandoned(net1, {});
    await undo();
    expect(defaults()).toContain("nexthop via fd00:6::1 dev eth0 weight 1");
    expect(defaults()).toContain("nexthop via fd00:7::1 dev net1 weight 1");

    await lab.world.add(net1, {});
    expect(defaults().sort()).toEqual([
      "",
      "default via fd00:6::1 dev eth0 metric 1024 pref medium",
      "default via fe80::1:1 dev eth0 proto ra metric 1024",
    ]);
    for (const nic of [eth0, net1]) await lab.world.check(nic, {});
    await lab.world.add(net1, {});
    for (const nic of [eth0, net1]) await lab.world.check(nic, {});
  });
});
