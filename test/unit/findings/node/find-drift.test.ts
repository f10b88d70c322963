/**
 * State of attachments that the kernel lacks, and state of the node that belongs to no attachment: each is found, and
 * correct state is not.
 */
import { describe, expect, it } from "vitest";
import { formatAlias } from "../../../../host/coordinator/plan/alias.ts";
import { RETIRED_GROUP } from "../../../../host/coordinator/plan/constants.ts";
import { nameVeth } from "../../../../host/coordinator/plan/names.ts";
import { ruleTo } from "../../../../host/coordinator/plan/own-objects.ts";
import { hostRule, routeTo } from "../../../../host/coordinator/plan/plan-service-path.ts";
import {
  type AttachmentDrift,
  findDrift,
  findLeftovers,
  type KnownAttachments,
  keyOfIp,
  MAX_DIFFERENCES,
} from "../../../../host/findings/node/find-drift.ts";
import { REMOVAL_GROUP } from "../../../../host/kernel/link-remover.ts";
import { wholePrefix } from "../../../../host/net/prefix.ts";
import type { Operation } from "../../../../host/plan/operation.ts";
import { EMPTY_NAMESPACE, type LinkState, type NamespaceState, type RuleState } from "../../../../host/plan/state.ts";
import { cases } from "../../../world/rows.ts";
import { ip, mac, prefix } from "../../../world/values.ts";

const OURS = ip("10.6.0.7");
const OTHER = ip("10.6.0.9");
const PAIR = nameVeth("c1");
const STRAY = nameVeth("c9");

function link(name: string, alias: string): LinkState {
  const off = { up: true, carrier: true, loopback: false, group: 0, parent: 2, parentElsewhere: true };
  return { ...off, name, index: 7, kind: "veth", mac: mac("02:00:00:00:00:01"), alias, master: undefined };
}

const alias = (containerId: string) => formatAlias({ owner: "u1", containerId, network: "lan", pod: "shop/web-0" });
const pairOf = (containerId: string) => link(nameVeth(containerId).host.name, alias(containerId));
const routeOf = (to: typeof OURS, table = 500) => routeTo(wholePrefix(to), { link: PAIR.host.name }, table);

const RULE = hostRule(4, 500, []);
const HOST: NamespaceState = {
  ...EMPTY_NAMESPACE,
  links: [pairOf("c1"), link("cali1", "")],
  rules: [RULE, { ...RULE, preference: 32766, table: 254, protocol: 2 }],
  routes: [routeOf(OURS)],
  neighbours: [{ link: PAIR.host.name, ip: OURS, mac: PAIR.pod.mac }],
};

const KNOWN: KnownAttachments = {
  containerIds: new Set(["c1"]),
  ips: new Set([keyOfIp(OURS)]),
  recorded: new Set([keyOfIp(OURS)]),
  macs: new Set([PAIR.pod.mac]),
};

/** Rules beside Berth's, of other software. */
const foreign = (changes: Partial<RuleState>) => ({
  rules: [RULE, { ...RULE, protocol: 0, preference: 100, table: 77, ...changes }],
});

function leftovers(changes: Partial<NamespaceState>, known: Partial<KnownAttachments> = {}): string[] {
  const found = findLeftovers({ ...HOST, ...changes }, { ...KNOWN, ...known });
  return found.map(({ kind, text, remedy, commands, isReleasable }) => {
    expect([kind, isReleasable]).toEqual(["leftover", false]);
    return `${text} | ${remedy} ${commands?.join("; ")}`;
  });
}

