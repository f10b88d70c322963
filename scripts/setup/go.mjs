/**
 * Tools built from the Go modules in scripts/reference into the user's cache; and programs of the repository itself.
 * Effects: the user's cache, dist and Go's own caches.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { findCommand, run, SetupError } from "./command.mjs";
import { cacheDir, GO_FLAGS, referenceTool, root } from "./paths.mjs";
import { buildStep } from "./stamp.mjs";

/** Compilers beside each other, each with one thread and a lazy garbage collector: they use less processor time. */
export const GO_ENVIRONMENT = {
  CGO_ENABLED: "0",
  GOFLAGS: `-mod=readonly -buildvcs=false -p=${availableParallelism()}`,
  GOMAXPROCS: "1",
  GOWORK: "off",
  GOGC: "400",
};

/** The steps that build reference tools (paths.mjs): one `go build` for those that are compiled alike. */
export function toolsSteps(names) {
  const builds = new Map();
  for (const name of new Set(names)) {
    const tool = { name, ...referenceTool(name) };
    const key = [tool.source, ...tool.flags].join(" ");
    builds.set(key, [...(builds.get(key) ?? []), tool]);
  }
  return [...builds.values()].map((tools) => {
    const missing = tools.filter(({ directory }) => !existsSync(directory));
    return {
      name: missing.map(({ name, version }) => `${name} ${version}`).join(", "),
      isCurrent: () => missing.length === 0,
      run: (options) => buildTools(missing, options),
    };
  });
}

async function buildTools(tools, options) {
  mkdirSync(cacheDir(), { recursive: true });
  for (const { directory } of tools) removeAbandoned(directory);
  const temporary = mkdtempSync(`${tools[0].directory}.`);
  try {
    const [{ source, flags, env, copied }] = tools;
    const cwd = copied === undefined ? source : join(temporary, ".module");
    if (copied !== undefined) copyModule(copied, source, cwd);
    const packages = tools.flatMap((tool) => [...tool.packages.values()].map(({ path }) => path));
    await goBuild([...flags, "-o", `${temporary}/`, ...packages], { cwd, env, ...options });
    for (const { name, packages, directory } of tools) {
      const folder = join(temporary, `.${name}`);
      mkdirSync(folder);
      for (const [built, { executable }] of packages) renameSync(join(temporary, built), join(folder, executable));
      replaceFolder(directory, folder);
    }
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

/**
 * Copies a module, with the programs and hashes of `source`. What Kubernetes has in a folder of its repository is
 * published as a module of the same minor version.
 */
function copyModule(module, source, target) {
  run("cp", ["-r", "--no-preserve=mode", moduleFolder(module, source), target]);
  for (const name of readdirSync(source).filter((each) => each.endsWith(".go")))
    copyFileSync(join(source, name), join(target, name));
  appendFileSync(join(target, "go.sum"), readFileSync(join(source, "go.sum")));
  const goMod = join(target, "go.mod");
  const text = readFileSync(goMod, "utf8").replaceAll(/\.\/staging\/src\/(\S+)/g, "$1 v0.0.0");
  writeFileSync(goMod, text.replaceAll(/ v0\.0\.0$/gm, ` ${module.replace(/.*@v1/, "v0")}`));
}

/** Returns the folder of a module, which the go.sum of `source` verifies, in Go's cache. */
export function moduleFolder(module, source) {
  return JSON.parse(run(requireGo(), ["mod", "download", "-json", module], { cwd: source })).Dir;
}

/** The step that builds dist/<program> from the module in the folder `source` of the repository. */
export function goProgramStep(program, source) {
  const cwd = join(root, source);
  const output = join(root, "dist", program);
  const flags = [...GO_FLAGS, "-ldflags", "-s -w"];
  return buildStep({
    name: program,
    inputs: [cwd],
    outputs: [output],
    texts: [process.arch, ...flags],
    build: () => {
      mkdirSync(dirname(output), { recursive: true });
      run(requireGo(), ["build", ...flags, "-o", `${output}.tmp`, "."], { cwd, env: GO_ENVIRONMENT });
      rmSync(output, { recursive: true, force: true });
      renameSync(`${output}.tmp`, output);
    },
  });
}

/**
 * `go build`, which names each package that it compiles (-v): `say` is told how many. Its output goes to a file,
 * because steps beside it may block this process for minutes; an error has its end.
 */
async function goBuild(args, { cwd, env, say, signal }) {
  const go = requireGo();
  const directory = mkdtempSync(join(tmpdir(), "berth-go-"));
  const log = join(directory, "log");
  const file = openSync(log, "w");
  const lines = () => readFileSync(log, "utf8").split("\n");
  const saying = setInterval(() => say(lines().length - 1), 1000);
  try {
    const options = {
      cwd,
      env: { ...process.env, ...GO_ENVIRONMENT, ...env },
      stdio: ["ignore", "ignore", file],
      signal,
    };
    const [code, killed] = await once(spawn(go, ["build", "-v", ...args], options), "close");
    if (code === 0) return;
    const tail = lines().slice(-40).join("\n");
    throw new SetupError(`go build ended with ${code ?? killed}`, `\n${tail}`, `cd ${cwd} && go build tool`);
  } finally {
    clearInterval(saying);
    closeSync(file);
    rmSync(directory, { recursive: true });
  }
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

export function requireGo() {
  const go = findCommand("go", ["/usr/local/go/bin"]);
  if (go !== undefined) return go;
  throw new SetupError(
    "A program in Go cannot be built",
    'there is no "go" in PATH; Go 1.25 or newer is needed',
    "apt-get install golang-go (Debian 13 or newer; before that from go.dev), then npm run setup",
  );
}
