import { describe, expect, it } from "vitest";
import {
  decodeNdp,
  encodeNdp,
  encodeNdpAnnouncement,
  encodeNdpProbe,
  encodeNdpSolicitation,
  type NdpMessage,
  solicitedNode,
} from "../../../../host/kernel/packet/ndp.ts";
import { formatIp } from "../../../../host/net/ip.ts";
import { ip, mac } from "../../../world/values.ts";
import { readFrames } from "./frames.ts";

const recorded = readFrames().filter(({ reading }) => reading.includes("ethertype IPv6"));
const require = (frame: Uint8Array) => decodeNdp(frame) ?? expect.unreachable();
const frameOf = (command: string, text: string) =>
  recorded.find((row) => row.command.startsWith(command) && row.reading.includes(text))?.frame ??
  expect.unreachable(command);

/** As tcpdump words it, but for the length. */
function words(message: NdpMessage): string {
  const { sourceMac, destinationMac, source, destination, target } = message;
  const asks = message.kind === "solicitation" ? "neighbor solicitation, who has" : "neighbor advertisement, tgt is";
  const frame = `${sourceMac} > ${destinationMac}, ethertype IPv6 (0x86dd)`;
  return `${frame}: ${formatIp(source)} > ${formatIp(destination)}: ICMP6, ${asks} ${formatIp(target)}`;
}

/** IPv6's flow label is the sender's affair. */
function withoutFlowLabel(frame: Uint8Array): Uint8Array {
  return frame.with(15, 0).with(16, 0).with(17, 0);
}

describe("neighbour discovery", () => {
  it.each(recorded)("$command: $reading", ({ frame, reading }) => {
    const message = require(frame);
    expect(words(message)).toBe(reading.replaceAll(/, length \d+/g, ""));
    expect(encodeNdp(message)).toEqual(withoutFlowLabel(frame));
  });

  it("our probe is the kernel's own, nonce and all", () => {
    const kernels = frameOf("ip addr add fd00::21/64 dev v0", "solicitation");
    const message = require(kernels);
    if (message.kind !== "solicitation") expect.unreachable();
    expect(message.nonce).toHaveLength(6);
    const nonce = message.nonce ?? expect.unreachable();
    expect(encodeNdpProbe(mac("02:00:00:00:00:01"), ip("fd00::21"), nonce)).toEqual(kernels);
    expect(message.source.value).toBe(0n);
    expect(message.linkLayer).toBeUndefined();
    expect(require(frameOf("ip addr add fd00::22/64 dev v0", "solicitation"))).toMatchObject({ nonce: undefined });
  });

  it("our question is ndisc6's", () => {
    const theirs = frameOf("ndisc6", "solicitation");
    const ours = encodeNdpSolicitation(mac("02:00:00:00:00:01"), ip("fe80::ff:fe00:1"), ip("fd00::1"));
    expect(ours).toEqual(withoutFlowLabel(theirs));
  });

  it("a group has the last three octets of its address", () =>
    expect(formatIp(solicitedNode(ip("fd00::12:3456")))).toBe("ff02::1:ff12:3456"));

  it("our announcement is the kernel's", () => {
    const theirs = frameOf("ip link set v0 address", "tgt is fd00::21");
    expect(encodeNdpAnnouncement(mac("02:00:00:00:00:11"), ip("fd00::21"))).toEqual(theirs);
    expect(require(theirs)).toMatchObject({ router: false, solicited: false, override: true });
  });
});

describe("a discarded frame", () => {
  const solicitation = frameOf("ip addr add fd00::21/64 dev v0", "solicitation");
  const question = frameOf("ndisc6", "solicitation");
  const answer = frameOf("ndisc6", "advertisement");

  it("every cut, and every frame in which one bit is wrong", () => {
    for (const frame of [solicitation, question, answer]) {
      for (let length = 0; length < frame.length; length++)
        expect(decodeNdp(frame.subarray(0, length))).toBeUndefined();
      // from the ether type on, but for traffic class and flow label, which no checksum covers
      for (let at = 12; at < frame.length; at++) {
        if (at >= 14 && at < 18) continue;
        expect(decodeNdp(frame.with(at, (frame[at] ?? 0) ^ 1)), `byte ${at}`).toBeUndefined();
      }
      expect(decodeNdp(frame.with(14, 0x40))).toBeUndefined();
      // without Ethernet's padding
      expect(decodeNdp(new Uint8Array([...frame, ...new Uint8Array(6)]))).toEqual(decodeNdp(frame));
    }
  });

  const message = require(solicitation);
  it.each<[string, object]>([
    ["a solicitation from nowhere to one host", { destination: ip("fd00::21") }],
    ["a solicitation from nowhere that says who asks", { linkLayer: mac("02:00:00:00:00:01") }],
    ["a solicitation for a group", { target: ip("ff02::1"), destination: solicitedNode(ip("ff02::1")) }],
  ])("%s", (_, change) => {
    expect(decodeNdp(encodeNdp({ ...message, ...change }))).toBeUndefined();
    expect(decodeNdp(encodeNdp(message))).toBeDefined();
  });

  it("options of length 0, or longer than the packet, even with a right checksum", () => {
    const nonceAt = 14 + 40 + 24;
    for (const [length, difference] of [
      [0, 1],
      [2, -1],
    ] as const) {
      const frame = solicitation.with(nonceAt + 1, length);
      const checksum = (((frame[56] ?? 0) << 8) | (frame[57] ?? 0)) + difference;
      expect(decodeNdp(frame.with(56, (checksum >> 8) & 255).with(57, checksum & 255))).toBeUndefined();
    }
  });
});
