import { describe, expect, it } from "vitest";
import { encodeArpProbe, encodeArpRequest } from "../../../../host/kernel/packet/arp.ts";
import { encodeNdpAnnouncement, encodeNdpProbe, encodeNdpSolicitation } from "../../../../host/kernel/packet/ndp.ts";
import { arpFilter, ndpFilter } from "../../../../host/kernel/packet/segment.ts";
import { ip, mac } from "../../../world/values.ts";
import { readFrames, runFilter } from "./frames.ts";

const own = mac("02:00:00:00:00:01");
const nonce = new Uint8Array(6);

describe("filters", () => {
  const watched4 = [ip("10.6.0.21"), ip("10.6.0.1")];
  it.each<[string, Uint8Array, boolean]>([
    ["a probe for a watched address", encodeArpProbe(own, ip("10.6.0.21")), true],
    ["a probe for the second", encodeArpProbe(own, ip("10.6.0.1")), true],
    ["a question of a watched address's owner", encodeArpRequest(own, ip("10.6.0.1"), ip("10.6.0.77")), true],
    ["a question between others", encodeArpRequest(own, ip("10.6.0.2"), ip("10.6.0.22")), false],
    ["IPv6", encodeNdpProbe(own, ip("fd00::21"), nonce), false],
    ["a frame that is cut", encodeArpProbe(own, ip("10.6.0.21")).subarray(0, 40), false],
    ["an empty frame", new Uint8Array(), false],
  ])("ARP: %s", (_, frame, expected) => expect(runFilter(arpFilter(watched4), frame) > 0).toBe(expected));

  const watched6 = [ip("fd00::21"), ip("fe80::1"), ip("fd00::1:0:0:21")];
  it.each<[string, Uint8Array, boolean]>([
    ["a probe for a watched address", encodeNdpProbe(own, ip("fd00::21"), nonce), true],
    ["a question for the last", encodeNdpSolicitation(own, ip("fd00::9"), ip("fd00::1:0:0:21")), true],
    ["an announcement", encodeNdpAnnouncement(own, ip("fe80::1")), true],
    ["one that differs in the first word", encodeNdpProbe(own, ip("fd01::21"), nonce), false],
    ["one that differs in the second word", encodeNdpProbe(own, ip("fd00:0:0:1::21"), nonce), false],
    ["one that differs in the third word", encodeNdpProbe(own, ip("fd00::2:0:0:21"), nonce), false],
    ["one that differs in the last word", encodeNdpProbe(own, ip("fd00::22"), nonce), false],
    ["another ICMPv6 message", encodeNdpProbe(own, ip("fd00::21"), nonce).with(54, 134), false],
    ["another protocol", encodeNdpProbe(own, ip("fd00::21"), nonce).with(20, 17), false],
    ["ARP", encodeArpProbe(own, ip("10.6.0.21")), false],
  ])("NDP: %s", (_, frame, expected) => expect(runFilter(ndpFilter(watched6), frame) > 0).toBe(expected));

  it.each<[string, number, boolean]>([
    ["to us", 0, true],
    ["to all", 1, true],
    ["to a group", 2, true],
    ["to others, or of a VLAN that is not ours", 3, false],
  ])("frames %s", (_, packetType, expected) => {
    expect(runFilter(arpFilter(watched4), encodeArpProbe(own, ip("10.6.0.21")), packetType) > 0).toBe(expected);
    expect(runFilter(ndpFilter(watched6), encodeNdpProbe(own, ip("fd00::21"), nonce), packetType) > 0).toBe(expected);
  });

  it("of no address let nothing through; of many, each", () => {
    const many4 = Array.from({ length: 200 }, (_, index) => ip(`10.7.0.${index}`));
    const many6 = Array.from({ length: 200 }, (_, index) => ip(`fd00::7:${index}`));
    for (const one of many4) expect(runFilter(arpFilter(many4), encodeArpProbe(own, one))).toBeGreaterThan(0);
    for (const one of many6) expect(runFilter(ndpFilter(many6), encodeNdpProbe(own, one, nonce))).toBeGreaterThan(0);
    for (const { frame } of readFrames())
      expect(runFilter(arpFilter([]), frame) + runFilter(ndpFilter([]), frame)).toBe(0);
  });
});
