import { describe, expect, it } from "vitest";
import { z } from "zod";
import { describeValue } from "../../../host/lib/describe.ts";
import { decode, formatMismatches, parsedText, refuseSlips, textMap, wholeNumber } from "../../../host/lib/schema.ts";

const schema = z.strictObject({
  name: parsedText((text) => (text.startsWith("x") ? text.length : undefined), "text that begins with x"),
  size: wholeNumber(1, 9).optional(),
  mode: z.enum(["on", "off"]).optional(),
  list: z
    .array(z.strictObject({ ipv4: z.boolean() }))
    .min(1)
    .max(2)
    .optional(),
  labels: textMap().optional(),
});

describe("decode names the place, the found and the wanted value", () => {
  it.each<[value: unknown, message: string]>([
    [undefined, "found nothing, want an object"],
    [{}, 'field "name": found nothing, want text that begins with x'],
    [{ name: "abc" }, 'field "name": found "abc", want text that begins with x'],
    [{ name: "x", size: 0 }, 'field "size": found 0, want a whole number from 1 to 9'],
    [{ name: "x", size: 10 }, 'field "size": found 10, want a whole number from 1 to 9'],
    [{ name: "x", mode: "auto" }, 'field "mode": found "auto", want one of "on", "off"'],
    [{ name: "x", list: [] }, 'field "list": found an empty list, want a list of at least 1 entry'],
    [{ name: "x", list: [{ ipv4: "yes" }] }, 'field "list[0].ipv4": found "yes", want true or false'],
    [{ name: "x", list: [{ ipv4: true, ipv5: 1 }] }, 'field "list[0].ipv5": found an unknown key, want the key "ipv4"'],
    [
      { name: "x", colour: 1 },
      'field "colour": found an unknown key, want one of the keys name, size, mode, list, labels',
    ],
    [
      { name: "x", siz: 1, mod: 2 },
      'field "siz": found an unknown key, want the key "size"; field "mod": found an unknown key, want the key "mode"',
    ],
    [JSON.parse('{"name":"x","__proto__":{"size":3}}'), 'field "__proto__": found an unknown key'],
    [{ name: "x", labels: [] }, 'field "labels": found an empty list, want an object of texts'],
    [{ name: "x", labels: { "a/b": 1 } }, 'field "labels[\\"a/b\\"]": found 1, want text'],
    [JSON.parse('{"name":"x","labels":{"__proto__":"y"}}'), 'field "labels.__proto__": found "y", want another key'],
  ])("%j", (value, message) => {
    const decoded = decode(schema, value);
    expect(decoded.ok ? "accepted" : formatMismatches(decoded.mismatches)).toContain(message);
  });

  it("gives the parsed value when all is well", () => {
    const value = { name: "xyz", labels: { constructor: "a" } };
    expect(decode(schema, value)).toEqual({ ok: true, value: { name: 3, labels: { constructor: "a" } } });
  });
});

it.each([
  ["", '""'],
  ["a\nb", '"a\\nb"'],
  ["\u202eabc\u007f", '"\\u{202e}abc\\u{7f}"'],
  ["y".repeat(90), `"${"y".repeat(80)}…"`],
  [-0.5, "-0.5"],
  [{}, "an object"],
  [[1], "a list"],
])("describeValue of %j", (value, expected) => expect(describeValue(value)).toBe(expected));

describe("an error stays short", () => {
  const message = (value: unknown) => {
    const decoded = decode(z.strictObject({ list: z.array(z.string()).optional() }), value);
    return decoded.ok ? "accepted" : formatMismatches(decoded.mismatches);
  };

  it("whatever is wrong how often", () => {
    expect(message({ list: new Array(10_000).fill(1) })).toMatch(
      /^(?:field "list\[\d\]": found 1, want text; ){8}and more$/,
    );
    expect(message({ list: new Array(8).fill(1) })).not.toContain("more");
  });

  it("whatever keys are unknown", () => {
    const keys = Array.from({ length: 10_000 }, (_, i) => [`${"k".repeat(1_000)}${i}`, 1]);
    expect(message(Object.fromEntries(keys)).length).toBeLessThan(2_000);
    expect(message(Object.fromEntries(keys))).toMatch(/; and more$/);
  });
});

it("refuseSlips refuses a slip of a known key", () => {
  const known = z.looseObject({}).superRefine((value, context) => refuseSlips(value, ["name", "labels"], context));
  expect(decode(known, { name: "a", uid: 3, managedFields: [] })).toMatchObject({ ok: true });
  const decoded = decode(known, { name: "a", lable: {} });
  expect(decoded.ok ? "accepted" : formatMismatches(decoded.mismatches)).toBe(
    'field "lable": found an unknown key, want the key "labels"',
  );
});
