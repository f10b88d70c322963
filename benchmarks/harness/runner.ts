/**
 * The small runner (runner.c) from TypeScript: subjects in batches, a sample for every run.
 * Called by the benchmarks of executables.
 * Effects: runs the subjects.
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { root } from "../../scripts/setup/paths.mjs";

/** An executable with its stdin and its whole environment, where `{n}` stands for the number of the run. */
export interface Subject {
  readonly path: string;
  readonly stdinFile: string;
  readonly env: Readonly<Record<string, string>>;
}

/** `count` runs with the numbers from `first`, `atOnce` of them at any time. */
export interface Batch {
  readonly subject: Subject;
  readonly atOnce: number;
  readonly first: number;
  readonly count: number;
}

/** One run from exec to exit, and the CPU time of the executed process with its children. */
export interface Sample {
  readonly wallMs: number;
  readonly cpuMs: number;
}

export interface BatchOutcome {
  readonly wallMs: number;
  readonly samples: readonly Sample[];
}

const executable = join(root, "dist", "bench", "runner");

/** Runs a batch; throws what the subject printed when one of its runs does not exit with 0. */
export async function runBatch({ subject, atOnce, first, count }: Batch): Promise<BatchOutcome> {
  const variables = Object.entries(subject.env).map(([name, value]) => `${name}=${value}`);
  const plan = [
    ["subject", subject.path, subject.stdinFile, ...variables],
    ["batch", 0, atOnce, first, count],
  ];
  return decodeAnswer(await answerOf(plan.map((fields) => `${fields.join("\t")}\n`).join("")));
}

function answerOf(plan: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(executable, [], { stdio: ["pipe", "pipe", "pipe"] });
    let [stdout, stderr] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    child.on("error", reject);
    child.on("close", (code) => (code === 0 ? resolve(stdout) : reject(new Error(stderr.trim()))));
    child.stdin.end(plan);
  });
}

function decodeAnswer(answer: string): BatchOutcome {
  const samples: Sample[] = [];
  let wallMs = 0;
  for (const line of answer.trimEnd().split("\n")) {
    const [kind, _batch, ...fields] = line.split(" ");
    const [a = 0, b = 0, c = 0, d = 0] = fields.map(Number);
    if (kind === "run") samples.push({ wallMs: b / 1e6, cpuMs: (c + d) / 1e3 });
    else wallMs = a / 1e6;
  }
  return { wallMs, samples };
}
