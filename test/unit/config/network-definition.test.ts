import { describe, expect, it } from "vitest";
import { isNicDispensable } from "../../../host/config/network-definition.ts";

const berth = { type: "berth" };
const coordinator = { type: "coordinator" };

describe("whether a DEL needs the NIC", () => {
  it.each<[string, boolean, { readonly type: string; readonly ipam?: unknown }[]]>([
    ["macvlan", true, [{ type: "macvlan", ipam: berth }, coordinator]],
    ["ipvlan", true, [{ type: "ipvlan", ipam: berth }, coordinator]],
    ["ifacer before it", true, [{ type: "ifacer" }, { type: "macvlan", ipam: berth }, coordinator]],
    [
      "Berth's plugins under their other names",
      true,
      [{ type: "berth-ifacer" }, { type: "macvlan", ipam: berth }, { type: "berth-coordinator" }],
    ],
    ["DHCP, which gives the address back over it", false, [{ type: "macvlan", ipam: { type: "dhcp" } }, coordinator]],
    ["no IPAM", false, [{ type: "macvlan" }, coordinator]],
    ["a main plugin that moves its NIC back", false, [{ type: "host-device", ipam: berth }, coordinator]],
    ["a plugin that restores settings", false, [{ type: "macvlan", ipam: berth }, { type: "tuning" }, coordinator]],
    ["one behind the coordinator", false, [{ type: "macvlan", ipam: berth }, coordinator, { type: "sbr" }]],
    ["no coordinator", false, [{ type: "macvlan", ipam: berth }]],
    ["no plugin", false, []],
  ])("%s: dispensable %s", (_what, isDispensable, plugins) => {
    expect(isNicDispensable(plugins.map((entry) => ({ entry, place: "" })))).toBe(isDispensable);
  });
});
