import { describe, expect, it } from "vitest";
import {
  type ArpPacket,
  decodeArp,
  encodeArp,
  encodeArpAnnouncement,
  encodeArpProbe,
  encodeArpRequest,
} from "../../../../host/kernel/packet/arp.ts";
import { formatIp } from "../../../../host/net/ip.ts";
import { ip, mac } from "../../../world/values.ts";
import { readFrames } from "./frames.ts";

const recorded = readFrames().filter(({ reading }) => reading.includes("ethertype ARP"));
const require = (frame: Uint8Array) => decodeArp(frame) ?? expect.unreachable();

/** As tcpdump words it. */
function words({ source, destination, operation, senderMac, senderIp, targetMac, targetIp }: ArpPacket): string {
  const requested = targetMac === "00:00:00:00:00:00" ? "" : ` (${targetMac})`;
  const what =
    operation === 1
      ? `Request who-has ${formatIp(targetIp)}${requested} tell ${formatIp(senderIp)}`
      : `Reply ${formatIp(senderIp)} is-at ${senderMac}`;
  return `${source} > ${destination}, ethertype ARP (0x0806), length 42: ${what}, length 28`;
}

describe("ARP packets", () => {
  it.each(recorded)("$command: $reading", ({ frame, reading }) => {
    const packet = require(frame);
    expect(words(packet)).toBe(reading);
    expect(encodeArp(packet)).toEqual(frame);
  });

  it("of detection differ from those of arping in the target's MAC, which RFC 5227 wants to be 0", () => {
    const own = mac("02:00:00:00:00:01");
    const rows: [command: string, frame: Uint8Array][] = [
      ["arping -D -c 1 -w 1 -I v0 10.6.0.21", encodeArpProbe(own, ip("10.6.0.21"))],
      ["arping -c 1 -w 1 -I v0 10.6.0.1", encodeArpRequest(own, ip("10.6.0.21"), ip("10.6.0.1"))],
      ["arping -U -c 1 -I v0 10.6.0.21", encodeArpAnnouncement(own, ip("10.6.0.21"))],
    ];
    for (const [command, frame] of rows) {
      const theirs = recorded.find((row) => row.command === command)?.frame ?? expect.unreachable(command);
      expect(frame).toEqual(encodeArp({ ...require(theirs), targetMac: mac("00:00:00:00:00:00") }));
    }
  });

  it("are read with Ethernet's padding, and not when they are cut", () => {
    const frame = recorded[0]?.frame ?? expect.unreachable();
    expect(decodeArp(new Uint8Array([...frame, ...new Uint8Array(18)]))).toEqual(decodeArp(frame));
    for (let length = 0; length < 42; length++) expect(decodeArp(frame.subarray(0, length))).toBeUndefined();
  });

  it("of other hardware, protocols and lengths are none", () => {
    const frame = recorded[0]?.frame ?? expect.unreachable();
    for (const at of [12, 13, 14, 15, 16, 17, 18, 19])
      expect(decodeArp(frame.with(at, (frame[at] ?? 0) ^ 1))).toBeUndefined();
  });
});
