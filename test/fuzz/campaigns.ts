/** All targets of fuzzing, each for its share of a time. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { answers } from "../e2e/shim/answers.ts";
import { NET_CONF } from "../e2e/shim/run-shim.ts";
import { fuzzInThread } from "./guided-thread.ts";
import { buildCore, type Campaign, coreCall, fuzzNative, type NativeTarget, shimTarget } from "./native.ts";

const [heads, bodies] = [0, 1].map((part) => answers.map((answer) => answer.toString().split("\r\n\r\n")[part] ?? ""));
const headers = ["Content-Length", "Berth-Notice", "Transfer-Encoding", "HTTP/1.", "\r\n\r\n"];
/** 10.0.0.0-10.0.0.255, as a set and as a pool that has them, saved and loaded. */
const pool = [
  ...[
    0xff,
    8,
    10,
    0,
    0,
    0,
    10,
    0,
    0,
    255,
    ...coreCall("set_create", 0x24, 0x21),
    ...coreCall("set_create", 0x24, 0x20),
  ],
  ...[...coreCall("pool_create", 0, 1), ...coreCall("pool_claim_at", 2, 0x29), ...coreCall("pool_save", 2)],
  ...[...coreCall("pool_load", 2, 0xa0), ...coreCall("pool_allocate", 2, 0x20, 0x20), ...coreCall("pool_used", 2)],
];

const native: Readonly<Record<string, NativeTarget>> = {
  "the shim's JSON": shimTarget("json", [NET_CONF, ...(bodies ?? [])], ["cniVersion", "code", "msg", "true", "null"]),
  "the shim's head of an answer": shimTarget(
    "head",
    (heads ?? []).map((head) => `${head}\r\n\r\n`),
    headers,
  ),
  "the shim's texts": shimTarget("text", ["\0\x0920.25", '\x01\0a"b\\c\x7f'], ["3600", "0."]),
  "calls of the core": { build: buildCore, seeds: [Uint8Array.from(pool)], words: [] },
};
const guided = ["netlink", "packet", "annotations", "definitions", "values", "manifests"];

/** Without feedback, at least so many per second: a loaded machine has reached several times as many. */
const LEAST_PER_SECOND = 10;

const seed = Number(process.env.FUZZ_SEED ?? Date.now() % 0x7fffffff) || 1;

export function fuzzAll(allSeconds: number): void {
  const seconds = allSeconds / (Object.keys(native).length + guided.length);
  const timeout = seconds * 1000 + 120_000;
  const check = ({ executions, kept }: Campaign, seeds: number): void => {
    console.log(`FUZZ_SEED=${seed}: ${executions} executions, ${kept} inputs kept`);
    expect(executions).toBeGreaterThan(seconds * LEAST_PER_SECOND);
    expect(kept).toBeGreaterThan(seeds);
  };
  it.each(Object.entries(native))("%s", { timeout }, (_name, target) => {
    const directory = mkdtempSync(join(tmpdir(), "berth-fuzz-"));
    try {
      check(fuzzNative(target, seconds, seed, directory), target.seeds.length);
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
  it.each(guided)("%s", { timeout }, async (name) => check(await fuzzInThread({ name, seconds, seed }), 0));
}
