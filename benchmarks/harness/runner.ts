/**
 * The small runner (runner.c) from TypeScript: subjects in batches, a sample for every run.
 * Effects: runs the subjects.
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { root } from "../../scripts/setup/paths.mjs";
import type { Netns } from "../../test/lab/netns.ts";
import { percentile } from "../../test/lab/statistics.ts";
import { requireUninterrupted } from "./interruption.ts";

/**
 * An executable with its stdin and its whole environment, where `{n}` stands for the number of the run, `{text:PATH}`
 * at a value's end for a file's line.
 */
export interface Step {
  readonly path: string;
  /**
   * Its path may have `{n}`, too. In the file of a later step, `{prevResult}` stands for the previous step's output.
   */
  readonly stdinFile: string;
  readonly env: Readonly<Record<string, string>>;
}

/**
 * The steps of one run: a step, and those that follow it, one after the other as a runtime does with a chain of
 * plugins.
 */
export interface Subject extends Step {
  readonly next?: readonly Step[];
  /** Exit code of the last step. Default: 0. `any`: a step that fails ends its run only, and samples have answers. */
  readonly exits?: number | "any";
}

/** `count` runs with the numbers from `first`, `atOnce` of them at any time. */
export interface Batch {
  readonly subject: Subject;
  readonly atOnce: number;
  readonly first: number;
  readonly count: number;
  /** After that no run is started, so that there are fewer samples. Default: none. */
  readonly limitMs?: number;
}

/** Answer of a run whose subject may exit with any status. */
export interface Answer {
  readonly status: number;
  /** All that its last step printed, in one line. */
  readonly text: string;
}

/** One run from exec to exit, and the CPU time of the executed processes with their children. */
export interface Sample {
  readonly wallMs: number;
  readonly cpuMs: number;
  /** Time of each step that was executed. */
  readonly stepMs: readonly number[];
  readonly answer?: Answer;
}

export interface BatchOutcome {
  readonly wallMs: number;
  readonly samples: readonly Sample[];
}

const executable = join(root, "dist", "bench", "runner");

/** Runs a batch, in `node` when given; throws the output of a subject that exits unexpectedly. */
export async function runBatch(batch: Batch, node?: Netns): Promise<BatchOutcome> {
  const [outcome] = await runBatches([batch], node);
  if (outcome === undefined) throw new Error("The runner has not answered");
  return outcome;
}

/**
 * Runs batches without a pause between them: alternatives that take turns. Gives an outcome for each. Throws after a
 * signal.
 */
export async function runBatches(batches: readonly Batch[], node?: Netns): Promise<BatchOutcome[]> {
  requireUninterrupted();
  return decodeAnswer(await answerOf(formatPlan(batches), node));
}

/** The plan as runner.c reads it. */
export function formatPlan(batches: readonly Batch[]): string {
  const subjects = [...new Set(batches.map(({ subject }) => subject))];
  const lines = [
    ...subjects.flatMap((subject) => {
      const { next = [], exits = 0 } = subject;
      return [
        ["subject", ...stepFields(subject)],
        ...next.map((step) => ["then", ...stepFields(step)]),
        ["exits", exits],
      ];
    }),
    ...batches.map(({ subject, atOnce, first, count, limitMs = 0 }) => [
      "batch",
      ...[subjects.indexOf(subject), atOnce, first, count, limitMs],
    ]),
  ];
  return lines.map((fields) => `${fields.join("\t")}\n`).join("");
}

function stepFields({ path, stdinFile, env }: Step): string[] {
  return [path, stdinFile, ...Object.entries(env).map(([name, value]) => `${name}=${value}`)];
}

function answerOf(plan: string, node: Netns | undefined): Promise<string> {
  const [file = "", ...args] = node?.enter([executable]) ?? [executable];
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { stdio: ["pipe", "pipe", "pipe"] });
    let [stdout, stderr] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    child.on("error", reject);
    child.on("close", (code) => (code === 0 ? resolve(stdout) : reject(new Error(stderr.trim()))));
    child.stdin.on("error", () => {}); // A runner that ended early says why on stderr.
    child.stdin.end(plan);
  });
}

/** Decodes the answer of runner.c, in the order of the batches. */
export function decodeAnswer(answer: string): BatchOutcome[] {
  const samples: Sample[][] = [];
  const walls: number[] = [];
  for (const line of answer.trimEnd().split("\n")) {
    const [kind, ...fields] = line.split(" ");
    const [batch = 0, ...figures] = fields.map(Number);
    if (kind === "answer") {
      const last = samples[batch]?.pop();
      const answer = { status: figures[0] ?? 0, text: fields.slice(2).join(" ").trim() };
      if (last !== undefined) samples[batch]?.push({ ...last, answer });
    } else if (kind === "run") {
      const [_number, wallNs = 0, userUs = 0, systemUs = 0, ...stepNs] = figures;
      samples[batch] ??= [];
      samples[batch].push({
        wallMs: wallNs / 1e6,
        cpuMs: (userUs + systemUs) / 1e3,
        stepMs: stepNs.map((nanoseconds) => nanoseconds / 1e6),
      });
    } else {
      walls[batch] = (figures[0] ?? 0) / 1e6;
    }
  }
  return walls.map((wallMs, batch) => ({ wallMs, samples: samples[batch] ?? [] }));
}

/** Returns that percentile of the calls' time from exec to exit: milliseconds. */
export function wallMs(samples: readonly Sample[], share: number): number {
  return percentile(
    samples.map((sample) => sample.wallMs),
    share,
  );
}
