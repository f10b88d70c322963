/**
 * The reference plugin `sbr` before and behind the coordinator, which takes tables in the pod and moves the NIC's
 * routes there.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FAMILIES, type Family } from "../../host/net/ip.ts";
import { outsideAddress, segmentAddress } from "../lab/addressing.ts";
import { coordinate, macvlanOn, withoutRetired } from "../lab/netns/coordinator.ts";
import type { LabPod } from "../lab/netns/world.ts";
import { ask } from "../lab/traffic.ts";
import { describeLong, ofRun } from "../world/long-cases.ts";
import {
  ENTRY,
  expectNodePort,
  expectReplies,
  expectServices,
  FIRST,
  makeNicLab,
  type NicLab,
  type NicPlace,
  PORT,
  SECOND,
  SERVICE,
} from "./coordinator-nics.ts";

const SBR = { type: "sbr" };
/** The plugins of a network behind its main plugin. */
const ORDERS = { plain: [ENTRY], before: [SBR, ENTRY], behind: [ENTRY, SBR] } as const;
type Order = keyof typeof ORDERS;
/** Of the first and the second NIC. */
const PAIRS: readonly (readonly [Order, Order])[] = [
  ["plain", "behind"],
  ["before", "plain"],
  ["behind", "before"],
  ["plain", "before"],
  ["before", "before"],
  ["behind", "behind"],
];

function inLab(prefix: string, families: readonly Family[]): void {
  let lab: NicLab;
  let pods = 0;

  beforeAll(async () => {
    lab = await makeNicLab(prefix, { families });
    for (const segment of [0, 1])
      for (const [order, plugins] of Object.entries(ORDERS))
        await lab.define(network(segment, order), [macvlanOn(segment, families), ...plugins]);
  });

  afterAll(() => lab?.delete());

  const network = (segment: number, order: string): string => `${prefix}${process.pid}-${segment}-${order}`;

  /** Each NIC reaches node and services and is reached by its own way; sourceless traffic leaves by the first. */
  async function expectAll(pod: LabPod, nics: readonly NicPlace[]): Promise<void> {
    for (const family of families) {
      const expected = { lab, pod, family, nics };
      const own = pod.address(family, nics[0]?.ifName);
      expect(await ask(pod.netns, outsideAddress(family), PORT)).toMatchObject({ seenPeer: own });
      expect(await ask(pod.netns, segmentAddress(0, 12, family), PORT)).toMatchObject({ seenPeer: own });
      expect(await ask(pod.netns, SERVICE[family], 80)).toMatchObject({ seenPeer: own });
      await expectReplies(expected);
      await expectServices(expected);
      await expectNodePort(expected);
    }
  }

  async function attach(pod: LabPod, { ifName, segment }: NicPlace, order: Order): Promise<void> {
    await pod.attach(network(segment, order), ifName);
    await check(pod, { ifName, segment }, order);
  }

  /**
   * The coordinator's alone: the main plugin's fails behind `sbr`, with or without Berth, because it looks for its
   * routes in the main table.
   */
  async function check(pod: LabPod, { ifName, segment }: NicPlace, order: Order): Promise<void> {
    await coordinate(pod, "CHECK", network(segment, order), { entry: ENTRY, ifName });
  }

  async function addPod(): Promise<LabPod> {
    const pod = await lab.addServer(`pod${++pods}`);
    return pod;
  }

  it.each(["before", "behind"] as const)("%s the coordinator on the only NIC", async (order) => {
    const pod = await addPod();
    await attach(pod, FIRST, order);
    await expectAll(pod, [FIRST]);
    const tables = await pod.netns.ip("rule show");
    // A second ADD changes nothing.
    await coordinate(pod, "ADD", network(0, order), { entry: ENTRY });
    expect(await pod.netns.ip("rule show")).toBe(tables);
    await pod.detach(network(0, order));
    await withoutRetired(lab.node1.netns);
    expect(await pod.netns.ip("route show table all proto 98")).toBe("");
  });

  it.each(ofRun(PAIRS, (_, index) => index < 3))("%s on the first NIC, %s on the second one", async (first, second) => {
    const pod = await addPod();
    await attach(pod, FIRST, first);
    await attach(pod, SECOND, second);
    await check(pod, FIRST, first);
    await expectAll(pod, [FIRST, SECOND]);
    await pod.detach(network(1, second), "net1");
    await expectAll(pod, [FIRST]);
    await check(pod, FIRST, first);
    await pod.detach(network(0, first));
  });
}

describeLong("sbr with IPv4", () => inLab("cb4", [4]));
describe("sbr with both families", () => inLab("cb46", FAMILIES));