describe("leftovers:", () => {
  const main = { rules: [hostRule(4, 254, [])], routes: [{ ...routeOf(OTHER, 254), protocol: 3 }] };
  it.each<[what: string, changes: Partial<NamespaceState>, known?: Partial<KnownAttachments>]>([
    ["on a node in order", {}],
    ["of a pair whose record is lost, whose pod lives", { links: [pairOf("c9")] }, { macs: new Set([STRAY.pod.mac]) }],
    ["of a pair that waits to be deleted", { links: [{ ...pairOf("c9"), group: RETIRED_GROUP }] }],
    ["of a pair that is being deleted", { links: [{ ...pairOf("c9"), group: REMOVAL_GROUP }] }],
    ["of a pair that another IPAM's pod has", { links: [pairOf("c9")] }, { containerIds: new Set(["c9"]) }],
    ["of other software's links", { links: [link("veth1", "someone else's")] }, { containerIds: new Set() }],
    ["of rules for other addresses", foreign({ from: wholePrefix(OTHER) })],
    ["of Berth's routes in the main table", { routes: [routeOf(OTHER, 254)] }],
    ["of rules for a network with a pod's address", foreign({ from: { ip: OURS, length: 31 } })],
    ["of rules for networks", foreign({ from: prefix("10.6.0.0/24") })],
    ["of rules behind Berth's", foreign({ from: wholePrefix(OURS), preference: 901 })],
    ["of rules for marked packets", foreign({ mark: { value: 1, mask: 1 } })],
    ["of routes in tables of other software", { routes: [{ ...routeOf(OTHER, 77), protocol: 3 }] }],
    ["of the main table, whatever looks it up", main],
    ["of neighbours of other links", { neighbours: [{ link: "cali1", ip: OTHER, mac: PAIR.pod.mac }] }],
  ])("nothing %s", (_what, changes, known = {}) => expect(leftovers(changes, known)).toEqual([]));

  const neighbours = [...HOST.neighbours, { link: PAIR.host.name, ip: OTHER, mac: PAIR.pod.mac }];
  const routes = [routeOf(OURS), routeOf(OTHER)];
  it.each(cases<Partial<NamespaceState>>`
    a pair whose pod is away ${{ links: [...HOST.links, pairOf("c9")] }}
      => link STRAY was made for pod shop/web-0, which is not on this node & link del dev STRAY
    a route to an address of no pod ${{ routes }}
      => route "10.6.0.9/32 dev LINK table 500 proto 98 scope link" leads to an address that no pod of this node has & route del 10.6.0.9/32 dev LINK table 500 proto 98 scope link
    a route to an address of no pod, although the rule is away ${{ routes, rules: [] }}
      => route "10.6.0.9/32 dev LINK table 500 proto 98 scope link" leads to an address that no pod of this node has & route del 10.6.0.9/32 dev LINK table 500 proto 98 scope link
    another software's route in Berth's table ${{ routes: [routeOf(OURS), { ...routeOf(OURS), protocol: 3 }] }}
      => route "10.6.0.7/32 dev LINK table 500 proto boot scope link" of other software is in a table that Berth's rule sends all traffic of the node to & route del 10.6.0.7/32 dev LINK table 500 proto boot scope link
    a rule with Berth's mark that Berth does not make ${{ rules: [RULE, ruleTo(500, { family: 4, preference: 900, from: wholePrefix(OURS) })] }}
      => rule "pref 900 from 10.6.0.7 lookup 500 proto 98" has Berth's mark, and Berth makes none like it & rule del pref 900 from 10.6.0.7 lookup 500 protocol 98
    a rule with Berth's mark in another place ${{ rules: [RULE, { ...RULE, preference: 901 }] }}
      => rule "pref 901 from all lookup 500 proto 98" has Berth's mark, and Berth makes none like it & rule del pref 901 from all lookup 500 protocol 98
    another software's rule for Berth's table ${foreign({ table: 500, preference: 2000 })}
      => rule "pref 2000 from all lookup 500" of other software looks up a table of Berth's & rule del pref 2000 from all lookup 500
    a rule that diverts what a pod sends ${foreign({ from: wholePrefix(OURS) })}
      => rule "pref 100 from 10.6.0.7 lookup 77" of other software diverts the traffic of 10.6.0.7, which a pod of this node has & rule del pref 100 from 10.6.0.7 lookup 77
    a rule that diverts what a pod gets ${foreign({ to: wholePrefix(OURS) })}
      => rule "pref 100 from all to 10.6.0.7 lookup 77" of other software diverts the traffic of 10.6.0.7, which a pod of this node has & rule del pref 100 from all to 10.6.0.7 lookup 77
    a neighbour that no pod has ${{ neighbours }}
      => neighbour "10.6.0.9 lladdr MAC dev LINK nud permanent" has an address that no pod of this node has & neigh del 10.6.0.9 dev LINK
  `)("%s", (_what, changes, expected) => {
    const names = { LINK: PAIR.host.name, STRAY: STRAY.host.name, MAC: PAIR.pod.mac };
    const found = Object.entries(names).reduce((text, [word, name]) => text.replaceAll(word, name), expected);
    expect(leftovers(changes)).toEqual([found.replace(" & ", " | Delete it: ip ")]);
  });
});

