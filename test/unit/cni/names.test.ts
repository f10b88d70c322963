import { expect, it } from "vitest";
import { parseContainerId, parseIfName, parseNetworkName } from "../../../host/cni/names.ts";
import { parseMac } from "../../../host/net/mac.ts";

const IDS = ["a", "0", "Ab-9_.z", "a".repeat(1_000)];
const NO_IDS = ["4f6c…", "", "-a", ".a", "_a", "a b", "a/b", "a\n", "é"];
it.each([parseContainerId, parseNetworkName])("container IDs and names of networks: %o", (parse) => {
  expect(IDS.map(parse)).toEqual(IDS);
  expect(NO_IDS.filter((text) => parse(text) !== undefined)).toEqual([]);
});

it("names of interfaces", () => {
  const names = ["eth0", "e", "abcdefghijklmno", "ééééééé", "bond0.100", "...", "all.5"];
  expect(names.map(parseIfName)).toEqual(names);
  const tooLong = ["abcdefghijklmnop", "éééééééé"];
  const signs = ["a/b", "a:b", "a b", "a\tb", "a\u00a0b", "a\u0000", "bond%d", "50%", "a\ud800"];
  const none = [...tooLong, ...signs, "", ".", "..", "all", "default"];
  expect(none.filter((text) => parseIfName(text) !== undefined)).toEqual([]);
});

it("MAC addresses", () => {
  expect(["0A:1b:2c:3d:4e:5f", "0a-1b-2c-3d-4e-5f"].map(parseMac)).toEqual(Array(2).fill("0a:1b:2c:3d:4e:5f"));
  const none = "0a:1b:2c:3d:4e 0a:1b:2c:3d:4e:5f:60 a:1b:2c:3d:4e:5f 0g:1b:2c:3d:4e:5f 0a1b2c3d4e5f";
  expect(["", ...none.split(" ")].filter((text) => parseMac(text) !== undefined)).toEqual([]);
});
