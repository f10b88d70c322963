/**
 * `npm run simulate:faults`: puts each fault into the product and counts the steps until the simulation notices it. Fails if one is not noticed within its
 * limit.
 */
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { constants, setPriority } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { root } from "../../unit/house/sources.ts";
import type { Question, SeedReport } from "./detect-one.ts";
import type { Fault } from "./fault.ts";
import { FAULTS, TESTED_FAULTS } from "./faults.ts";
import {
  type Detection,
  PAGE,
  replaceTable,
  rowOf,
  rowsByName,
  TABLE_HEAD,
  TESTED_HEAD,
  testedRowOf,
} from "./table.ts";
import { findFailingTest } from "./tested.ts";

const STEPS = 5_000;
/** A run that takes longer has come to a stand: milliseconds. */
const HANG_MS = 900_000;

async function ask(question: Question, onReport: (report: SeedReport) => void): Promise<void> {
  const child = spawn(
    process.execPath,
    [fileURLToPath(new URL("detect-one.ts", import.meta.url)), JSON.stringify(question)],
    {
      cwd: root,
      stdio: ["ignore", "pipe", "pipe"],
      timeout: HANG_MS,
    },
  );
  let errors = "";
  child.stderr.on("data", (data) => {
    errors = `${errors}${data}`.slice(-4_000);
  });
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  for await (const line of createInterface({ input: child.stdout })) onReport(JSON.parse(line));
  if ((await ended) !== 0) throw new Error(`${question.fault ?? "No fault"}, ${question.profile}: ${errors}`);
}

/** By profile, seed and steps: whether the product as it is keeps all invariants there. */
const clean = new Map<string, boolean>();

async function isClean(profile: string, seed: number, steps: number, faults: number): Promise<boolean> {
  const key = `${profile} ${seed} ${steps} ${faults}`;
  if (!clean.has(key))
    await ask({ fault: undefined, profile, seed, steps, faults, limit: 1 }, ({ violation }) =>
      clean.set(key, violation === undefined),
    );
  return clean.get(key) === true;
}

/** Seeds that violate an invariant without the fault do not count. */
async function detect(fault: Fault): Promise<Detection> {
  const { name, profile, limit, steps: each = STEPS, faults = 1 } = fault;
  let steps = 0;
  for (let seed = 1; steps < limit; ) {
    let last: SeedReport | undefined;
    await ask({ fault: name, profile, seed, steps: each, faults, limit: limit - steps }, (report) => {
      last = report;
      steps += report.steps;
    });
    if (last === undefined) throw new Error(`${name}: no seed was run`);
    const { violation } = last;
    if (violation === undefined) break;
    const isMeant = violation.includes(fault.violation ?? "");
    if (isMeant && (await isClean(profile, last.seed, each, faults)))
      return { fault, seed: last.seed, steps, violation };
    steps -= last.steps;
    seed = last.seed + 1;
  }
  return { fault, seed: undefined, steps, violation: undefined };
}

const { values } = parseArgs({
  options: {
    only: { type: "string", multiple: true, default: [""] },
    jobs: { type: "string", default: "1" },
    write: { type: "boolean", default: false },
  },
});
setPriority(constants.priority.PRIORITY_LOW);
const isWanted = ({ name, breaks }: Pick<Fault, "name" | "breaks">): boolean =>
  values.only.some((text) => `${breaks}: ${name}`.includes(text));
const rows = new Map<string, string>();
const waiting = FAULTS.filter(isWanted);
const tested = TESTED_FAULTS.filter(isWanted);
let hasFailed = waiting.length + tested.length === 0;
console.log(TABLE_HEAD);
await Promise.all(
  Array.from({ length: Number(values.jobs) }, async () => {
    for (let fault = waiting.shift(); fault !== undefined; fault = waiting.shift()) {
      const detection = await detect(fault);
      rows.set(fault.name, rowOf(detection));
      console.log(rowOf(detection));
      if (detection.violation === undefined || detection.steps > fault.limit) hasFailed = true;
    }
  }),
);
console.log(`\n${TESTED_HEAD}`);
for (const fault of tested) {
  const test = findFailingTest(fault);
  rows.set(fault.name, testedRowOf(fault, test));
  console.log(testedRowOf(fault, test));
  if (test === undefined) hasFailed = true;
}
if (values.write) {
  const path = join(root, PAGE);
  const text = readFileSync(path, "utf8");
  // The other rows stay.
  for (const [name, row] of rowsByName(text)) if (!rows.has(name)) rows.set(name, row);
  const rowsOf = (faults: readonly { readonly name: string }[]) => faults.flatMap(({ name }) => rows.get(name) ?? []);
  const page = replaceTable(text, TABLE_HEAD, rowsOf(FAULTS));
  writeFileSync(path, replaceTable(page, TESTED_HEAD, rowsOf(TESTED_FAULTS)));
}
if (hasFailed) console.error("Not every fault was noticed within its limit");
process.exitCode = hasFailed ? 1 : 0;
