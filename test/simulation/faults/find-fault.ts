/**
 * Runs the simulation in a child in which a fault is switched on, until it violates an invariant.
 *
 *   findFaultBySimulation("a DEL is ignored", FAULTS["a DEL is ignored"])   // { seed: 1, steps: 4210, violation: "…" }
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Answer, Question } from "./detect-one.ts";
import type { Fault } from "./faults.ts";

/** A run that takes longer has come to a stand: milliseconds. */
const HANG_MS = 900_000;

const CHILD = fileURLToPath(new URL("detect-one.ts", import.meta.url));

export function askSimulation(question: Question): Answer {
  const { status, stdout, stderr } = spawnSync(process.execPath, [CHILD, JSON.stringify(question)], {
    encoding: "utf8",
    timeout: HANG_MS,
  });
  if (status !== 0) throw new Error(`${question.fault ?? "No fault"}, ${question.profile}: ${stderr}`);
  return JSON.parse(stdout);
}

export function findFaultBySimulation(name: string, { profile, limit }: Pick<Fault, "profile" | "limit">): Answer {
  return askSimulation({ fault: name, profile, firstSeed: 1, limit });
}
