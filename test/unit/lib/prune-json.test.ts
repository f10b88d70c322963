import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Part, pruneJson } from "../../../host/lib/prune-json.ts";

const prune = (text: string, part: Part): string | undefined => pruneJson(Buffer.from(text), part)?.toString();

const NAME: Part = { members: { name: "all" } };
const FIRST: Part = { entries: (key, at) => at < 1 || key === "z" };
const MARKED: Part = { containing: '"on":true' };

describe("what is left of a text", () => {
  it.each<[text: string, part: Part, left: string]>([
    ['{"a":1,"name":"x","b":2}', NAME, '{"name":"x"}'],
    ['{"name":{"a":[1,"]"]},"b":2}', NAME, '{"name":{"a":[1,"]"]}}'],
    ['{"a":1,"b":"{"}', NAME, "{}"],
    ["{}", NAME, "{}"],
    ['{"toString":1,"__proto__":2}', NAME, "{}"],
    ['{"a":"\\"","name":"\\\\","b":"\\\\\\""}', NAME, '{"name":"\\\\"}'],
    ['{"größe":"地址","name":"🙂"}', NAME, '{"name":"🙂"}'],
    ['{"x":{"a":1,"b":2,"name":3},"y":4}', { members: { x: NAME, y: "all" } }, '{"x":{"name":3},"y":4}'],
    ['{"w":0,"x":{"a":1,"name":3}}', { members: { x: NAME } }, '{"x":{"name":3}}'],
    ['{"x":{"a":1},"y":{"b":1}}', { members: { x: NAME, y: NAME } }, '{"x":{},"y":{}}'],
    ['{"a":1,"b":2,"z":3}', FIRST, '{"a":1,"z":3}'],
    ['{"größe":1,"z":3}', { entries: (key) => key === "größe" }, '{"größe":1}'],
    ['{"a":1,"b":2,"z":3}', { entries: (key) => key !== "a", most: 1 }, '{"b":2}'],
    ['[{"on":true},{"on":false},{"k":"\\"on\\":true"},{"on":true,"x":[]}]', MARKED, '[{"on":true},{"on":true,"x":[]}]'],
    ['{"l":[{"on":false}],"m":[{"on":true}]}', { members: { l: MARKED } }, '{"l":[]}'],
    ["[]", MARKED, "[]"],
    [
      '{"items":[{"a":1,"name":2},{"a":3},5,[]]}',
      { members: { items: { each: NAME } } },
      '{"items":[{"name":2},{},5,[]]}',
    ],
    ['{"items":null}', { members: { items: { each: NAME } } }, '{"items":null}'],
    ['[{"a":1}]', "all", '[{"a":1}]'],
  ])("%s", (text, part, left) => expect(prune(text, part)).toBe(left));

  it.each<[text: string, part: Part]>([
    ["null", NAME],
    ["5", FIRST],
    ['"text"', MARKED],
    ["[1]", NAME],
    ['{"on":true}', MARKED],
  ])("%s of another type is all of it", (text, part) => expect(prune(text, part)).toBe(text));

  it("of one that is not compact, or ends too soon, is undefined", () => {
    const compact = '{"a":{"b":[1,"x"]},"name":[{"on":true}]}';
    const part: Part = { members: { name: MARKED } };
    expect(prune(compact, part)).toBe('{"name":[{"on":true}]}');
    for (let end = 1; end < compact.length; end++) expect(prune(compact.slice(0, end), part)).toBeUndefined();
    for (const [at, character] of [...compact].entries()) {
      if (!"{}[],:".includes(character)) continue;
      for (const blank of [" ", "\n", "\t"]) {
        expect(prune(compact.slice(0, at) + blank + compact.slice(at), part)).toBeUndefined();
        expect(prune(compact.slice(0, at + 1) + blank + compact.slice(at + 1), part)).toBeUndefined();
      }
    }
  });

  it("has no bracket too many", () => {
    for (const text of ['{"a":1}}', '{"name":1}]', '{"a":1},', '{"a" 1}', '{"a"}', "{a:1}", '{"name":[1}']) {
      const left = prune(text, NAME);
      expect(() => JSON.parse(left ?? "")).toThrow();
    }
  });
});

/** The slow reference model: on the parsed value. */
function model(value: unknown, part: Part): unknown {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  if (part === "all") return value;
  if ("containing" in part)
    return Array.isArray(value) ? value.filter((item) => JSON.stringify(item).includes(part.containing)) : value;
  if ("each" in part) return Array.isArray(value) ? value.map((item) => model(item, part.each)) : value;
  if (!isObject) return value;
  const entries = Object.entries(value);
  if ("entries" in part) return Object.fromEntries(entries.filter(([key], at) => part.entries(key, at)));
  const own = entries.filter(([key]) => Object.hasOwn(part.members, key));
  return Object.fromEntries(own.map(([key, inner]) => [key, model(inner, part.members[key] ?? "all")]));
}

it("any text is pruned as its value would be", () => {
  const key = fc.constantFrom("a", "b", "c", "on", "größe", '"', "\\");
  const { value } = fc.letrec<{ value: unknown; part: Part }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom(null, true, false, 0, -1.5e3, "", "x", '"on":true', "{", "]", ",", "\\", "地址\u2028"),
      fc.array(tie("value"), { maxLength: 4 }),
      fc.dictionary(key, tie("value"), { maxKeys: 4, noNullPrototype: true }),
    ),
    part: fc.constant("all" as const),
  }));
  const { part } = fc.letrec<{ part: Part }>((tie) => ({
    part: fc.oneof(
      { maxDepth: 3 },
      fc.constant<Part>("all"),
      fc.constant(MARKED),
      tie("part").map((each): Part => ({ each })),
      fc.constant<Part>({ entries: (name, at) => at < 2 || name === "on" }),
      fc.dictionary(key, tie("part"), { maxKeys: 4, noNullPrototype: true }).map((members): Part => ({ members })),
    ),
  }));
  // A key with an escape is compared as it is written.
  const isPlain = (text: string) => !/"(?:\\.)":/.test(text);
  fc.assert(
    fc.property(value, part, (some, wanted) => {
      const text = JSON.stringify(some);
      fc.pre(isPlain(text));
      expect(JSON.parse(prune(text, wanted) ?? "nothing")).toEqual(model(some, wanted));
    }),
    { numRuns: 3_000 },
  );
});
