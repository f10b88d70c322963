/**
 * Networks that a running pod is disconnected from and connected to again: its other NICs keep their way to the node.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { FAMILIES } from "../../host/net/ip.ts";
import { coordinate, macvlanOn, pairsOf, withoutRetired } from "../lab/netns/coordinator.ts";
import type { LabPod } from "../lab/netns/world.ts";
import { ofRun } from "../world/long-cases.ts";

import {
  ENTRY,
  expectNodePort,
  expectReplies,
  expectServices,
  FIRST,
  makeNicLab,
  type NicLab,
  type NicPlace,
  SECOND,
  THIRD,
} from "./coordinator-nics.ts";

let lab: NicLab;
const network = (segment: number): string => `cx${process.pid}-${segment}`;

beforeAll(async () => {
  lab = await makeNicLab("cx");
  for (const segment of [0, 1, 2]) await lab.define(network(segment), [macvlanOn(segment), ENTRY]);
});

afterAll(() => lab?.delete());

async function addPod(name: string, nics: readonly NicPlace[]): Promise<LabPod> {
  const pod = await lab.addServer(name);
  for (const { ifName, segment } of nics) await pod.attach(network(segment), ifName);
  return pod;
}

/** Node and services both ways, replies by each NIC's own way, and CHECK passes. */
async function expectAll(pod: LabPod, nics: readonly NicPlace[]): Promise<void> {
  for (const family of FAMILIES) {
    const expected = { lab, pod, family, nics };
    await expectReplies(expected);
    await expectServices(expected);
    await expectNodePort(expected);
  }
  for (const { ifName, segment } of nics) await pod.check(network(segment), ifName);
}

const CASES = [
  ["the first and then the second of three", "a", [FIRST, SECOND, THIRD], [FIRST, SECOND]],
  ["the second and then the first of three", "b", [FIRST, SECOND, THIRD], [SECOND, FIRST]],
  ["the first of two", "c", [FIRST, SECOND], [FIRST]],
  ["the second of two", "d", [FIRST, SECOND], [SECOND]],
] as const;

it.each(ofRun(CASES, (_, index) => index === 0))(
  "%s: the others keep their ways, and all have theirs when it is back",
  async (_, name, nics, gone) => {
    const pod = await addPod(name, nics);
    let left: readonly NicPlace[] = nics;
    for (const nic of gone) {
      await pod.detach(network(nic.segment), nic.ifName);
      left = left.filter((each) => each !== nic);
      await expectAll(pod, left);
    }
    for (const nic of gone) {
      await pod.attach(network(nic.segment), nic.ifName);
      left = nics.filter((each) => left.includes(each) || each === nic);
      await expectAll(pod, left);
    }
    for (const { ifName, segment } of nics) await pod.detach(network(segment), ifName);
    await withoutRetired(lab.node1.netns);
    expect(await pairsOf(lab.node1.netns)).toEqual([]);
    for (const family of FAMILIES) {
      expect(await lab.node1.netns.ip(`-${family} route show table all proto 98`)).toBe("");
      expect(await pod.netns.ip(`-${family} route show table all proto 98`)).toBe("");
    }
  },
);

it.each(ofRun([FIRST, SECOND], (nic) => nic === FIRST))(
  "the ADD of $ifName makes a lost pair anew, for the other NIC too, whatever it was told before",
  async (nic) => {
    const pod = await addPod(`lost${nic.segment}`, [FIRST, SECOND]);
    for (const pair of await pairsOf(lab.node1.netns)) await lab.node1.netns.ip(`link del ${pair}`);
    await lab.node1.agent.restart();
    await coordinate(pod, "ADD", network(nic.segment), { entry: ENTRY, ifName: nic.ifName });
    await expectAll(pod, [FIRST, SECOND]);
    for (const { ifName, segment } of [SECOND, FIRST]) await pod.detach(network(segment), ifName);
  },
);
