import { expect, it } from "vitest";
import { parseContainerId, parseIfName, parseNetworkName } from "../../../host/cni/names.ts";
import { parseMac } from "../../../host/net/mac.ts";

it.each<[text: string, accepted: boolean]>([
  ["a", true],
  ["0", true],
  ["4f6c…", false],
  ["Ab-9_.z", true],
  ["", false],
  ["-a", false],
  [".a", false],
  ["_a", false],
  ["a b", false],
  ["a/b", false],
  ["a\n", false],
  ["é", false],
  ["a".repeat(1_000), true],
])("a container ID and a network name: %j is %s", (text, accepted) => {
  expect(parseContainerId(text)).toBe(accepted ? text : undefined);
  expect(parseNetworkName(text)).toBe(accepted ? text : undefined);
});

it.each<[text: string, accepted: boolean]>([
  ["eth0", true],
  ["e", true],
  ["abcdefghijklmno", true],
  ["abcdefghijklmnop", false],
  ["ééééééé", true],
  ["éééééééé", false],
  ["bond0.100", true],
  ["...", true],
  ["", false],
  [".", false],
  ["..", false],
  ["a/b", false],
  ["a:b", false],
  ["a b", false],
  ["a\tb", false],
  ["a\u00a0b", false],
  ["a\u0000", false],
  ["bond%d", false],
  ["50%", false],
  ["all", false],
  ["default", false],
  ["all.5", true],
  ["a\ud800", false],
])("an interface name: %j is %s", (text, accepted) => {
  expect(parseIfName(text)).toBe(accepted ? text : undefined);
});

it.each([
  ["0A:1b:2c:3d:4e:5f", "0a:1b:2c:3d:4e:5f"],
  ["0a-1b-2c-3d-4e-5f", "0a:1b:2c:3d:4e:5f"],
  ["0a:1b:2c:3d:4e", undefined],
  ["0a:1b:2c:3d:4e:5f:60", undefined],
  ["a:1b:2c:3d:4e:5f", undefined],
  ["0g:1b:2c:3d:4e:5f", undefined],
  ["0a1b2c3d4e5f", undefined],
  ["", undefined],
])("a MAC address: %j is %s", (text, expected) => expect(parseMac(text)).toBe(expected));
