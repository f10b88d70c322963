import { expect, it } from "vitest";
import { JsonError, membersOf, parseJson, parseJsonWithRepeats } from "../../../host/lib/json.ts";

it.each([
  " [ ] ",
  "-0.5e+3",
  "null",
  '{"a":{"b":[1,2,{"c":null}]},"d":""}',
  '"\\u00e9\\n\\"\\\\ é 漢 😀 \u007f"',
  '{"__proto__":1}',
  '[{"a":1},{"a":1}]',
  '{"a:b":"c\\"\\\\:","\\":":[{"x":[]},":"],"__proto__":{"y":1}}',
])("parseJson agrees with JSON.parse: %s", (text) => expect(parseJson(text)).toStrictEqual(JSON.parse(text)));

it.each<[text: string, message: string]>([
  ["", "line 1, column 1: found the end of the text, want a value"],
  ["tru", 'line 1, column 1: found "tru", want a value'],
  ["[1,]", 'line 1, column 4: found "]", want a value'],
  ["[1 2]", 'line 1, column 4: found "2]", want "," or "]"'],
  ["[,1]", 'line 1, column 2: found ",1]", want a value or "]"'],
  ['{"a":1,}', 'line 1, column 8: found "}", want a key in quotes'],
  ['{"a":1]', 'line 1, column 7: found "]", want "," or "}"'],
  ["{a:1}", 'line 1, column 2: found "a:1}", want a key in quotes or "}"'],
  ['{\n  "a": b\n}', 'line 2, column 8: found "b\\n}", want a value'],
  ['{"a":1,"a":2}', 'line 1, column 8: found the key "a" a second time, want each key once'],
  ['{"a":1,"\\u0061":2}', 'line 1, column 8: found the key "a" a second time, want each key once'],
  ['[{"b":{"x":1,"y":2,"x":3}}]', 'line 1, column 20: found the key "x" a second time, want each key once'],
  ['{"__proto__":1,"__proto__":2}', 'line 1, column 16: found the key "__proto__" a second time, want each key once'],
  ['"\\x"', 'line 1, column 1: found "\\"\\\\x\\"", want a value'],
  ['"a\nb"', 'line 1, column 1: found "\\"a\\nb\\"", want a value'],
  ["\ufeff{}", 'line 1, column 1: found "\\u{feff}{}", want a value'],
  ["[".repeat(100_000), 'line 1, column 100001: found the end of the text, want a value or "]"'],
])("parseJson names the place of a fault: %s", (text, message) => {
  expect(() => parseJson(text)).toThrow(JsonError);
  expect(() => parseJson(text)).toThrow(`Malformed JSON at ${message}`);
});

it("parseJson judges a long unfinished string in linear time", () => {
  expect(() => parseJson(`"${"x".repeat(1_000_000)}`)).toThrow("line 1, column 1");
});

it("repeated keys keep all their values, in the order of the text", () => {
  const members = (text: string) => membersOf(parseJsonWithRepeats(text) as object);
  const found = members('{"a":1,"b":{"c":1,"c":2},"a":null,"\\u0061":[{"d":1,"d":2}],"e":3}');
  const kinds = found.map(([key, value]) => `${key} ${Array.isArray(value) ? "list" : typeof value}`);
  expect(kinds).toEqual(["a number", "b object", "a object", "a list", "e number"]);
  expect(members('{"a":"x\\u0000","b\\u00001":2}').join("|")).toBe("a,x\0|b\u00001,2");
  expect(() => parseJsonWithRepeats('{"a":1,"a":}')).toThrow("column 12");
});
