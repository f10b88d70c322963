import { describe, expect, it } from "vitest";
import { decodeIfacerConf, MAX_BOND_OPTIONS_LENGTH, MAX_INTERFACES } from "../../../host/config/ifacer-conf.ts";
import { rows } from "../../world/rows.ts";

const decode = (value: unknown) => decodeIfacerConf(value, "x");
const plain = { vlanId: 0, vlanName: undefined, bond: undefined, takeOver: false };
const bond = { name: "vendor_bond0", mode: undefined, options: "" };

const vlan = (vlanId: number, master: string) => ({ vlanId, vlanName: `${master}.${vlanId}` });
const on = { bond: { name: "b0", mode: 2, options: "a=1" }, takeOver: true };
it.each<[value: object, expected: object]>([
  [{ interfaces: ["e0"] }, {}],
  [{ type: "ifacer", interfaces: ["e0"], vlanID: 0, bond: null }, {}],
  [{ interfaces: ["e0"], vlanID: 4094 }, vlan(4094, "e0")],
  [{ interfaces: ["abcdefghijklm"], vlanID: 1 }, vlan(1, "abcdefghijklm")],
  [{ interfaces: ["e0"], bond: {} }, { bond }],
  [{ interfaces: ["n".repeat(127)] }, {}],
  [{ interfaces: ["n".repeat(127), "e0"], bond: {} }, { bond }],
  [{ interfaces: ["e0", "e1"], vlanID: 7, ...on }, Object.assign(vlan(7, "b0"), on)],
])("a configuration %j", (value, expected) => {
  const interfaces = "interfaces" in value ? value.interfaces : [];
  expect(decode(value)).toEqual({ ...plain, interfaces, ...expected });
});

it("a name of more than 127 bytes is no alternative name", () => {
  expect(() => decode({ interfaces: ["n".repeat(128)] })).toThrow('field "interfaces[0]"');
});

describe("a mode", () => {
  const names = "balance-rr active-backup balance-xor broadcast 802.3ad balance-tlb balance-alb";
  const modes = [0, 6, "0", "6"].map((mode): [unknown, number] => [mode, Number(mode)]);
  it.each([...modes, ...names.split(" ").map((name, number): [unknown, number] => [name, number])])(
    "%j is %i",
    (mode, number) => expect(decode({ interfaces: ["e0"], bond: { mode } }).bond?.mode).toBe(number),
  );

  it.each([7, -1, 1.5, "7", "", " 1", "01", "Active-Backup", "bond", null, true, [1]])("%j is none", (mode) => {
    expect(() => decode({ interfaces: ["e0"], bond: { mode } })).toThrow(
      /field "bond.mode": found .*, want a mode from 0 to 6, as a number or by its name: balance-rr, active-backup/,
    );
  });
});

describe("is refused:", () => {
  const refused = rows`
    {} => field "interfaces": found nothing, want a list of interface names
    {"interfaces":"e0"} => field "interfaces": found "e0", want a list of interface names
    {"interfaces":[]} => field "interfaces": found an empty list, want a list of at least one interface name
    {"interfaces":[""]} => field "interfaces[0]": found "", want an interface name or an alternative one: 1 to 127 bytes
    {"interfaces":["e0","e1"]}
      => found 2 interfaces, want one master interface, or several with a "bond" that joins them
    {"interfaces":["e0","e1","e0"],"bond":{}}
      => field "interfaces[2]": found "e0", want another interface than entry [0]
    {"interfaces":["e0"],"vlanID":4095} => field "vlanID": found 4095, want a whole number from 0 to 4094
    {"interfaces":["e0"],"bond":{"name":"abcdefghijklmnop"}}
      => field "bond.name": found "abcdefghijklmnop", want an interface name
    {"interfaces":["e0"],"bond":{"name":"bond%d"}} => field "bond.name": found "bond%d", want an interface name
    {"interfaces":["all"],"vlanID":5} => field "interfaces[0]": found "all", want an interface name
    {"interfaces":["e0"],"bond":{"name":"e0"}} => field "bond.name": found "e0", want a name that no member has
    {"interfaces":["e0"],"takeOver":true}
      => field "takeOver": found true, want false, or a "bond" that takes the addresses over
    {"interfaces":["enp129s0f0np0"],"vlanID":100}
      => found 100, which makes the device name "enp129s0f0np0.100" of 17 bytes, want a name of at most 15 bytes: give the master a shorter name, or an alternative one
    {"interfaces":["e0"],"vlanID":100,"bond":{}}
      => the device name "vendor_bond0.100" of 16 bytes, want a name of at most 15 bytes: set a shorter "bond.name"
  `;
  it.each(refused)("%s", (json, text) => expect(() => decode(JSON.parse(json))).toThrow(text));

  it("undefined", () => expect(() => decode(undefined)).toThrow("found nothing, want an object"));

  it("values above the limits", () => {
    const members = Array.from({ length: MAX_INTERFACES + 1 }, (_, index) => `e${index}`);
    const most = `want a list of at most ${MAX_INTERFACES} interface names`;
    expect(() => decode({ interfaces: members, bond: {} })).toThrow(most);
    expect(decode({ interfaces: members.slice(1), bond: {} }).interfaces).toHaveLength(MAX_INTERFACES);
    const options = "x".repeat(MAX_BOND_OPTIONS_LENGTH);
    expect(decode({ interfaces: ["e0"], bond: { options } }).bond?.options).toBe(options);
    const text = `want text of at most ${MAX_BOND_OPTIONS_LENGTH} characters`;
    expect(() => decode({ interfaces: ["e0"], bond: { options: `${options}x` } })).toThrow(text);
  });
});
