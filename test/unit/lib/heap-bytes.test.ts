import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { heapBytes } from "../../../host/lib/heap-bytes.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** Values that are kept at once, so that the noise of the process is small against them. */
const VALUES = 100;

/** What the engine takes for one of the values: bytes. */
function measure(make: (at: number) => string): number {
  const kept: unknown[] = new Array(VALUES).fill(undefined);
  const texts = kept.map((_, at) => make(at));
  collect();
  const before = process.memoryUsage().heapUsed;
  for (const [at, text] of texts.entries()) kept[at] = JSON.parse(text);
  collect();
  const bytes = (process.memoryUsage().heapUsed - before) / VALUES;
  expect(kept).toHaveLength(VALUES);
  return bytes;
}

const list = (count: number, item: (at: number) => string) =>
  `[${Array.from({ length: count }, (_, at) => item(at)).join()}]`;
const object = (count: number, key: (at: number) => string, value = "0") =>
  `{${Array.from({ length: count }, (_, at) => `"${key(at)}":${value}`).join()}}`;

describe("the densest values take no more than the estimate, and a third of it or more", () => {
  const rows: readonly [what: string, make: (at: number) => string, tolerance?: number][] = [
    ["empty objects", () => list(5_000, () => "{}")],
    ["empty lists", () => list(5_000, () => "[]"), 1.5],
    ["lists in lists", () => list(500, () => `${"[".repeat(20)}${"]".repeat(20)}`), 1.5],
    ["numbers", () => list(5_000, () => "0")],
    ["fractions", () => list(5_000, () => "1.5")],
    ["fractions behind an object", () => list(5_000, (at) => (at === 0 ? "{}" : "1.5"))],
    ["different texts", (by) => list(5_000, (at) => `"${by}_${at}"`)],
    ["texts of two bytes a character", () => list(50, () => JSON.stringify("中".repeat(500)))],
    ["few keys of their own", (by) => object(8, (at) => `k${by}_${at}`)],
    ["some keys of their own", (by) => object(64, (at) => `k${by}_${at}`)],
    ["many keys of their own", (by) => object(5_000, (at) => `k${by}_${at}`)],
    ["numbers as keys", () => object(1_000, (at) => `${at * 99_991}`)],
    ["objects with a key of their own", (by) => list(2_000, (at) => `{"${by}_${at}":0}`)],
    [
      "a key in a key",
      (by) =>
        `${object(
          1,
          () => "a",
          object(
            1,
            () => `b${by}`,
            object(500, (at) => `${by}x${at}`),
          ),
        )}`,
    ],
  ];
  it.each(rows)("%s", (_, make) => {
    const bytes = measure(make);
    const estimate = heapBytes(JSON.parse(make(0)));
    expect(bytes).toBeLessThanOrEqual(estimate * 1.02 + 100);
    expect(estimate).toBeLessThan(bytes * 3.5);
  });
});

it("a value that is nested without end has no estimate, and does not exhaust the stack", () => {
  expect(heapBytes(JSON.parse(`${"[".repeat(5_000)}${"]".repeat(5_000)}`))).toBe(Number.POSITIVE_INFINITY);
});

it("counting ends above the limit", () => {
  const bytes = heapBytes(JSON.parse(list(100_000, () => "{}")), 1_000);
  expect(bytes).toBeGreaterThan(1_000);
  expect(bytes).toBeLessThan(2_000);
});
