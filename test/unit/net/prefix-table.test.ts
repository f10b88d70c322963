import { describe, expect, it } from "vitest";
import { type Ip, parseIp } from "../../../host/net/ip.ts";
import { type Prefix, parsePrefix } from "../../../host/net/prefix.ts";
import { PrefixTable } from "../../../host/net/prefix-table.ts";

const prefix = (text: string): Prefix => parsePrefix(text) ?? expect.fail(text);
const ip = (text: string): Ip => parseIp(text) ?? expect.fail(text);

function tableOf(...texts: readonly string[]): PrefixTable<string> {
  const table = new PrefixTable<string>();
  for (const text of texts) table.add(prefix(text), text);
  return table;
}

const NESTED = ["10.0.0.128/25", "10.0.0.0/24", "10.0.0.0/26", "10.0.1.0/24", "10.0.0.0/25", "9.0.0.0/8", "11.0.0.0/8"];
const WIDEST_FIRST = ["10.0.0.0/24", "10.0.0.0/25", "10.0.0.0/26", "10.0.0.128/25"];

describe("a table of prefixes", () => {
  it("tells prefixes apart that begin at the same address, and families", () => {
    const table = tableOf(...NESTED, "a00::/24", "a00::/25");
    for (const text of [...NESTED, "a00::/24", "a00::/25"]) expect(table.get(prefix(text))).toBe(text);
    for (const text of ["10.0.0.0/27", "10.0.0.0/23", "10.0.0.64/26", "10.0.2.0/24", "a00::/26", "::/0"])
      expect(table.get(prefix(text)), text).toBeUndefined();
  });

  it.each(NESTED)("without %s has all others", (gone) => {
    const table = tableOf(...NESTED);
    table.delete(prefix(gone));
    for (const text of NESTED) expect(table.get(prefix(text))).toBe(text === gone ? undefined : text);
  });

  it.each(["10.0.0.0/27", "10.0.0.64/26", "0.0.0.0/0", "12.0.0.0/8", "a00::/24"])(
    "loses nothing when %s goes, which it does not have",
    (other) => {
      const table = tableOf(...NESTED);
      table.delete(prefix(other));
      for (const text of NESTED) expect(table.get(prefix(text))).toBe(text);
    },
  );

  it.each([
    ["one of them", "10.0.0.0/25", WIDEST_FIRST],
    ["the widest", "10.0.0.0/24", WIDEST_FIRST],
    ["a narrow one that it has", "10.0.0.128/25", WIDEST_FIRST],
    ["one inside that it does not have", "10.0.0.64/28", WIDEST_FIRST],
    ["one around all of them", "10.0.0.0/8", [...WIDEST_FIRST, "10.0.1.0/24"]],
    ["one around some of them", "10.0.0.0/23", [...WIDEST_FIRST, "10.0.1.0/24"]],
    ["one that stands alone", "10.0.1.0/24", ["10.0.1.0/24"]],
    ["one inside the highest", "11.5.0.0/16", ["11.0.0.0/8"]],
    ["one inside the lowest", "9.255.255.255/32", ["9.0.0.0/8"]],
    ["one between them", "10.0.2.0/24", []],
    ["one of the other family", "::/0", []],
    ["everything", "0.0.0.0/0", ["9.0.0.0/8", ...WIDEST_FIRST, "10.0.1.0/24", "11.0.0.0/8"]],
  ])("has as relatives of %s, %s", (_, text, wanted) => {
    expect(tableOf(...NESTED).relativesOf(prefix(text))).toEqual(wanted);
  });

  it("has as relatives those that begin at the last address, and not those behind it", () => {
    const table = tableOf("10.0.0.255/32", "10.0.1.0/32", "10.0.0.0/32");
    expect(table.relativesOf(prefix("10.0.0.0/24"))).toEqual(["10.0.0.0/32", "10.0.0.255/32"]);
  });

  it("no longer has relatives through a prefix that is gone", () => {
    const table = tableOf(...NESTED);
    table.delete(prefix("10.0.0.0/24"));
    expect(table.relativesOf(prefix("10.0.0.0/26"))).toEqual(["10.0.0.0/25", "10.0.0.0/26"]);
  });

  it.each([
    ["10.1.0.0", "10.1.0.0/24"],
    ["10.1.0.255", "10.1.0.0/24"],
    ["10.1.1.0", undefined],
    ["10.0.255.255", undefined],
    ["10.3.0.7", "10.3.0.7/32"],
    ["10.3.0.8", undefined],
    ["::a01:0", undefined],
    ["fd00::1", "fd00::/64"],
    ["fd00:0:0:1::", undefined],
  ])("of disjoint prefixes, %s is in %s", (address, wanted) => {
    expect(tableOf("10.3.0.7/32", "fd00::/64", "10.1.0.0/24", "10.2.0.0/24").find(ip(address))).toBe(wanted);
  });
});
