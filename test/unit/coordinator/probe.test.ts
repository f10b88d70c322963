import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  type ConflictTiming,
  classifyPacket,
  conflictSchedule,
  conflictTiming,
  FIRST_PROBE_JITTER_MS,
  MAX_DETECTION_MS,
  type PacketClass,
  type ProbeContext,
  requestSchedule,
  requireShortDetection,
} from "../../../host/coordinator/probe.ts";
import { CARRIER_WAIT_MS } from "../../../host/coordinator/probe-session.ts";
import { type ArpPacket, decodeArp, encodeArpAnnouncement, encodeArpProbe } from "../../../host/kernel/packet/arp.ts";
import { decodeNdp, encodeNdpAnnouncement, encodeNdpProbe, type NdpMessage } from "../../../host/kernel/packet/ndp.ts";
import type { NeighbourPacket } from "../../../host/kernel/packet/segment.ts";
import { ip, mac } from "../../world/values.ts";

const own = mac("02:00:00:00:00:01");
const sibling = mac("02:00:00:00:00:02");
const rival = mac("02:00:00:00:00:99");
const zeroMac = mac("00:00:00:00:00:00");
const candidate4 = ip("10.6.0.7");
const candidate6 = ip("fd00::7");
const gateway4 = ip("10.6.0.1");
const gateway6 = ip("fd00::1");
const ourNonce = Uint8Array.of(1, 2, 3, 4, 5, 6);
const otherNonce = Uint8Array.of(1, 2, 3, 4, 5, 7);

const requested: ProbeContext = {
  candidates: [ip("10.6.0.6"), candidate4, candidate6],
  gateways: [gateway4, gateway6],
  ownMacs: new Set([own, sibling]),
  nonces: new Set(["aabbccddeeff", "010203040506"]),
};

const require = <T>(value: T | undefined): T => value ?? expect.unreachable();
const arp = (frame: Uint8Array, change: Partial<ArpPacket> = {}) => ({ ...require(decodeArp(frame)), ...change });
const ndp = (frame: Uint8Array, change: Partial<NdpMessage> = {}) =>
  ({ ...require(decodeNdp(frame)), ...change }) as NdpMessage;

const REPLY = 2;
const ARP_SHAPE = arp(encodeArpProbe(rival, candidate4));
const reply = (senderMac: typeof rival, senderIp: typeof candidate4): ArpPacket => ({
  ...ARP_SHAPE,
  ...{ operation: REPLY, senderMac, senderIp, targetMac: own, targetIp: ip("0.0.0.0") },
});
const advertisement = (from: typeof rival, target: typeof candidate6, change: Partial<NdpMessage> = {}) =>
  ndp(encodeNdpAnnouncement(from, target), change);

const conflictWith = (ip: typeof candidate4, mac = rival): PacketClass => ({ kind: "conflict", conflict: { ip, mac } });
const [conflict4, conflict6] = [conflictWith(candidate4), conflictWith(candidate6)];
const ours: PacketClass = { kind: "ours" };
const theGateway4: PacketClass = { kind: "gateway", gateway: gateway4 };
const theGateway6: PacketClass = { kind: "gateway", gateway: gateway6 };

const request = (target: string, senderIp: typeof candidate4) => arp(encodeArpProbe(rival, ip(target)), { senderIp });
it.each<[string, NeighbourPacket, PacketClass | undefined]>([
  ["a reply from the candidate's owner", reply(rival, candidate4), conflict4],
  ["a request from the candidate's owner for another", request("10.6.0.50", candidate4), conflict4],
  ["an announcement of the candidate", arp(encodeArpAnnouncement(rival, candidate4)), conflict4],
  ["a rival's probe for the candidate", ARP_SHAPE, conflict4],
  ["an owner whose MAC is nothing", reply(zeroMac, candidate4), conflictWith(candidate4, zeroMac)],
  ["our own probe, sent back", arp(encodeArpProbe(own, candidate4)), ours],
  ["our other attachment", reply(sibling, candidate4), ours],
  ["a reply from the gateway", reply(rival, gateway4), theGateway4],
  ["a gateway that is us", reply(own, gateway4), ours],
  ["our own announcement of an address that is not probed", reply(own, ip("10.6.0.99")), undefined],
  ["a probe for the gateway's address", arp(encodeArpProbe(rival, gateway4)), undefined],
  ["an ordinary request for the candidate", request("10.6.0.7", ip("10.6.0.50")), undefined],
  ["a reply from 0.0.0.0 to the candidate", { ...reply(rival, ip("0.0.0.0")), targetIp: candidate4 }, undefined],
  ["an owner of another address", reply(rival, ip("10.6.0.8")), undefined],
  ["a reply to the candidate from another", { ...reply(rival, ip("10.6.0.8")), targetIp: candidate4 }, undefined],
  ["an operation of another protocol", { ...reply(rival, candidate4), operation: 4 }, undefined],
])("judgement of ARP %s", (_, packet, expected) => expect(classifyPacket(packet, requested)).toEqual(expected));

