/**
 * The shim's JSON scanner against JSON.parse: the same decision and the same member for every text, under sanitizers.
 */
import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { itLong } from "../world/long-cases.ts";
import { createRandom, mutate } from "./shim/random.ts";
import { root } from "./shim/run-shim.ts";
import { createDirectory } from "./shim/scripted-agent.ts";

const DEPTH_LIMIT = 64;
/** As in native/json.h. */
const KIND = { absent: 0, string: 1, number: 2, other: 3 };

let directory: string;

beforeAll(() => {
  directory = createDirectory();
  const sources = ["test/e2e/shim/json-scan.c", "native/json.c"].map((path) => join(root, path));
  const flags = ["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined"];
  const output = ["-fno-sanitize-recover=all", "-o", join(directory, "json-scan")];
  execFileSync("cc", [...flags, ...output, ...sources], { stdio: "inherit" });
});

afterAll(() => rmSync(directory, { recursive: true }));

function scan(texts: readonly Buffer[]): string[] {
  const pieces = texts.flatMap((text) => {
    const length = Buffer.alloc(4);
    length.writeUInt32LE(text.length);
    return [length, text];
  });
  const output = execFileSync(join(directory, "json-scan"), { input: Buffer.concat(pieces), maxBuffer: 1 << 28 });
  return output.toString().trimEnd().split("\n");
}

function depthOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Object.values(value).reduce((deepest: number, inner) => Math.max(deepest, depthOf(inner)), 0);
}

/** Returns the expected result of the scanner, by JSON.parse. Only the values of strings and numbers are compared. */
function expectedScan(text: Buffer): { valid: boolean; kind?: number; value?: unknown } {
  try {
    const value = JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(text));
    if (typeof value !== "object" || value === null || Array.isArray(value)) return { valid: false };
    if (depthOf(value) > DEPTH_LIMIT) return { valid: false };
    if (!Object.hasOwn(value, "code")) return { valid: true, kind: KIND.absent };
    const kinds: Record<string, number> = { string: KIND.string, number: KIND.number };
    return { valid: true, kind: kinds[typeof value.code] ?? KIND.other, value: value.code };
  } catch {
    return { valid: false };
  }
}

function check(texts: readonly Buffer[]): number {
  const results = scan(texts);
  expect(results.length).toBe(texts.length);
  let valid = 0;
  for (const [index, text] of texts.entries()) {
    const [accepted, kind, , hex = ""] = (results[index] ?? "").split(" ");
    const wanted = expectedScan(text);
    const shown = JSON.stringify(text.toString("latin1"));
    expect(accepted === "1", shown).toBe(wanted.valid);
    if (!wanted.valid) continue;
    valid++;
    expect(Number(kind), shown).toBe(wanted.kind);
    const raw = Buffer.from(hex, "hex").toString();
    if (wanted.kind === KIND.string) expect(JSON.parse(`"${raw}"`), shown).toBe(wanted.value);
    if (wanted.kind === KIND.number) expect(Number(raw), shown).toBe(wanted.value);
  }
  return valid;
}

const nested = (levels: number) => `{"code":${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}}`;
const nestedFull = (levels: number) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;

const seeds = [
  '{"cniVersion":"1.0.0","code":11,"msg":"try again","details":"a\\u00e9\\ud83d\\ude00\\\\\\"\\/\\b\\f\\n\\r\\t"}',
  ' { "code" : -0.5e+10 , "a" : [ true , false , null , { } , [ ] , "" , 0 , 1E5 ] } \r\n\t',
  '{"a":{"code":1},"c\\u006fde":"x","b":[[[{"code":[]}]]],"code":{"code":2}}',
  '{"é":"ß€😀","\u{10ffff}":"\u{800}","code":"\u{fffd}","\u007f":"\u007f"}',
  '{"code":"first","code":2}',
  "{}",
].map((text) => Buffer.from(text));

const rows = [
  ...[
    "",
    " ",
    "{",
    "}",
    "{}}",
    "{},",
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
    '{,"a":1}',
    '{"a":1 "b":2}',
    "{1:2}",
    "[{}]",
    "{}{}",
  ],
  ...['{"a":01}', '{"a":-}', '{"a":1.}', '{"a":.1}', '{"a":1e}', '{"a":+1}', '{"a":0x1}', '{"a":NaN}', '{"a":-01}'],
  ...['{"a":"\\x"}', '{"a":"\\u12g4"}', '{"a":"\\u123"}', '{"a":"\n"}', '{"a":"', '{"a":"\\', '{"a":"\\"}', "{'a':1}"],
  ...['{"a":tru}', '{"a":True}', '{"a":nul', '{"a":[1,]}', '{"a":[,1]}', '{"a":[1}', '{"a":{]}', '{"a":[}]}', "{/**/}"],
  ...[
    '{"code":"\\ud800"}',
    '{"cod\\u0065":1}',
    '{"\\u0063ode":1,"code":[]}',
    '{"code\\u0000":1}',
    '{"codex":1}',
    '{"cod":1}',
  ],
  ...[nested(DEPTH_LIMIT), nested(DEPTH_LIMIT + 1), nestedFull(DEPTH_LIMIT), nestedFull(DEPTH_LIMIT + 1)],
].map((text) => Buffer.from(text));

it("accepts the corners of the grammar as JSON.parse does", () => {
  expect(check([...rows, ...seeds])).toBeGreaterThan(8);
});

it("accepts every two-byte and many four-byte strings as a UTF-8 decoder does", () => {
  const wrap = (bytes: number[]) => Buffer.concat([Buffer.from('{"a":"'), Buffer.from(bytes), Buffer.from('"}')]);
  const texts: Buffer[] = [];
  for (let pair = 0; pair < 65_536; pair++) texts.push(wrap([pair >> 8, pair & 255]));
  const edges = [0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0];
  for (let lead = 0xe0; lead <= 0xff; lead++) {
    for (const a of edges) {
      for (const b of edges) texts.push(wrap([lead, a, b]), ...edges.map((c) => wrap([lead, a, b, c])));
    }
  }
  expect(check(texts)).toBeGreaterThan(10_000);
});

itLong("accepts or rejects 100,000 mutated texts as JSON.parse does", () => {
  const seed = Number(process.env.FUZZ_SEED ?? Date.now() % 0x7fffffff) || 1;
  console.log(`FUZZ_SEED=${seed}`);
  const random = createRandom(seed);
  const texts = Array.from({ length: 100_000 }, () => mutate(seeds[random(seeds.length)] ?? Buffer.alloc(0), random));
  const valid = check(texts);
  expect(valid).toBeGreaterThan(5_000);
  expect(valid).toBeLessThan(95_000);
});
