import { expect, it } from "vitest";
import { findMac, isNicDispensable, takesMac } from "../../../host/config/network-definition.ts";

const berth = { type: "berth" };
const macvlan = { type: "macvlan", ipam: berth };
const coordinator = { type: "coordinator" };

it.each<[string, boolean, { readonly type: string; readonly ipam?: unknown }[]]>([
  ["macvlan", true, [macvlan, coordinator]],
  ["ipvlan", true, [{ type: "ipvlan", ipam: berth }, coordinator]],
  ["ifacer before it", true, [{ type: "ifacer" }, macvlan, coordinator]],
  ["Berth's plugins by other names", true, [{ type: "berth-ifacer" }, macvlan, { type: "berth-coordinator" }]],
  ["DHCP, which gives the address back over it", false, [{ type: "macvlan", ipam: { type: "dhcp" } }, coordinator]],
  ["no IPAM", false, [{ type: "macvlan" }, coordinator]],
  ["a main plugin that moves its NIC back", false, [{ type: "host-device", ipam: berth }, coordinator]],
  ["a plugin that restores settings", false, [macvlan, { type: "tuning" }, coordinator]],
  ["one behind the coordinator", false, [macvlan, coordinator, { type: "sbr" }]],
  ["no coordinator", false, [macvlan]],
  ["no plugin", false, []],
])("whether a DEL needs the NIC %s: dispensable %s", (_what, isDispensable, plugins) => {
  expect(isNicDispensable(plugins.map((entry) => ({ entry, place: "" })))).toBe(isDispensable);
});

const MAC = "02:42:ac:11:00:09";
it.each<[string, { readonly type: string; readonly [key: string]: unknown }[], string | undefined, boolean]>([
  ["none", [{ type: "macvlan" }, coordinator], undefined, false],
  ["of the main plugin", [{ type: "macvlan", mac: MAC }, coordinator], "macvlan", false],
  ["of a plugin behind the coordinator", [coordinator, { type: "tuning", mac: "0242.AC11.0009" }], "tuning", false],
  ["no address", ["", 7].map((mac) => ({ type: "tuning", mac })), undefined, false],
  ["by capability", [{ type: "tuning", capabilities: { mac: true } }], undefined, true],
  ["by capability, switched off", [{ type: "tuning", capabilities: { mac: false } }], undefined, false],
  ["malformed capabilities", [{ type: "tuning", capabilities: null }], undefined, false],
])("the MAC address of a network's NICs %s", (_what, entries, type, takes) => {
  const plugins = entries.map((entry) => ({ entry, place: "" }));
  expect(findMac(plugins)).toEqual(type === undefined ? undefined : { mac: MAC, type });
  expect(takesMac(plugins)).toBe(takes);
});
