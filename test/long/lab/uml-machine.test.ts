/** The machine that tests of kind `uml` run in: what it may touch, and that it ends, whatever happens inside. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { root } from "../../../scripts/setup/paths.mjs";
import { hasMachine, MachineError, runInMachine } from "../../../scripts/uml/machine.ts";

/**
 * Ends a machine that hangs before the test's own time is over, so that it says where and leaves nothing to the next
 * test.
 */
const DEADLINE_MS = 45_000;

/** Folder of one test. */
let directory: string;
/** In which a machine boots for certain: several times what the first one took. */
let bootedMs = 4_000;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "berth-uml test-"));
});

afterEach(() => {
  rmSync(directory, { recursive: true });
});

/** Command lines of processes that name the folder. */
function processesOfGuest(): string[] {
  const commandLine = (pid: string): string => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
    } catch {
      return ""; // has ended meanwhile
    }
  };
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.map(commandLine).filter((line) => line.includes("linux.uml") && line.includes(directory));
}

/** Why it did not come to the end. Afterwards nothing of it is left. */
async function failureOf(argv: readonly string[], options: { bootMs?: number; deadlineMs?: number } = {}) {
  const run = runInMachine(argv, { directory, deadlineMs: DEADLINE_MS, ...options });
  const error: unknown = await run.catch((reason: unknown) => reason);
  await expect.poll(processesOfGuest, { timeout: 10_000 }).toEqual([]);
  expect(readdirSync(directory)).toEqual([]);
  return error instanceof MachineError ? error.message : expect.unreachable(`no MachineError but ${error}`);
}

it("is there for x86-64", () => expect(hasMachine).toBe(process.arch === "x64"));

const inMachine = () => {
  it("runs a command with its words as they are, changes nothing but the folder, and gives the exit code", async () => {
    const script = 'touch "$0/x" /tmp/berth-uml-x "$HOME/x"; printf "%s\\n" "$@" "$PWD" "$(id -u)" > "$1/out"; exit 7';
    const words = [root, directory, "it's", "two words", '"$HOME"'];
    const startMs = performance.now();
    expect(await runInMachine(["sh", "-c", script, ...words], { directory, deadlineMs: DEADLINE_MS })).toBe(7);
    bootedMs = Math.max(bootedMs, 3 * (performance.now() - startMs));
    const lines = readFileSync(join(directory, "out"), "utf8").trimEnd().split("\n");
    expect(lines).toEqual([directory, "it's", "two words", '"$HOME"', root, "0"]);
    expect([existsSync(join(root, "x")), existsSync("/tmp/berth-uml-x")]).toEqual([false, false]);
    rmSync(join(directory, "out"));
    expect(readdirSync(directory)).toEqual([]);
    expect(processesOfGuest()).toEqual([]);
  });

  it("that is switched off from inside has not come to the end", async () => {
    const failure = await failureOf(["sh", "-c", "echo o >/proc/sysrq-trigger; sleep 100"]);
    expect(failure).toMatch(
      /^User-Mode Linux did not come to the end of its command: it ended with \d+ after [\d.]+ s$/,
    );
  });

  it("that takes too long is ended with all its processes", async () => {
    const failure = await failureOf(["sleep", "1000"], { deadlineMs: bootedMs });
    expect(failure).toMatch(/: it was not done after \d+\.\d s, and was ended$/m);
  });

  it("that does not boot in time is ended, and the failure has what it said", async () => {
    expect(await failureOf(["true"], { bootMs: 100 })).toMatch(
      /: it had not booted after \d+\.\d s, and was ended; it said:/,
    );
  });

  it("cannot be given a folder whose name breaks its command line", async () => {
    await expect(runInMachine(["true"], { directory: `${directory}/`, deadlineMs: DEADLINE_MS })).resolves.toBe(0);
    const broken = mkdtempSync(join(tmpdir(), 'berth-uml"'));
    await expect(runInMachine(["true"], { directory: broken })).rejects.toThrow("; set TMPDIR");
    rmSync(broken, { recursive: true });
  });
};

if (hasMachine) describe("User-Mode Linux", inMachine);
