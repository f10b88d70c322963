import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Family } from "../../host/net/ip.ts";
import { podManifest } from "../lab/manifests.ts";
import { macvlanOn, withoutRetired } from "../lab/netns/coordinator.ts";
import { describeLong, ofRun } from "../world/long-cases.ts";

import {
  ENTRY,
  expectDefault,
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
import { readDocumentsOf } from "./pages/script.ts";

const ROUTE_NIC = "ipam.vendor.io/default-route-nic";
const NICS: readonly NicPlace[] = [FIRST, SECOND, THIRD];
const namesOf = (nics: readonly NicPlace[]): string => nics.map(({ ifName }) => ifName).join(", ");
const titleOf = ({
  routeNic,
  annotation,
  order,
}: {
  routeNic: string;
  annotation?: string;
  order: readonly NicPlace[];
}) =>
  `podDefaultRouteNic "${routeNic}"${annotation === undefined ? "" : ` and the annotation "${annotation}"`}, NICs ${namesOf(order)}`;
/** The order of the NICs, the wanted holder of the default route, and its holder after each NIC. */
const ROWS = [
  { routeNic: "", order: [FIRST, SECOND, THIRD], holders: [FIRST, FIRST, FIRST] },
  { routeNic: "net2", order: [FIRST, THIRD, SECOND], holders: [FIRST, THIRD, THIRD] },
  { routeNic: "net2", annotation: "net1", order: [FIRST, SECOND, THIRD], holders: [FIRST, SECOND, SECOND] },
].map((row) => [titleOf(row), row] as const);
const ORDERS = [
  [FIRST, SECOND, THIRD],
  [FIRST, THIRD, SECOND],
  [SECOND, FIRST, THIRD],
  [SECOND, THIRD, FIRST],
  [THIRD, FIRST, SECOND],
  [THIRD, SECOND, FIRST],
].map((order) => [namesOf(order), order] as const);

function inLab(prefix: string, families: readonly Family[]): void {
  let lab: NicLab;
  let pods = 0;

  beforeAll(async () => {
    const { [ROUTE_NIC]: nic } = readDocumentsOf("docs/recipes/second-default-route.md").at(-1).metadata.annotations;
    const annotated = podManifest("shop", "annotated", { [ROUTE_NIC]: nic });
    lab = await makeNicLab(prefix, { families, config: { "pod.yaml": annotated } });
  });

  afterAll(() => lab?.delete());

  const network = (segment: number, routeNic: string) => `${prefix}-${segment}-${routeNic || "none"}`;

  async function addPod(name: string, routeNic: string) {
    for (const { segment } of NICS) {
      const entry = { ...ENTRY, podDefaultRouteNic: routeNic };
      await lab.define(network(segment, routeNic), [macvlanOn(segment, families), entry]);
    }
    return await lab.addServer(name);
  }

  it.each(ROWS)("%s", async (_, { routeNic, annotation, order, holders }) => {
    const pod = await addPod(annotation === undefined ? `pod${++pods}` : "annotated", routeNic);
    for (const [index, { ifName, segment }] of order.entries()) {
      await pod.attach(network(segment, routeNic), ifName);
      for (const family of families) {
        const expected = { lab, pod, family, nics: order.slice(0, index + 1) };
        await expectDefault(expected, holders[index] ?? FIRST);
        await expectReplies(expected);
        await expectServices(expected);
      }
    }
    for (const family of families) await expectNodePort({ lab, pod, family, nics: order });
    for (const { ifName, segment } of order) {
      const entry = { ...ENTRY, podDefaultRouteNic: routeNic };
      const outcome = await pod.coordinate("CHECK", network(segment, routeNic), { ifName, entry });
      expect(outcome.exitCode, `${ifName}: ${outcome.text}`).toBe(0);
    }
    for (const { ifName, segment } of order) await pod.check(network(segment, routeNic), ifName);
    for (const { ifName, segment } of order) await pod.detach(network(segment, routeNic), ifName);
  });

  const gate = ORDERS.slice(2, 4);
  const orders = families.length === 2 ? ofRun(ORDERS, (order) => gate.includes(order)) : gate;
  it.each(orders)("DEL of %s, in this order, leaves the rest working", async (_, order) => {
    const routeNic = "net1";
    const pod = await addPod(`del${++pods}`, routeNic);
    for (const { ifName, segment } of NICS) await pod.attach(network(segment, routeNic), ifName);
    const left = [...NICS];
    for (const nic of order) {
      await pod.detach(network(nic.segment, routeNic), nic.ifName);
      left.splice(left.indexOf(nic), 1);
      for (const family of families) {
        const expected = { lab, pod, family, nics: left };
        const [first] = left;
        const holder = left.find(({ ifName }) => ifName === routeNic) ?? first;
        if (holder !== undefined) await expectDefault(expected, holder);
        await expectReplies(expected);
        if (left.length > 0) await expectServices(expected);
      }
    }
    for (const family of families)
      expect(await lab.node1.netns.ip(`-${family} route show table all proto 98`)).toBe("");
    await withoutRetired(lab.node1.netns);
    for (const family of families) {
      expect(await pod.netns.ip(`-${family} route show table all proto 98`)).toBe("");
      expect(await pod.netns.ip(`-${family} rule show`)).not.toContain("proto 98");
    }
    expect(await pod.netns.ip("-brief link show")).toMatch(/^lo [^\n]*\n$/);
    expect((await pod.netns.exec(["nft", "list", "ruleset"])).stdout).toBe("");
  });
}

describeLong("NICs with IPv4", () => inLab("cn4", [4]));
describeLong("NICs with IPv6", () => inLab("cn6", [6]));
describe("NICs with both families", () => inLab("cn46", [4, 6]));
