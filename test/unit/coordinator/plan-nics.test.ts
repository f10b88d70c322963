/**
 * Aspects of a pod's NICs that the vectors cannot show: very many of them, and attributes of routes that are not
 * decoded.
 */

import { describe, expect, it } from "vitest";
import { NIC_RULE_PREFERENCE } from "../../../host/coordinator/plan/constants.ts";
import { isNicTable } from "../../../host/coordinator/plan/plan-tables.ts";
import type { OpaqueAttribute } from "../../../host/plan/nft-table.ts";
import type { Observed, RouteState } from "../../../host/plan/state.ts";
import { applyStatement, NOTHING } from "./plan-model.ts";
import { answerRequest, readRequest } from "./plan-request.ts";
import { readStatement } from "./plan-words.ts";

function observe(lines: readonly string[]): Observed {
  return lines.map((line) => readStatement(`pod: ${line}`)).reduce(applyStatement, NOTHING);
}

const nicLines = (name: string, at: number): string[] => [
  `link ${name} macvlan`,
  `addr 10.${at}.0.21/24 dev ${name}`,
  `route default via 10.${at}.0.1 dev ${name} proto boot`,
];

describe("the tables of a pod's NICs", () => {
  const rulesFor = (count: number): number[] => {
    const nics = Array.from({ length: count }, (_, at) => nicLines(`eth${at}`, at + 1));
    const { plan } = answerRequest(readRequest("ADD", { addresses: ["10.1.0.21"] }), observe(nics.flat()));
    const rules = plan?.wanted.pod.rules ?? [];
    return rules.filter(({ preference }) => preference === NIC_RULE_PREFERENCE).map(({ table }) => table);
  };

  it("are enough for 99 NICs, each with its own", () => {
    expect(rulesFor(99)).toEqual(Array.from({ length: 99 }, (_, at) => 101 + at));
    expect([100, 101, 199, 200].map(isNicTable)).toEqual([false, true, true, false]);
  });

  it("are not for one more", () =>
    expect(() => rulesFor(100)).toThrow(
      'No routing table of the pod is free for interface "eth99": all from 101 to 199 are in use; attach fewer NICs, or',
    ));
});

const RTA_METRICS = 8;
const RTA_EXPIRES = 23;
const rest = [RTA_METRICS, RTA_EXPIRES].map((type): OpaqueAttribute => ({ type, flags: 0, value: new Uint8Array(4) }));

function copiedTypes(route: string): number[] | undefined {
  const { pod, host } = observe([
    ...["link eth0 macvlan", "addr fd00:6::21/64 dev eth0", "link net1 macvlan", "addr fd00:7::21/64 dev net1"],
    ...["link veth0 veth address 06:7c:dc:98:d0:37", route],
  ]);
  const observed = { host, pod: { ...pod, routes: pod.routes.map((each): RouteState => ({ ...each, rest })) } };
  const { plan } = answerRequest(readRequest("ADD", { ifName: "net1", addresses: ["fd00:7::21"] }), observed);
  const copy = plan?.wanted.pod.routes.find(({ table, destination }) => table === 101 && destination.length === 0);
  return copy?.rest.map(({ type }) => type);
}

it.each<[what: string, route: string, types: number[]]>([
  ["are copied, but for the time at which it expires", "-6 route default via fe80::1 dev eth0 proto ra", [RTA_METRICS]],
  [
    "are copied with all of its next hops",
    "-6 route default proto boot nexthop via fe80::1 dev eth0 nexthop via fe80::2 dev eth0",
    [RTA_METRICS],
  ],
  [
    "are left out of what is split: of a route with one next hop",
    "-6 route default proto boot nexthop via fe80::1 dev eth0 nexthop via fe80::1 dev net1",
    [],
  ],
  [
    "are left out of what is split: of one with several",
    "-6 route default proto boot nexthop via fe80::1 dev eth0 nexthop via fe80::2 dev eth0 nexthop via fe80::1 dev net1",
    [],
  ],
])("attributes of a default route that are not decoded %s", (_, route, types) =>
  expect(copiedTypes(route)).toEqual(types),
);
