import { expect, it } from "vitest";
import { decodeIpamConf } from "../../../host/config/ipam-conf.ts";

it("names and patterns are accepted as they stand", () => {
  const value = { type: "berth", default_ipv4_ippool: ["blue", "rack-*"], default_ipv6_ippool: ["blue6"] };
  expect(decodeIpamConf(value, "x")).toEqual(value);
});

const refused: [value: unknown, message: string][] = [
  [{ type: "host-local" }, 'field "type": found "host-local", want "berth"'],
  [{ type: "berth", default_ipv4_ippools: [] }, 'found an unknown key, want the key "default_ipv4_ippool"'],
  [{ type: "berth", default_ipv4_ippool: "blue" }, 'field "default_ipv4_ippool": found "blue", want a list'],
  [{ type: "berth", default_ipv4_ippool: ["Blue"] }, 'field "default_ipv4_ippool[0]": found "Blue", want a name'],
  [{ type: "berth", default_ipv6_ippool: [null] }, 'field "default_ipv6_ippool[0]": found null'],
];

it.each(refused)("%j is refused", (value, message) => expect(() => decodeIpamConf(value, "ipam")).toThrow(message));

it.each([[[]], [null], ["six"], [[null]]])("the key of a disabled family may hold %j", (value) => {
  const rules = { enableIPv4: true, enableIPv6: false };
  const decoded = decodeIpamConf({ type: "berth", default_ipv6_ippool: value }, "ipam", rules);
  expect(Object.keys(decoded)).toEqual(["type", "default_ipv6_ippool"]);
  const enabled = { type: "berth", default_ipv4_ippool: value };
  expect(() => decodeIpamConf(enabled, "ipam", rules)).toThrow("default_ipv4_ippool");
});
