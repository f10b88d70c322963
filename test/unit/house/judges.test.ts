/** Each rule about addresses has one home and one smoke, and few classes play an API server (test/README.md). */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { anchorOf } from "../../../scripts/docs/anchor.ts";
import { readSources, root, type Source, sourceOf } from "./sources.ts";

const MAX_KINDS = 2;
const MAX_API_SERVERS = 3;

/** Rules whose tests still stand in more kinds: how many. A row goes when its rule has no more than two. */
const OPEN: Readonly<Record<string, number>> = { "node-lost": 3, retention: 3, recreate: 3 };

/** The names of the rules, as tests cite them. */
function readRules(): string[] {
  const text = readFileSync(join(root, "docs/develop/allocation.md"), "utf8");
  const section = /^## Rules$([\s\S]*?)^## /m.exec(text)?.[1] ?? "";
  return [...section.matchAll(/^### (.+)$/gm)].map(([, heading = ""]) => anchorOf(heading));
}

/** Titles of tests, and those of scenarios of transcripts. */
const TITLE = /(?:\(\s*["'`]|^== )([a-z-]+): /gm;

/** Returns the kinds of tests, by rule, in whose titles it stands. */
function kindsOf(rules: readonly string[], texts: readonly Pick<Source, "path" | "text">[]): Map<string, Set<string>> {
  const kinds = new Map(rules.map((rule) => [rule, new Set<string>()]));
  for (const { path, text } of texts)
    for (const [, rule = ""] of text.matchAll(TITLE)) kinds.get(rule)?.add(path.split("/")[1] ?? "");
  return kinds;
}

const beside = readSources("packages", ".ts").filter(({ path }) => path.includes("/test/"));
const tests = [...readSources("test", ".ts"), ...beside];

it("a rule stands in at most two kinds of tests: its home and a smoke", () => {
  const rules = readRules();
  expect(rules).toContain("late-del");
  const kinds = kindsOf(rules, [...tests, ...readSources("test", ".txt")]);
  const faults = [...kinds].flatMap(([rule, { size }]) => {
    const most = OPEN[rule] ?? MAX_KINDS;
    if (size > most)
      return [`${rule} stands in ${[...(kinds.get(rule) ?? [])].join(", ")}: leave its home and one smoke`];
    return size < most && most > MAX_KINDS ? [`${rule} stands in ${size} kinds: lower its row in judges.test.ts`] : [];
  });
  expect(faults).toEqual([]);
});

it("titles are found", () => {
  const texts = [
    { path: "test/unit/a.test.ts", text: 'it("leak: one", () => {});\nexpect(x).toEqual([\n"undo: two"]);\n' },
    { path: "test/unit/b.txt", text: "== leak: three\nrun\n" },
    { path: "test/cluster/c.test.ts", text: "it.each([])(\n  `leak: four %s`,\n  () => {},\n);\n" },
  ];
  const found = kindsOf(["leak", "undo"], texts);
  expect([...found].map(([rule, kinds]) => [rule, ...kinds])).toEqual([["leak", "unit", "cluster"], ["undo"]]);
});

const CLASS = /^(?:export )?class (\w+)[^\n]*\{\n([\s\S]*?)^\}/gm;
/** A member that answers calls to an API server, or all of one. */
const ANSWERS = /^ {2}(?:\w+ )*#?(?:api: KubeApi =|call\([^)]*KubeCall\)|call: KubeApi\["call"\] =|\): KubeApi \{)/m;

/** One that hands the calls on to another is none. */
const HANDS_ON = /^ {2}readonly #api: Kube(?:Api|Client);/m;

function apiServersIn({ path, text }: Source): string[] {
  const classes = [...text.matchAll(CLASS)].filter(([, , body = ""]) => ANSWERS.test(body) && !HANDS_ON.test(body));
  return classes.map(([, name]) => `${path}: ${name}`);
}

it("few classes play an API server: the others ask test/fakes/memory-api-server.ts", () => {
  const found = tests.flatMap(apiServersIn);
  expect(found).toContain("test/fakes/memory-api-server.ts: MemoryApiServer");
  expect(found.length, found.join("\n")).toBeLessThanOrEqual(MAX_API_SERVERS);
});

it.each([
  ["  readonly api: KubeApi = {\n    call: async () => ({}),\n  };", 1],
  ["  async call({ method, path }: KubeCall): Promise<KubeObject> {\n  }", 1],
  ['  #call: KubeApi["call"] = async (call) => {};', 1],
  ["  readonly #api: KubeApi;\n  async call(call: KubeCall) {\n    return this.#api.call(call);\n  }", 0],
  ["  apiOf(name: string): string {\n    const api: KubeApi = this.#server.client();\n  }", 0],
])("a class plays an API server: %j", (body, count) => {
  expect(apiServersIn(sourceOf("test/a.ts", `class A {\n${body}\n}\n`))).toHaveLength(count);
});
