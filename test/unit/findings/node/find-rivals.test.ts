/**
 * Another machine's MAC address in the node's neighbour table is found; old entries, proxies and the pod's own links
 * are not.
 */
import { expect, it } from "vitest";
import { findRivals, PROXY_ADDRESSES, STEADY_MS } from "../../../../host/findings/node/find-damage.ts";
import type { LinkState } from "../../../../host/plan/state.ts";
import { rowOf } from "../../../world/search.ts";
import { pool, poolsByName } from "../../../world/subjects.ts";
import { ip, mac, RIVAL } from "../../../world/values.ts";

type Facts = Parameters<typeof findRivals>[0];

const ADDRESS = "10.6.0.7";
const OWN = mac("02:00:00:00:00:07");
const NOW = 1_000_000;
const AGE = 2 * STEADY_MS;
const ROW = rowOf(ADDRESS, { netns: "/run/netns/a", sinceMs: NOW - AGE });
const NIC = { netns: "/run/netns/a", ifName: "eth0", ip: ip(ADDRESS), macs: [OWN], parent: 2 };
const link = (name: string, index: number, master?: string): LinkState => {
  const off = { up: true, carrier: true, loopback: false, group: 0, alias: "", parent: undefined };
  return { ...off, name, index, kind: "", mac: mac("02:00:00:00:00:01"), master, parentElsewhere: false };
};
const ENTRY = { link: 2, ip: ip(ADDRESS), mac: RIVAL, confirmedAgoMs: 1_000 };
const PROXIED = Array.from({ length: PROXY_ADDRESSES }, (_, at) => ({ ...ENTRY, ip: ip(`10.6.0.${7 + at}`) }));

function check(changes: Partial<Facts>, row: object = {}, netns = "inUse"): string[] {
  const facts = {
    nowMs: NOW,
    rows: [{ row: { ...ROW, ...row }, pod: { kind: "unknown" }, netns }],
    nics: [NIC],
    objects: undefined,
    pools: poolsByName(pool("blue", "10.6.0.0/24", { gatewayIp: "10.6.0.1" })),
    neighbours: [ENTRY],
    links: [link("eth0", 2), link("eth1", 3), link("br0", 4)],
    ...changes,
  } as Facts;
  return findRivals(facts).map(({ kind, address, pod, text }) => [kind, address, pod, text].join(" "));
}

const FOUND = `duplicate ${ADDRESS} web-0 a machine with the MAC address ${RIVAL} on eth0 has it too, says the node's neighbour table`;

it("finds a machine that has proved to have the address", () => expect(check({})).toEqual([FOUND]));

it("finds it by the bridge of which the NIC's other end is a member", () => {
  const links = [link("veth1", 2, "br0"), link("br0", 4)];
  expect(check({ links, neighbours: [{ ...ENTRY, link: 4 }] })).toEqual([FOUND.replace("on eth0", "on br0")]);
});

it.each<[what: string, ...args: Parameters<typeof check>]>([
  ["the NIC's own MAC address", { neighbours: [{ ...ENTRY, mac: OWN }] }],
  ["another link of the pod", { nics: [{ ...NIC, macs: [OWN, RIVAL] }] }],
  ["an entry of before the pod had the address", { neighbours: [{ ...ENTRY, confirmedAgoMs: AGE }] }],
  ["another address", { neighbours: [{ ...ENTRY, ip: ip("10.6.0.8") }] }],
  ["another segment", { neighbours: [{ ...ENTRY, link: 3 }] }],
  ["a NIC that is a device of its own", { nics: [{ ...NIC, parent: undefined }] }],
  ["a record of a moment ago", {}, { sinceMs: NOW - STEADY_MS + 1 }],
  ["a record that cools", {}, { state: "Cooling" }],
  ["a NIC without the address", {}, {}, "there"],
  ["another NIC with the address", { nics: [{ ...NIC, ifName: "eth1" }] }],
  ["a machine that migrates", { objects: new Map([[ADDRESS, { spec: { holders: [{}, {}] } }]]) as never }],
  ["a router that answers for others", { neighbours: PROXIED }],
  ["the pool's gateway", { neighbours: [ENTRY, { ...ENTRY, ip: ip("10.6.0.1") }] }],
])("finds nothing of %s", (_what, ...args) => expect(check(...args)).toEqual([]));

it("finds a machine with two addresses, and one whose other addresses are on another link", () => {
  const others = PROXIED.map((entry) => ({ ...entry, link: 3 }));
  expect(check({ neighbours: [ENTRY, { ...ENTRY, ip: ip("10.6.0.8") }, ...others] })).toEqual([FOUND]);
});
