/**
 * Tools built from Go modules (paths.mjs) into the user's cache; and programs of the repository itself.
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
import { cacheDir, GO_FLAGS, referenceSource, referenceTool, root } from "./paths.mjs";
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
    const key = [tool.module, ...tool.flags].join(" ");
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
    const [{ module, flags, env }] = tools;
    const cwd = join(temporary, ".module");
    copyModule(module, tools, cwd);
    for (const { name, packages, program, executable, directory } of tools) {
      const folder = join(temporary, name);
      const paths = program === undefined ? packages : [join(OWN, name)];
      await goBuild([...flags, "-o", `${folder}/`, ...paths.map((path) => `./${path}`)], { cwd, env, ...options });
      const [built] = readdirSync(folder);
      if (executable !== undefined) renameSync(join(folder, built), join(folder, executable));
      replaceFolder(directory, folder);
    }
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

/** Where a copy of a module has our programs. */
const OWN = "own";

/**
 * Copies a module, with our programs of `tools` and their requirements. Folders of its repository that replace modules
 * are published: by Kubernetes as modules of the same minor version, by etcd as those of the version that it requires.
 */
function copyModule(module, tools, target) {
  run("cp", ["-r", "--no-preserve=mode", moduleFolder(module), target]);
  for (const { name, program } of tools.filter((tool) => tool.program !== undefined)) {
    mkdirSync(join(target, OWN, name), { recursive: true });
    copyFileSync(program, join(target, OWN, name, "main.go"));
  }
  appendFileSync(join(target, "go.sum"), readFileSync(join(referenceSource, "go.sum")));
  const goMod = join(target, "go.mod");
  const text = readFileSync(goMod, "utf8")
    .replaceAll(/\.\/staging\/src\/(\S+)/g, "$1 v0.0.0")
    .replaceAll(/ v0\.0\.0$/gm, ` ${module.replace(/.*@v1/, "v0")}`)
    .replaceAll(/^\s\S+ => \.\.\/.*$/gm, "");
  const required = tools.flatMap(({ requires }) => requires.map((each) => `require ${each}\n`));
  writeFileSync(goMod, [text, ...required].join("\n"));
}

/** Returns the folder of a module, which go.sum verifies, in Go's cache. */
export function moduleFolder(module) {
  return JSON.parse(run(requireGo(), ["mod", "download", "-json", module], { cwd: referenceSource })).Dir;
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

/** Removes the remains of an interrupted build beside `directory`; a build under way is younger. */
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
