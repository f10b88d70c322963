import { describe, expect, it } from "vitest";
import { podArgs } from "../lab/manifests.ts";
import { ASCENDING, ASCENDING_SIX, type Segment, withSegment } from "../lab/netns/segment.ts";
import type { Netns } from "../lab/netns.ts";
import { eventually } from "../lab/waiting.ts";
import { itLong } from "../world/long-cases.ts";
import { readSysctl } from "../world/sysctl.ts";

const WINDOW_MS = 2_000;
/** Longer than any test waits. */
const LONG_WINDOW_MS = 5_000;
/** More effects than an ADD that is refused has. */
const MOST_EFFECTS = 20;

function setWindow(segment: Segment, window: string): Promise<void> {
  return segment.setDetection({ detectIPConflict: true, detectOptions: { window } });
}

async function isUp(pod: Netns): Promise<boolean> {
  const [link] = await pod.ipJson<{ flags: string[] }>("link show dev eth0");
  return link?.flags.includes("UP") ?? false;
}

/** All about the NIC that detection touches. */
async function settingsOf(pod: Netns): Promise<unknown> {
  const read = (key: string) => readSysctl(pod.path, `ipv6/conf/eth0/${key}`);
  return { up: await isUp(pod), disableIpv6: read("disable_ipv6"), acceptDad: read("accept_dad") };
}

const nothing = (usage: object): boolean => Object.keys(usage).length === 0;

describe("while the NIC is asking", () => {
  it("a caller that hangs up ends it: nothing is bound or quarantined, the link is as it was found", () =>
    withSegment({}, async (segment) => {
      const [fresh, pod] = [await segment.podWithNic(), await segment.podWithNic()];
      const found = await settingsOf(pod);
      expect(found).toEqual(await settingsOf(fresh));
      await setWindow(segment, `${LONG_WINDOW_MS / 1_000}s`);
      const call = segment.addDirectly(pod);
      await eventually(
        () => isUp(pod),
        (up) => up,
      );
      const start = performance.now();
      call.hangUp();
      await eventually(() => segment.usage(), nothing);
      await eventually(
        () => isUp(pod),
        (up) => !up,
      );
      expect(performance.now() - start).toBeLessThan(LONG_WINDOW_MS - 1_000);
      expect(await settingsOf(pod)).toEqual(found);
    }));

  it("another pod whose runtime names no UID does not end it", () =>
    withSegment({}, async (segment) => {
      await setWindow(segment, `${WINDOW_MS / 1_000}s`);
      const pods = [await segment.podWithNic(), await segment.podWithNic()];
      const calls = pods.map((pod) => segment.addDirectly(pod, podArgs("shop", pod.name, "")));
      const answers = await Promise.all(calls.map(({ answer }) => answer));
      expect(answers.map(({ msg }) => msg)).toEqual([undefined, undefined]);
      expect((await segment.usage()).Bound).toHaveLength(2);
    }));
});

/** The two families of a pod; the second one's first address is the rival's. */
const BOTH = { vendor: {}, pools: { ...ASCENDING, ...ASCENDING_SIX } };

itLong(
  "an agent that is killed at any effect until a conflict is on record leaves both addresses of the pod or none, never one",
  () =>
    withSegment(BOTH, async (segment) => {
      await segment.rival.ip("addr add fd00:66::1/64 dev wire nodad");
      const seen: string[] = [];
      for (let number = 1; ; number++) {
        expect(number).toBeLessThan(MOST_EFFECTS);
        await segment.agent.restart(`kill@${number}`);
        const pod = await segment.podWithNic();
        await segment.addDirectly(pod).answer.catch(() => undefined);
        await segment.agent.restart();
        const { Bound = [], Quarantined = [] } = await segment.usage();
        seen.push(`${Bound.length} bound, ${Quarantined.length} quarantined`);
        if (Quarantined.length > 0) break;
        await segment.run("berth", "DEL", pod);
        await eventually(() => segment.usage(), nothing);
      }
      expect(new Set(seen)).toEqual(
        new Set(["0 bound, 0 quarantined", "2 bound, 0 quarantined", "0 bound, 1 quarantined"]),
      );
    }),
);
