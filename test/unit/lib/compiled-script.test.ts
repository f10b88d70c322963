/** A script runs with the code that an earlier run has kept, and without it if that is damaged or of another script. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runScript } from "../../../host/lib/compiled-script.ts";

const scriptOf = (body: string): string => `(function(exports,require,module,__filename,__dirname){${body}\n})`;

let directory: string;
const script = (): string => join(directory, "script.cjs");
const cache = (): string => join(directory, "cache");
const codeFile = (): string => join(cache(), "script.cjs.code");
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "berth-script-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** Writes the script, runs it, keeps its code if it should, and returns whether it should. */
async function run(body: string, isComplete = true): Promise<boolean> {
  writeFileSync(script(), scriptOf(body));
  const { keepCode } = runScript(script(), cache());
  await keepCode?.(isComplete);
  return keepCode !== undefined;
}

it("a script has the names of a CommonJS module, and its exports are returned", () => {
  const body = 'module.exports={there:__filename,sum:require("node:path").basename(__dirname+"/two")}';
  writeFileSync(script(), scriptOf(body));
  const { exports, keepCode } = runScript(script(), undefined);
  expect(exports).toEqual({ there: script(), sum: "two" });
  expect(keepCode).toBeUndefined();
});

it("what a script throws is thrown", () => {
  writeFileSync(script(), scriptOf('throw new RangeError("no")'));
  expect(() => runScript(script(), undefined)).toThrow(RangeError);
});

describe("code", () => {
  const BODY = "exports.one=()=>1";
  beforeEach(() => mkdirSync(cache()));

  it("that is complete is kept once, for root alone", async () => {
    expect(await run(BODY)).toBe(true);
    expect(statSync(codeFile()).mode & 0o777).toBe(0o600);
    expect(readdirSync(cache())).toEqual(["script.cjs.code"]);
    expect(await run(BODY)).toBe(false);
  });

  it("that is not complete is kept again", async () => {
    expect(await run(BODY, false)).toBe(true);
    expect(await run(BODY)).toBe(true);
    expect(await run(BODY)).toBe(false);
  });

  it("of another script of the same length is ignored", async () => {
    await run(BODY);
    expect(await run(BODY.replace("1", "2"))).toBe(true);
    const { exports } = runScript<{ one: () => number }>(script(), cache());
    expect(exports.one()).toBe(2);
  });

  for (const [what, damage] of Object.entries({
    "with another bit": (bytes: Buffer) => bytes.fill((bytes[100] ?? 0) ^ 1, 100, 101),
    "without its end": (bytes: Buffer) => bytes.subarray(0, -1),
    "of three bytes": (bytes: Buffer) => bytes.subarray(0, 3),
    "without a byte": () => Buffer.alloc(0),
  }))
    it(`${what} is ignored and replaced`, async () => {
      await run(BODY);
      writeFileSync(codeFile(), damage(readFileSync(codeFile())));
      expect(await run(BODY)).toBe(true);
      expect(await run(BODY)).toBe(false);
    });

  it("that cannot be written is reported, and nothing is left", async () => {
    writeFileSync(script(), scriptOf(BODY));
    const { keepCode } = runScript(script(), join(directory, "missing"));
    await expect(keepCode?.(true)).rejects.toMatchObject({ code: "ENOENT" });
  });

  it("is written although a process with this number was killed meanwhile", async () => {
    writeFileSync(`${codeFile()}.${process.pid}`, "half");
    expect(await run(BODY)).toBe(true);
    expect(readdirSync(cache())).toEqual(["script.cjs.code"]);
  });
});
