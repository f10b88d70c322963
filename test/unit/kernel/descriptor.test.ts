/** In a child each, which is ended when it waits: a write that waits cannot be interrupted otherwise. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { temporaryDirectory } from "../../world/temporary-directory.ts";

const MODULE = join(import.meta.dirname, "../../../host/kernel/descriptor.ts");
/** Longest time that a child may take, on a machine that has much else to do. */
const PATIENCE_MS = 15_000;

/** Returns the output of the child's script, which has `openSend` and the descriptor 3; "killed" when it waits. */
async function inChild(script: string, descriptor: number | "pipe"): Promise<string> {
  const text = `import { openSend } from ${JSON.stringify(MODULE)}; ${script}`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", text], {
    stdio: ["ignore", "pipe", "inherit", descriptor],
    timeout: PATIENCE_MS,
    killSignal: "SIGKILL",
  });
  let said = "";
  child.stdout?.on("data", (chunk: Buffer) => {
    said += chunk;
  });
  const [, signal] = await once(child, "close");
  return signal === null ? said.trim() : "killed";
}

const FILL =
  'const send = openSend(3); let sum = 0; for (let more; (more = send(Buffer.alloc(3_000))) > 0; ) sum += more; console.log(sum > 0 ? "full" : "nothing");';

function createPath(): string {
  const directory = temporaryDirectory("berth-descriptor-", onTestFinished);
  return join(directory, "x");
}

it("a full pipe is not waited for, and its own flags stay as they are", { timeout: 60_000 }, async () => {
  const path = createPath();
  execFileSync("mkfifo", [path]);
  const fd = openSync(path, constants.O_RDWR);
  onTestFinished(() => closeSync(fd));
  expect(await inChild(FILL, fd)).toBe("full");
  const flags = /flags:\s+([0-7]+)/.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "utf8"))?.[1] ?? "";
  expect(Number.parseInt(flags, 8) & constants.O_NONBLOCK).toBe(0);
});

it("a full socket is not waited for", { timeout: 60_000 }, async () => {
  expect(await inChild(FILL, "pipe")).toBe("full");
});

it("a file takes all, behind its present content", async () => {
  const path = createPath();
  const fd = openSync(path, "a");
  expect(
    await inChild('const send = openSend(3); console.log(send(Buffer.from("a\\n")), send(Buffer.from("b\\n")));', fd),
  ).toBe("2 2");
  closeSync(fd);
  expect(readFileSync(path, "utf8")).toBe("a\nb\n");
});

it("a pipe without a reader is an error, not the end of the process", { timeout: 60_000 }, async () => {
  const path = createPath();
  execFileSync("mkfifo", [path]);
  const both = openSync(path, constants.O_RDWR);
  const fd = openSync(path, constants.O_WRONLY);
  closeSync(both);
  const script =
    'const send = openSend(3); try { send(Buffer.from("a")); console.log("taken"); } catch (error) { console.log(error.code); }';
  expect(await inChild(script, fd)).toBe("EPIPE");
  closeSync(fd);
});