describe("drift:", () => {
  const row = { ip: OURS, space: "lab", pool: "blue", namespace: "shop", pod: "web-0", owner: "u1", containerId: "c1" };
  const attachment = { containerId: "c1", ifName: "eth0", netns: "/run/netns/a", row: row as never };
  const missing: Operation = { kind: "add-route", place: "host", route: routeOf(OURS) };
  const rule: Operation = { kind: "add-rule", place: "host", rule: RULE };
  const check = (...drifts: AttachmentDrift[]) =>
    findDrift(drifts).map(({ kind, address, pod, owner, container, text, remedy, commands }) => ({
      about: [kind, address, pod, owner, container].join(" "),
      text,
      remedy: [remedy, ...(commands ?? [])],
    }));
  const table: Operation = { kind: "add-table", place: "host", table: { name: "berth", chains: [] } };
  const second = { ...attachment, containerId: "c2" };
  const REPAIR = 'Run "berthctl check --repair"';
  const OF_POD = "drift 10.6.0.7/lab web-0 u1 c1";
  const LACKS = "the node lacks what its attachments need; restoring it requires";

  it("names the attachment and the operation that would restore it", () => {
    const text = "interface eth0 in /run/netns/a is not as ADD left it";
    const command = `ip route add 10.6.0.7/32 dev ${PAIR.host.name} table 500 proto 98 scope link`;
    const remedy = [`${REPAIR}, or on the node:`, command];
    expect(check({ ...attachment, operations: [missing] })).toEqual([{ about: OF_POD, text, remedy }]);
  });

  it("names an object that all pods need once", () => {
    expect(check({ ...attachment, operations: [rule] }, { ...second, operations: [rule] })).toEqual([
      {
        about: "drift    ",
        text: `${LACKS} "host: ip rule add pref 900 from all lookup 500 proto 98"`,
        remedy: [`${REPAIR}, or on the node:`, "ip rule add pref 900 from all lookup 500 protocol 98"],
      },
    ]);
  });

  it("has one finding, and no command, for a table of nf_tables that was changed", () => {
    expect(check({ ...attachment, operations: [{ ...table, kind: "delete-table" } as Operation, table] })).toEqual([
      { about: "drift    ", text: `${LACKS} "host: nf_tables, table inet berth"`, remedy: [REPAIR] },
    ]);
  });

  it("has no commands where they would restore only a part, and names the missing objects", () => {
    const inPod = { ...table, place: "pod" } as Operation;
    const [found] = check({ ...attachment, operations: [missing, inPod] });
    expect(found?.remedy).toEqual([REPAIR]);
    expect(found?.text).toMatch(/; restoring it requires "host: ip route add .*", "pod: nf_tables, table inet berth"$/);
  });

  it("knows attachments of other IPAM plugins by their container", () => {
    const [found] = check({ ...attachment, row: undefined, operations: [missing] });
    expect(found?.about).toBe("drift    c1");
  });

  it("names only some of the objects without a command", () => {
    const tables = Array.from({ length: MAX_DIFFERENCES + 2 }, (_, index) => ({
      ...{ kind: "add-table", place: "pod" },
      table: { name: `t${index}`, chains: [] },
    }));
    expect(check({ ...attachment, operations: tables as unknown as Operation[] })[0]?.text).toMatch(/ and 2 more$/);
  });
});
