/** Conflict detection beside arping and the kernel on the same segment, and tcpdump on what was sent. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Announcer } from "../../host/coordinator/announcer.ts";
import { PROBE_COUNT } from "../../host/coordinator/probe.ts";
import { ip } from "../world/values.ts";
import { capture } from "./detection-capture.ts";
import { detect, type Lab, makeLab, type Pod } from "./detection-lab.ts";

let lab: Lab;
let pod: Pod;

beforeAll(() => {
  lab = makeLab("bkdo");
  pod = lab.addPod();
  lab.addPod({ addresses: ["10.6.0.1/24", "fd00::1/64"], ipv6: true });
});

afterAll(() => lab[Symbol.dispose]());

/**
 * tcpdump's reading of our frames, as patterns. `(…)` behind the address would be a target hardware address that is
 * not 0.
 */
const arpProbe = (address: string) =>
  expect.stringMatching(
    new RegExp(
      `> ff:ff:ff:ff:ff:ff, ethertype ARP .*, length 42: Ethernet .*, Request who-has ${address} tell 0\\.0\\.0\\.0, length 28$`,
    ),
  );
const ndpProbe = (address: string, group: string, groupMac: string) =>
  expect.stringMatching(
    new RegExp(
      `> ${groupMac}, ethertype IPv6 .*, length 86: \\(hlim 255, .*\\) :: > ${group}: \\[icmp6 sum ok\\] ICMP6, neighbor solicitation, ` +
        `length 32, who has ${address} unknown option \\(14\\), length 8 \\(1\\): 0x0000: (?:[0-9a-f]{4} ?){3}$`,
    ),
  );

describe("on the wire", () => {
  it.each(["veth", "macvlan"] as const)(
    "a silent detection is three probes per address and nothing else: %s",
    async (kind) => {
      const quiet = lab.addPod({ kind });
      const wire = await capture(lab, quiet.port);
      expect((await detect(quiet, ["10.6.0.70", "fd00::12:3456"])).conflict).toBeUndefined();
      const frames = await wire.read(quiet.link.mac);
      const probe6 = ndpProbe("fd00::12:3456", "ff02::1:ff12:3456", "33:33:ff:12:34:56");
      const round = [arpProbe("10.6.0.70"), probe6];
      expect(frames).toEqual(Array.from({ length: PROBE_COUNT }, () => round).flat());
      const nonces = frames.map((frame) => /0x0000: (.*)/.exec(frame)?.[1]).filter((nonce) => nonce !== undefined);
      expect(new Set(nonces).size).toBe(PROBE_COUNT);
    },
  );

  it("a conflict ends it after one probe, and nothing is announced", async () => {
    const wire = await capture(lab, pod.port);
    expect((await detect(pod, ["10.6.0.1"])).conflict).toBeDefined();
    expect(await wire.read(pod.link.mac)).toEqual([arpProbe("10.6.0.1")]);
  });

  it("an announcement is a request for oneself, and an unsolicited advertisement with override; a link that has gone is reported", async () => {
    const wire = await capture(lab, pod.port);
    const announcer = new Announcer();
    announcer.announce("eth0", {
      link: pod.link,
      addresses: ["10.6.0.70", "fd00::70"].map(ip),
      onError: (error) => expect.unreachable(String(error)),
    });
    const errors: unknown[] = [];
    for (const gone of [{ index: 999 }, { netnsPath: "/run/netns/bkdo-never" }]) {
      const link = { ...pod.link, ...gone };
      announcer.announce(String(errors.length), {
        link,
        addresses: [ip("10.6.0.70")],
        onError: (error) => errors.push(error),
      });
      announcer[Symbol.dispose](); // sends at once what is still to be announced
    }
    expect(errors).toMatchObject([{ name: "PacketError" }, { name: "NetnsError" }]);
    const frames = await wire.read(pod.link.mac);
    expect(frames).toEqual([
      expect.stringMatching(/> ff:ff:ff:ff:ff:ff, .* Request who-has 10\.6\.0\.70 tell 10\.6\.0\.70, length 28$/),
      expect.stringMatching(
        /> 33:33:00:00:00:01, .*\(hlim 255, .*\) fd00::70 > ff02::1: \[icmp6 sum ok\] ICMP6, neighbor advertisement, length 32, tgt is fd00::70, Flags \[override\] destination link-address option \(2\), length 8 \(1\): /,
      ),
    ]);
  });
});
