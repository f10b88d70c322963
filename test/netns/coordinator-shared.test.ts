/**
 * An address that two pods have while a machine migrates: the target's coordinator leaves it to the source
 * (docs/workloads.md).
 */
import { afterEach, beforeEach, expect, it } from "vitest";
import { decodeArp } from "../../host/kernel/packet/arp.ts";
import { ETH_P_ARP, ETH_P_IPV6 } from "../../host/kernel/packet/ethernet.ts";
import { decodeNdp } from "../../host/kernel/packet/ndp.ts";
import { arpFilter, ndpFilter } from "../../host/kernel/packet/segment.ts";
import { openPacketSocket, type PacketSocket } from "../../host/kernel/packet/socket.ts";
import { formatIp, type Ip } from "../../host/net/ip.ts";
import { ip } from "../world/values.ts";
import {
  addressOf,
  deleteNamespaces,
  makeNamespaces,
  makeNic,
  type Names,
  nicOf,
  openWorld,
} from "./coordinator-world.ts";
import { ipJson } from "./kernel-scene.ts";

const nic = nicOf("eth0", 6);
const [FOUR, SIX] = [addressOf(nic, 4), addressOf(nic, 6)];

let names: Names;

beforeEach(() => {
  names = makeNamespaces("bcs");
});

afterEach(() => deleteNamespaces(names));

/** Addresses that were announced on the NIC's segment, in order. */
async function announcementsOf(isShared: (ip: Ip) => boolean, until: string): Promise<string[]> {
  const announced: string[] = [];
  const netnsPath = `/run/netns/${names.node}`;
  const [{ ifindex: link }] = ipJson(names.node, "link show far0");
  const listen = (socket: PacketSocket, read: (frame: Uint8Array) => Ip | undefined): PacketSocket => {
    socket.listen({
      frame: (frame) => {
        const address = read(frame);
        if (address !== undefined) announced.push(formatIp(address));
      },
      failure: (error) => expect.unreachable(String(error)),
    });
    return socket;
  };
  using _arp = listen(
    openPacketSocket({ netnsPath, link, etherType: ETH_P_ARP, filter: arpFilter([ip(FOUR)]) }),
    (frame) => {
      const packet = decodeArp(frame);
      return packet !== undefined && formatIp(packet.senderIp) === formatIp(packet.targetIp)
        ? packet.senderIp
        : undefined;
    },
  );
  using _ndp = listen(
    openPacketSocket({ netnsPath, link, etherType: ETH_P_IPV6, filter: ndpFilter([ip(SIX)]) }),
    (frame) => {
      const message = decodeNdp(frame);
      return message?.kind === "advertisement" ? message.target : undefined;
    },
  );
  makeNic(names, nic);
  await using world = await openWorld(names, { isShared });
  await world.add(nic, {});
  await expect.poll(() => announced, { timeout: 30_000 }).toContain(until);
  await world.del(nic, {});
  return announced;
}

it("is not announced, and the NIC's other one is", async () => {
  expect(await announcementsOf((address) => address.family === 4, SIX)).toEqual([SIX]);
});

it("is announced when it is the pod's alone", async () => {
  expect(await announcementsOf(() => false, SIX)).toEqual([FOUR, SIX]);
});
