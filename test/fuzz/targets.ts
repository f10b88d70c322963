/** Every target of fuzzing: the reader, and the inputs to begin with, which are those of other tests. */
import { isDeepStrictEqual } from "node:util";
import { CniError } from "../../host/cni/error.ts";
import { decodeNamespaceAnnotations, decodePodAnnotations } from "../../host/config/annotations.ts";
import { ConfigError } from "../../host/config/config-error.ts";
import { NLMSG_DONE, NLMSG_ERROR } from "../../host/kernel/netlink/constants.ts";
import { NetlinkError } from "../../host/kernel/netlink/error.ts";
import { decodeAcknowledgement, decodeMessages, encodeMessages } from "../../host/kernel/netlink/message.ts";
import { decodeArp, encodeArp } from "../../host/kernel/packet/arp.ts";
import { decodeNdp, encodeNdp, encodeNdpProbe } from "../../host/kernel/packet/ndp.ts";
import type { Mac } from "../../host/net/mac.ts";
import { decodeManifests } from "../../host/resources/manifest.ts";
import { readDefinition, subjects } from "../property/resources/hostile-subjects.ts";
import { readFrames } from "../unit/kernel/packet/frames.ts";
import { readers } from "../unit/kernel/readers.ts";
import { answersTo, type Family, FIXED_BYTES } from "../unit/kernel/recorded.ts";
import type { GuidedTarget } from "./guided.ts";

function readDatagram(datagram: Uint8Array): void {
  for (const message of decodeMessages(datagram)) {
    if (message.type === NLMSG_ERROR || message.type === NLMSG_DONE) decodeAcknowledgement(message);
    else readers.get(message.type)?.(message);
  }
}

/** The smallest datagram with each type of message that was recorded, of each length. */
function recordedDatagrams(): Uint8Array[] {
  const messages = Object.keys(FIXED_BYTES).flatMap((family) => answersTo(family as Family));
  const different = new Map(messages.map((one) => [`${one.type} ${one.payload.length}`, one]));
  return [...different.values()].map((message) => encodeMessages([message]));
}

/** Puts the right checksum into an NDP frame, which chance does not find. */
function withChecksum(frame: Uint8Array): Uint8Array {
  const right = Uint8Array.from(frame);
  const length = ((right[18] ?? 0) << 8) | (right[19] ?? 0);
  right.fill(0, 56, 58);
  let sum = length + 58;
  for (let at = 22; at < 54 + length; at++) sum += (right[at] ?? 0) << (at % 2 === 0 ? 8 : 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  if (right.length > 57) right.set([(~sum >> 8) & 0xff, ~sum & 0xff], 56);
  return right;
}

/** A frame that is decoded, encoded and decoded again is the same. */
function readFrame(frame: Uint8Array): void {
  const arp = decodeArp(frame);
  if (arp !== undefined && !isDeepStrictEqual(decodeArp(encodeArp(arp)), arp)) throw new Error("another ARP packet");
  const ndp = decodeNdp(withChecksum(frame));
  if (ndp !== undefined && !isDeepStrictEqual(decodeNdp(encodeNdp(ndp)), ndp)) throw new Error("another NDP message");
}

/** `key NUL value NUL key NUL value`: of a pod, and of a namespace, with all settings. */
function readAnnotations(input: Buffer): void {
  const parts = input.toString().split("\0");
  const pairs = parts.flatMap((key, at) => (at % 2 === 0 ? [[key, parts[at + 1] ?? ""] as const] : []));
  const annotations = Object.fromEntries(pairs);
  const [on, off] = [true, false];
  for (const rules of [
    { enableIPv4: on, enableIPv6: on, enableSubnet: on },
    { enableIPv4: off, enableIPv6: on, enableSubnet: off },
  ])
    for (const decode of [decodePodAnnotations, decodeNamespaceAnnotations])
      try {
        decode(annotations, rules);
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error;
      }
}

/** Which of the subjects: the first byte. */
function readSubject(input: Buffer): void {
  const [, decode] = subjects[(input[0] ?? 0) % subjects.length] ?? [];
  let value: unknown;
  try {
    value = JSON.parse(input.toString("utf8", 1));
  } catch {
    return;
  }
  decode?.(value);
}

const ofSubjects = (wanted: (title: string) => boolean): string[] =>
  subjects.filter(([title]) => wanted(title)).map(([, , valid]) => JSON.stringify(valid));

const annotationSeeds = [
  ...subjects.flatMap(([title, , valid]) => {
    const [, key] = /^annotation (.*)$/.exec(title) ?? [];
    return key === undefined ? [] : [`ipam.vendor.io/${key}\0${JSON.stringify(valid)}`];
  }),
  "ipam.vendor.io/default-route-nic\0eth0\0ipam.vendor.io/ippool-ip-number\0+2\0ipam.vendor.io/ippool-reclaim\0true",
  'ipam.vendor.io/default-ipv4-ippool\0["a"]\0ipam.vendor.io/default-ipv6-ippool\0["b"]',
  "k8s.v1.cni.cncf.io/networks\0a/b@net1, c\0v1.multus-cni.io/default-network\0a",
  'k8s.v1.cni.cncf.io/networks\0[{"name":"a","namespace":"b","interface":"n","ips":["10.0.0.1"],"cni-args":{"ips":[]}}]',
];

/** A bug that chance does not find, but coverage, one letter after the other. */
function readPlanted(input: Buffer): void {
  if (input[0] === 0x42) {
    if (input[1] === 0x65) {
      if (input[2] === 0x72) {
        if (input[3] === 0x74) {
          if (input[4] === 0x68) throw new Error("planted");
        }
      }
    }
  }
}

const probe = encodeNdpProbe("02:00:00:00:00:01" as Mac, { family: 6, value: 1n }, Uint8Array.of(1, 2, 3, 4, 5, 6));

const isConfigError = (error: unknown): boolean => error instanceof ConfigError || error instanceof CniError;

export const guidedTargets: Readonly<Record<string, GuidedTarget>> = {
  netlink: { seeds: recordedDatagrams(), read: readDatagram, isDeclared: (error) => error instanceof NetlinkError },
  packet: { seeds: [probe, ...readFrames().map(({ frame }) => frame)], read: readFrame, isDeclared: () => false },
  annotations: { seeds: annotationSeeds, read: readAnnotations, isDeclared: () => false },
  definitions: {
    seeds: ofSubjects((title) => /definition|configuration/.test(title)),
    read: (input) => readDefinition(input.toString()),
    isDeclared: isConfigError,
  },
  values: {
    seeds: subjects.map(([, , valid], at) => String.fromCharCode(at) + JSON.stringify(valid)),
    read: readSubject,
    isDeclared: isConfigError,
  },
  manifests: {
    seeds: [...ofSubjects((title) => /^[A-Z]/.test(title)), "kind: Pod\nmetadata: &a\n  name: x\n---\nb: *a\n"],
    read: (input) => decodeManifests(input.toString(), "x"),
    isDeclared: isConfigError,
  },
  planted: { seeds: ["abcdefgh"], read: readPlanted, isDeclared: () => false },
};
