import { expect, it } from "vitest";
import { parseYaml } from "../../../host/config/yaml.ts";

const at = (line: number, value: object) => ({ value, line });

it.each([
  ["", []],
  ["---\n# nothing\n---\n", []],
  ["# head\na: 1\n---\n\nb: [x]\n---\n", [at(2, { a: 1 }), at(5, { b: ["x"] })]],
  ['{"a":\n 1}', [{ value: { a: 1 }, line: 1 }]],
  ["a: &x {b: 1}\nc: *x\n", [{ value: { a: { b: 1 }, c: { b: 1 } }, line: 1 }]],
  ["a: yes\nb: 0o7\nc: 2026-01-01\n", [{ value: { a: "yes", b: 7, c: "2026-01-01" }, line: 1 }]],
])("parseYaml of %j", (text, expected) => expect(parseYaml(text, "x")).toEqual(expected));

it("a key __proto__ stays an own key for the schemas to refuse", () => {
  const [document] = parseYaml("__proto__: {a: 1}\n", "x");
  expect(Object.keys(document?.value ?? {})).toEqual(["__proto__"]);
});

const ladder = [
  "a: &a [x]",
  ...Array.from({ length: 9 }, (_, i) => `b${i}: &b${i} [${`*${i ? `b${i - 1}` : "a"},`.repeat(9)}]`),
];

it.each<[title: string, text: string, message: string]>([
  ["a key given twice", "a: 1\na: 2\n", "file: Malformed YAML: Map keys must be unique at line 2, column 1"],
  ["an unknown tag", "a: !!js/function 'x'", "Unresolved tag"],
  ["a key that is a list", "? [a]\n: 1", "all keys must be strings at line 1, column 3"],
  ["a fault in a later document", "a: 1\n---\nb: @x", "at line 3, column 4"],
  ["aliases that explode", ladder.join("\n"), "Excessive alias count"],
  ["endless depth", `a: ${"[".repeat(100_000)}`, "Malformed YAML"],
])("parseYaml refuses %s", (_title, text, message) => expect(() => parseYaml(text, "file")).toThrow(message));
