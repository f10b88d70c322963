import { describe, expect, it } from "vitest";
import { formatRange } from "../../../host/net/range.ts";
import { isSpecial, withoutSpecial } from "../../../host/net/special.ts";
import { ip, range } from "../../world/values.ts";

it.each([
  ["0.0.0.0", true],
  ["0.255.255.255", true],
  ["1.0.0.0", false],
  ["126.255.255.255", false],
  ["127.0.0.1", true],
  ["128.0.0.0", false],
  ["169.254.1.1", false],
  ["223.255.255.255", false],
  ["224.0.0.0", true],
  ["239.255.255.255", true],
  ["240.0.0.0", false],
  ["255.255.255.254", false],
  ["255.255.255.255", true],
  ["::", true],
  ["::1", true],
  ["::2", false],
  ["fe7f:ffff::", false],
  ["fe80::1", true],
  ["febf::1", true],
  ["fec0::1", false],
  ["ff00::", true],
])("%s is special: %s", (text, wanted) => expect(isSpecial(ip(text))).toBe(wanted));

describe("ranges without special addresses", () => {
  const check = (texts: string[], wanted: string[]) =>
    expect(withoutSpecial(texts.map(range)).map(formatRange)).toEqual(wanted);

  it("are the same list if there are none", () => {
    const list = [range("10.0.0.1-10.0.0.9"), range("fd00::1")];
    expect(withoutSpecial(list)).toBe(list);
  });

  it("lose a part in the middle", () =>
    check(["126.0.0.0-128.0.0.9"], ["126.0.0.0-126.255.255.255", "128.0.0.0-128.0.0.9"]));
  it("lose a part at an end", () =>
    check(["223.0.0.0-224.0.0.9", "10.0.0.1"], ["223.0.0.0-223.255.255.255", "10.0.0.1"]));
  it("lose all", () => check(["127.0.0.1", "fe80::-fe80::9"], []));
  it("lose several networks", () =>
    check(
      ["0.0.0.0-255.255.255.255"],
      ["1.0.0.0-126.255.255.255", "128.0.0.0-223.255.255.255", "240.0.0.0-255.255.255.254"],
    ));
});
