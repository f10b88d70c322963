/**
 * Tools built from Go modules into the user's cache, a folder for each version of each module in scripts/reference;
 * and programs of the repository itself.
 * Effects: the user's cache, dist and Go's own caches.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { findCommand, run, SetupError } from "./command.mjs";
import { referenceTool, root } from "./paths.mjs";
import { buildStep, hashInputs, readStamp, writeStamp } from "./stamp.mjs";

const FLAGS = ["-trimpath"];
const ENVIRONMENT = { CGO_ENABLED: "0", GOFLAGS: "-mod=readonly -buildvcs=false", GOWORK: "off" };

/** After how many compiled packages a large build says that it goes on. */
const PROGRESS_STEP = 250;

/**
 * The step `title` that builds the tools of scripts/reference/<tool>. `flags` and `env` are added to the usual ones;
 * `rename` gives executables, which Go names after their folder, the names that they are called by.
 */
export function goStep({ tool, title = `reference ${tool}`, flags = [], linkFlags = [], env = {}, rename = {} }) {
  const { source, version, directory } = referenceTool(tool);
  const stamp = (folder) => join(folder, ".stamp");
  const allFlags = [...FLAGS, ...flags, "-ldflags", ["-s", "-w", ...linkFlags].join(" ")];
  const inputs = ["go.mod", "go.sum", "main.go"].map((name) => join(source, name)).filter((path) => existsSync(path));
  const current = () => hashInputs(inputs, [...allFlags, process.arch]);
  return {
    name: `${title} ${version}`,
    isCurrent: () => readStamp(stamp(directory)) === current(),
    run: async () => {
      const go = requireGo(tool);
      mkdirSync(dirname(directory), { recursive: true });
      removeAbandoned(directory);
      const temporary = mkdtempSync(`${directory}.`);
      try {
        await buildTools(go, [...allFlags, "-o", `${temporary}/`, "tool"], {
          cwd: source,
          env: { ...ENVIRONMENT, ...env },
        });
        for (const [from, to] of Object.entries(rename)) renameSync(join(temporary, from), join(temporary, to));
        writeStamp(stamp(temporary), current());
        replaceFolder(directory, temporary);
      } finally {
        rmSync(temporary, { recursive: true, force: true });
      }
    },
  };
}

/** The step that builds dist/<program> from the module in the folder `source` of the repository. */
export function goProgramStep({ name, source, program }) {
  const cwd = join(root, source);
  const output = join(root, "dist", program);
  const flags = [...FLAGS, "-ldflags", "-s -w"];
  return buildStep({
    name,
    inputs: [cwd],
    outputs: [output],
    texts: [process.arch, ...flags],
    build: () => {
      mkdirSync(dirname(output), { recursive: true });
      run(requireGo(program), ["build", ...flags, "-o", `${output}.tmp`, "."], { cwd, env: ENVIRONMENT });
      rmSync(output, { recursive: true, force: true });
      renameSync(`${output}.tmp`, output);
    },
  });
}

/**
 * `go build`, which names each package that it compiles (-v): `say` prints their number; the end of its output is
 * shown when it fails.
 */
export function buildTools(go, args, { cwd, env, say = (text) => process.stdout.write(text) }) {
  const child = spawn(go, ["build", "-v", ...args], {
    cwd,
    env: { ...process.env, ...env },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let output = "";
  let lines = 0;
  child.stderr.setEncoding("utf8").on("data", (text) => {
    output += text;
    for (const _ of text.matchAll(/\n/g)) if (++lines % PROGRESS_STEP === 0) say(` ${lines}`);
  });
  return new Promise((resolve, reject) => {
    child.on("error", (error) => reject(new SetupError(`Cannot run ${go}`, error.message)));
    child.on("close", (code, signal) => {
      const tail = output.split("\n").slice(-40).join("\n");
      if (code === 0) resolve();
      else reject(new SetupError(`go build ended with ${code ?? signal}`, `\n${tail}`, `cd ${cwd} && go build tool`));
    });
  });
}

/** Removes what an interrupted build left beside `directory`; a build that is under way is younger. */
function removeAbandoned(directory) {
  const hourAgoMs = Date.now() - 3_600_000;
  for (const name of readdirSync(dirname(directory))) {
    if (!name.startsWith(`${basename(directory)}.`)) continue;
    const path = join(dirname(directory), name);
    if ((statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now()) < hourAgoMs) {
      rmSync(path, { recursive: true, force: true });
    }
  }
}

/** Puts `temporary` at `directory`, however often another checkout's set-up does the same at this moment. */
export function replaceFolder(directory, temporary) {
  const old = `${temporary}.old`;
  for (;;) {
    try {
      if (existsSync(directory)) renameSync(directory, old);
      renameSync(temporary, directory);
      return;
    } catch (error) {
      if (!["ENOENT", "ENOTEMPTY", "EEXIST"].includes(error.code)) throw error;
    } finally {
      rmSync(old, { recursive: true, force: true });
    }
  }
}

function requireGo(tool) {
  const go = findCommand("go", ["/usr/local/go/bin"]);
  if (go !== undefined) return go;
  throw new SetupError(
    `${tool} cannot be built`,
    'there is no "go" in PATH; Go 1.25 or newer is needed',
    "apt-get install golang-go (Debian 13 or newer; before that from go.dev), then npm run setup",
  );
}
