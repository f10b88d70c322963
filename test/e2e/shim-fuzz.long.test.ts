/** The shim against mutated answers and configurations: whatever comes, valid CNI JSON or a spooled DEL. */
import { execFileSync } from "node:child_process";
import { globSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { answers } from "./shim/answers.ts";
import { createRandom, mutate } from "./shim/random.ts";
import { decodeObject, NET_CONF, root, runShim, type ShimOutcome } from "./shim/run-shim.ts";
import { openScriptedAgent, type ScriptedAgent } from "./shim/scripted-agent.ts";

const VERBS = ["ADD", "DEL", "CHECK", "GC", "STATUS"];
const CASES = 1_000;
/** One for each core, and one that waits. */
const PARALLEL = 3;

interface Case {
  readonly verb: string;
  readonly answer: Buffer;
  readonly stdin: Buffer;
}

function createCase(random: ReturnType<typeof createRandom>): Case {
  const original = answers[random(answers.length)] ?? Buffer.alloc(0);
  const config = Buffer.from(NET_CONF);
  return {
    verb: VERBS[random(VERBS.length)] ?? "ADD",
    answer: mutate(original, random),
    stdin: random(3) === 0 ? mutate(config, random) : config,
  };
}

/** Counts an outcome as success, error or spooled; fails when it is none of them. */
function classify(verb: string, outcome: ShimOutcome, spooled: number): "success" | "error" | "spooled" {
  expect(outcome.stderr).not.toMatch(/Sanitizer|runtime error/);
  if (outcome.exitCode !== 0) {
    const { cniVersion = "", code, msg } = decodeObject(outcome.stdout); // the agent may leave cniVersion out
    expect([typeof cniVersion, typeof msg]).toEqual(["string", "string"]);
    expect(Number.isInteger(code) && Number(code) >= 0 && Number(code) < 1e9).toBe(true);
    expect(outcome.exitCode).toBe(1);
    expect(spooled).toBe(0);
    return "error";
  }
  expect(spooled).toBeLessThanOrEqual(verb === "DEL" ? 1 : 0);
  if (outcome.stdout.length > 0) {
    const result = decodeObject(outcome.stdout);
    expect(Object.hasOwn(result, "code") && Object.hasOwn(result, "msg"), "an error with exit code 0").toBe(false);
  } else {
    expect(verb).not.toBe("ADD");
  }
  return spooled === 1 ? "spooled" : "success";
}

async function runCase(agent: ScriptedAgent, cases: readonly Case[], index: number, executable: string) {
  const { verb, stdin } = cases[index] ?? { verb: "ADD", stdin: "" };
  const spool = join(agent.directory, `spool-${index}`);
  const env = {
    BERTH_SOCKET: agent.socketPath,
    BERTH_SPOOL: spool,
    BERTH_REQUEST_LIMIT: "30",
    CNI_CONTAINERID: String(index),
  };
  mkdirSync(spool);
  const outcome = await runShim({ command: verb, env, stdin, executable });
  const kind = classify(verb, outcome, readdirSync(spool).length);
  rmSync(spool, { recursive: true });
  return kind;
}

async function fuzz(count: number, seed: number, executable: string): Promise<Record<string, number>> {
  console.log(`FUZZ_SEED=${seed}`);
  const random = createRandom(seed);
  const cases = Array.from({ length: count }, () => createCase(random));
  await using agent = await openScriptedAgent((connection, request) => {
    const index = Number(/CNI-ContainerID: ([0-9]+)/.exec(request.toString("latin1"))?.[1]);
    connection.end(cases[index]?.answer ?? "");
  });
  const totals: Record<string, number> = { success: 0, error: 0, spooled: 0 };
  let next = 0;
  const lanes = Array.from({ length: PARALLEL }, async () => {
    while (next < count) {
      const index = next++;
      try {
        const kind = await runCase(agent, cases, index, executable);
        totals[kind] = (totals[kind] ?? 0) + 1;
      } catch (cause) {
        const { verb, answer, stdin } = cases[index] ?? {};
        const shown = JSON.stringify({ verb, answer: answer?.toString("latin1"), stdin: stdin?.toString("latin1") });
        throw new Error(`Case ${index} of seed ${seed}: ${shown}`, { cause });
      }
    }
  });
  await Promise.all(lanes);
  console.log(`of ${count} cases:`, totals);
  return totals;
}

const seed = Number(process.env.FUZZ_SEED ?? Date.now() % 0x7fffffff) || 1;

it(`${CASES} mutated answers, under sanitizers`, async () => {
  const directory = join(root, "dist/.sanitized");
  mkdirSync(directory, { recursive: true });
  const flags = ["-std=gnu11", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
  const sources = globSync("native/*.c", { cwd: root });
  execFileSync("cc", [...flags, "-o", join(directory, "berth"), ...sources], { cwd: root, stdio: "inherit" });
  const totals = await fuzz(CASES, seed, join(directory, "berth"));
  for (const kind of ["success", "error", "spooled"]) expect(totals[kind], kind).toBeGreaterThan(CASES / 30);
});
