/** The record of a NIC's former MAC: an ADD makes it, DEL and GC use it. */
import { expect, it } from "vitest";
import { hasFormerMac, planReturn, recordFormerMac } from "../../../host/coordinator/plan/former-mac.ts";
import { nameVeth } from "../../../host/coordinator/plan/names.ts";
import type { Operation } from "../../../host/plan/operation.ts";
import type { LinkState } from "../../../host/plan/state.ts";
import { formatOperation } from "../../../host/plan/text.ts";
import { mac } from "../../world/values.ts";

const NIC = { pair: nameVeth("c1"), ifName: "eth0" };
const OTHER = { pair: nameVeth("c2"), ifName: "eth0" };
const OWN = mac("02:00:00:00:77:01");
const CHANGED = mac("0a:1b:0a:06:00:15");
const recordOf = (digits: string, { pair, ifName } = NIC) => `berth-mac-${digits}-${pair.host.name}-${ifName}`;
const RECORD = recordOf("020000007701");

function link(found = OWN, ...altNames: string[]): LinkState {
  return {
    ...{ name: "eth0", index: 2, kind: "", mac: found, up: true, carrier: true, loopback: false, alias: "nic1" },
    ...{ group: 0, parent: undefined, parentElsewhere: false, master: undefined, altNames },
  };
}

const other: Operation = { kind: "set-sysctl", place: "pod", key: "ipv4/conf/all/rp_filter", from: "1", to: "0" };
const change: Operation = { kind: "set-link", place: "pod", link: "eth0", from: { mac: OWN }, to: { mac: CHANGED } };
const setUp: Operation = { kind: "set-link", place: "pod", link: "eth0", from: { up: false }, to: { up: true } };
const SET = `pod: ip link set eth0 address ${CHANGED}`;
const add = (record: string) => `pod: ip link property add dev eth0 altname ${record}`;
const del = (record: string) => `pod: ip link property del dev eth0 altname ${record}`;

const stale = recordOf("020000007709", OTHER);
const taken = [add(recordOf("020000007709")), del(stale), SET];
it.each<[what: string, found: LinkState, operations: Operation[], recorded: string[]]>([
  ["first", link(), [other, change], [formatOperation(other), add(RECORD), SET]],
  ["not if it stays", link(), [other, setUp], [other, setUp].map(formatOperation)],
  ["not again, when something has changed it since", link(CHANGED, RECORD), [change], [SET]],
  ["taking over what the attachment before has left", link(CHANGED, "enp1s0", stale), [change], taken],
])("an ADD records the NIC's MAC before it changes it %s", (_what, found, operations, recorded) => {
  expect(recordFormerMac(operations, found, NIC).map(formatOperation)).toEqual(recorded);
});

it("a record is its attachment's", () => {
  expect(hasFormerMac(link(CHANGED, "enp1s0", RECORD), NIC)).toBe(true);
  for (const nic of [OTHER, { ...NIC, ifName: "net1" }]) expect(hasFormerMac(link(CHANGED, RECORD), nic)).toBe(false);
  for (const name of ["berth-mac-", "berth-mac-02-x", "eth0"]) expect(hasFormerMac(link(OWN, name), NIC)).toBe(false);
});

const onNode = del(RECORD).replace("pod:", "host:");
const set = (place: string) => `${place}: ip link set eth0 address ${OWN}`;
it.each<[what: string, place: "pod" | "host", found: LinkState, nic: typeof NIC | undefined, operations: string[]]>([
  ["in the pod", "pod", link(CHANGED, "enp1s0", RECORD), NIC, [set("pod"), del(RECORD)]],
  ["where it has it already", "pod", link(OWN, RECORD), NIC, [del(RECORD)]],
  ["not in a pod that has the path by now", "pod", link(CHANGED, recordOf("020000007701", OTHER)), NIC, []],
  ["not without a record", "pod", link(CHANGED), NIC, []],
  ["on the node, whichever program changed it", "host", link(CHANGED, RECORD), undefined, [set("host"), onNode]],
])("a link gets its former MAC back: %s", (_what, place, found, nic, operations) => {
  expect(planReturn(place, [found], nic).map(formatOperation)).toEqual(operations);
});
