import { describe, expect, it } from "vitest";
import { podArgs } from "../lab/manifests.ts";
import { ASCENDING, ASCENDING_SIX, type Segment, withSegment } from "../lab/netns/segment.ts";
import type { DirectCall } from "../lab/netns/world.ts";
import type { Netns } from "../lab/netns.ts";
import { eventually } from "../lab/waiting.ts";
import { itLong } from "../world/long-cases.ts";
import { readSysctl } from "../world/sysctl.ts";

const UID = "5f0c0000-0000-4000-8000-000000000001";
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

/** A pod whose ADD is in the middle of its window. */
async function withAsking(test: (segment: Segment, pod: Netns, call: DirectCall) => Promise<void>): Promise<void> {
  await withSegment({}, async (segment) => {
    await setWindow(segment, `${WINDOW_MS / 1_000}s`);
    const pod = await segment.podWithNic();
    const call = segment.addDirectly(pod, podArgs("shop", pod.name, UID));
    await eventually(
      () => isUp(pod),
      (up) => up,
    );
    await test(segment, pod, call);
  });
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

  it("a namespace that is deleted ends it with an error, and nothing is kept", () =>
    withAsking(async (segment, pod, call) => {
      await pod.delete();
      expect(await call.answer).toMatchObject({
        code: 11,
        msg: expect.stringContaining("detection failed for 10.66.0.1"),
      });
      expect(await segment.usage()).toEqual({});
    }));

  it("a DEL takes the address, and the ADD is refused", () =>
    withAsking(async (segment, pod, call) => {
      const del = await segment.run("berth", "DEL", pod);
      expect(del.exitCode, del.text).toBe(0);
      expect(await call.answer).toMatchObject({ code: 11, msg: expect.stringContaining("was released while") });
      expect((await segment.usage()).Bound).toBeUndefined();
    }));

  it("the same ADD again gets the same address, as does the first", () =>
    withAsking(async (segment, pod, call) => {
      const again = segment.addDirectly(pod, podArgs("shop", pod.name, UID));
      const answers = [await call.answer, await again.answer];
      const given = answers.flatMap(({ ips = [] }) => ips.map(({ address }) => address));
      // The first ends by putting the link down, since no coordinator follows: then the detection of the other fails,
      // and says so.
      const refusals = answers.filter(({ code }) => code !== undefined).map(({ code }) => code);
      expect(given.length + refusals.length).toBe(2);
      expect(new Set(given)).toEqual(new Set(["10.66.0.1/29"]));
      expect(new Set(refusals)).toEqual(new Set(refusals.length === 0 ? [] : [11]));
      expect((await segment.usage()).Bound).toEqual(["10.66.0.1"]);
    }));

  it("another sandbox of the pod ends it", () =>
    withAsking(async (segment, pod, call) => {
      const later = await segment.podWithNic();
      const again = segment.addDirectly(later, podArgs("shop", pod.name, UID));
      expect(await call.answer).toMatchObject({ code: 11, msg: expect.stringContaining("Another sandbox of the pod") });
      expect((await again.answer).ips).toHaveLength(1);
      expect((await segment.usage()).Bound).toHaveLength(1);
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

it("a window of 1 ms is one: the question goes out, and silence attaches", () =>
  withSegment({}, async (segment) => {
    await setWindow(segment, "1ms");
    expect(await segment.add(await segment.pod())).toEqual(["10.66.0.1"]);
  }));

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