describe("judgement of neighbour discovery", () => {
  const probe = (from: typeof rival, nonce: Uint8Array, target = candidate6, change: Partial<NdpMessage> = {}) =>
    ndp(encodeNdpProbe(from, target, nonce), change);
  const ofRival = (change: Partial<NdpMessage>, nonce = ourNonce) => probe(rival, nonce, candidate6, change);
  const changed = (change: Partial<NdpMessage>, from = rival) => advertisement(from, candidate6, change);
  it.each<[string, NeighbourPacket, PacketClass | undefined]>([
    ["an advertisement of the candidate", advertisement(rival, candidate6), conflict6],
    ["one without the option", changed({ linkLayer: undefined }), conflict6],
    ["one whose option names another than its frame", changed({ linkLayer: rival }, sibling), conflict6],
    ["a rival's probe with another nonce", probe(rival, otherNonce), conflict6],
    ["a rival's probe without a nonce", ofRival({ nonce: undefined }), conflict6],
    ["our nonce from another MAC: a reflection", probe(rival, ourNonce), ours],
    ["our MAC with another nonce: the kernel's own probe, sent back", probe(own, otherNonce), ours],
    ["our advertisement, sent back", advertisement(own, candidate6), ours],
    ["our other attachment", advertisement(sibling, candidate6), ours],
    ["an advertisement of the gateway", advertisement(rival, gateway6), theGateway6],
    ["a probe for the gateway's address", probe(rival, otherNonce, gateway6), undefined],
    ["an ordinary request for the candidate", ofRival({ source: ip("fd00::50") }, otherNonce), undefined],
    ["an advertisement of another address", advertisement(rival, ip("fd00::8")), undefined],
    ["a rival's probe for another address", probe(rival, otherNonce, ip("fd00::8")), undefined],
  ])("%s", (_, packet, expected) => expect(classifyPacket(packet, requested)).toEqual(expected));

  it("an address of one family is none of the other", () => {
    const low: ProbeContext = { ...requested, candidates: [{ family: 6, value: candidate4.value }] };
    expect(classifyPacket(reply(rival, candidate4), low)).toBeUndefined();
  });
});

const LAST_RANDOM = 1 - 2 ** -53;
it.each<[number, number, number[]]>([
  [200, 0, [0, 50, 350 / 3]],
  [200, 0.5, [1, 200 / 3, 400 / 3]],
  [200, LAST_RANDOM, [FIRST_PROBE_JITTER_MS, 250 / 3, 150]],
  [3_000, 0.5, [1, 1_000, 2_000]],
  [200, 0.3, [0, 60, 380 / 3]],
  [3, 0.5, [0, 1, 2]],
])("the schedule of probes over %i ms with %f", (windowMs, random, expected) => {
  const { sendAtMs, endAtMs } = conflictSchedule({ windowMs }, () => random);
  expect(endAtMs).toBe(windowMs);
  expect(sendAtMs).toHaveLength(expected.length);
  for (const [index, at] of sendAtMs.entries()) expect(at).toBeCloseTo(expected[index] ?? Number.NaN, 9);
});

describe("the time of a detection", () => {
  it.each<[ConflictTiming, string | undefined]>([
    [{ windowMs: MAX_DETECTION_MS }, undefined],
    [{ windowMs: MAX_DETECTION_MS + 1 }, 'field "detectOptions": found a window of 35s1ms, want at most 35s in all'],
    [{ retry: 36, intervalMs: 0, timeoutMs: MAX_DETECTION_MS }, undefined],
    [{ retry: 35, intervalMs: 1_000, timeoutMs: 1_000 }, undefined],
    [
      { retry: 100, intervalMs: 1_000, timeoutMs: 1_500 },
      "found 100 requests, 1s apart, and 1s500ms for the last answer: 1m40s500ms, want at most 35s in all",
    ],
  ])("%j: %s", (timing, message) => {
    if (message === undefined) requireShortDetection(timing);
    else expect(() => requireShortDetection(timing)).toThrow(message);
  });

  it("with a carrier that comes late, and gateways after it, is shorter than an ADD", () => {
    const limit = Number(/#define ADD_LIMIT_MS (\d+)/.exec(readFileSync("native/shim-limits.h", "utf8"))?.[1]);
    expect(CARRIER_WAIT_MS + 2 * MAX_DETECTION_MS).toBeLessThan(limit);
  });
});

it.each([
  [{ retry: 3, intervalMs: 1_000, timeoutMs: 1_000 }, [1, 1_001, 2_001], 3_001],
  [{ retry: 1, intervalMs: 1_000, timeoutMs: 50 }, [1], 51],
  [{ retry: 2, intervalMs: 100, timeoutMs: 1_000 }, [1, 101], 1_101],
  [{ retry: 2, intervalMs: 1_000, timeoutMs: 100 }, [1, 1_001], 1_101],
])("the schedule of questions %j", (timing, sendAtMs, endAtMs) =>
  expect(requestSchedule(timing, () => 0.5)).toEqual({ sendAtMs, endAtMs }),
);

describe("the timing of the settings", () => {
  const pace = { retry: 3, intervalMs: 100, timeoutMs: 200 };
  it("a pace sends at regular intervals", () =>
    expect(conflictSchedule(pace, () => 0.5)).toEqual({ sendAtMs: [1, 101, 201], endAtMs: 401 }));

  it("is the window, or the pace without one", () => {
    expect(conflictTiming({ ...pace, windowMs: 300, onConflict: "fail" })).toEqual({ windowMs: 300 });
    expect(conflictTiming({ ...pace, windowMs: undefined, onConflict: "fail" })).toEqual(pace);
  });
});
