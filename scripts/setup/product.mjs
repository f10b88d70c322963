/**
 * The parts of Berth itself: npm packages, the shim, the addon, the Wasm core, the bundles. Each part is built from
 * the files named beside it when one of them has changed.
 * Effects: node_modules and dist.
 */
import { createHash } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { run } from "./command.mjs";
import { npmStep } from "./npm.mjs";
import { hasPackage, root } from "./paths.mjs";
import { buildStep } from "./stamp.mjs";
import { buildVersion, VERSION_FILE } from "./version.mjs";

const inRoot = (...parts) => join(root, ...parts);
const packageLock = inRoot("package-lock.json");

/**
 * Each bundle's entry below host/; the executables are called by their users, the workers by the agent. Those of a
 * group share chunks. The agent has its own: shared with the command line they would be six times as many, and each
 * takes time to load. A worker shares none: each thread loads shared chunks anyway.
 */
const bundleGroups = [
  ["bin/berth-agent.ts"],
  ["registry/sqlite/sqlite-worker.ts"],
  ["kernel/link-remover-worker.ts"],
  ["bin/berth-controller.ts", "bin/berthctl.ts", "bin/kubectl-berth.ts"],
];

const PLUGINS = ["berth", "coordinator", "ifacer", "berth-coordinator", "berth-ifacer"];

export function productSteps() {
  const version = buildVersion();
  const groups = bundleGroups.map((group) => group.map((name) => inRoot("host", name)));
  return [
    npmStep(),
    nativeStep(
      "shim",
      PLUGINS.map((name) => `bin/${name}`),
      { BERTH_VERSION: version },
    ),
    nativeStep("addon", ["native/berth.node"]),
    coreStep(),
    corePackageStep(),
    bundleStep(groups, version),
    ...(hasPackage("map") ? [mapStep()] : []),
    versionStep(version),
  ];
}

function nativeStep(part, outputs, env = {}) {
  return buildStep({
    name: part,
    inputs: [inRoot("native"), packageLock],
    outputs: outputs.map((path) => inRoot("dist", path)),
    texts: Object.values(env),
    build: () => run("sh", [inRoot("native", "build.sh"), part], { env }),
  });
}

/** Last of all: the file means that the version has been built. */
function versionStep(version) {
  return buildStep({
    name: "version",
    inputs: [],
    outputs: [VERSION_FILE],
    texts: [version],
    build: () => writeFileSync(VERSION_FILE, `${version}\n`),
  });
}

/** Defines the version that host/bin/version.ts prints. */
const define = (version) => [
  `--define:BERTH_VERSION=${JSON.stringify(version)}`,
  // One text: of a list esbuild makes a module that every other one imports.
  `--define:BERTH_PACKAGES=${JSON.stringify(existsSync(inRoot("packages")) ? readdirSync(inRoot("packages")).join(" ") : "")}`,
];

/** The release and the debug core, as asconfig.json describes them, each renamed into place. */
function coreStep() {
  const config = JSON.parse(readFileSync(inRoot("asconfig.json"), "utf8"));
  const targets = Object.entries(config.targets);
  return buildStep({
    name: "Wasm core",
    inputs: [inRoot("assembly"), inRoot("asconfig.json"), packageLock],
    outputs: targets.flatMap(([, target]) => outputsOf(target)),
    build: () => {
      for (const [name, { outFile, textFile }] of targets) {
        const files = textFile === undefined ? { outFile } : { outFile, textFile };
        const flags = Object.entries(files).flatMap(([flag, path]) => [`--${flag}`, temporaryOf(path)]);
        run(inRoot("node_modules", ".bin", "asc"), ["--target", name, ...flags]);
        for (const path of Object.values(files)) renameSync(inRoot(temporaryOf(path)), inRoot(path));
      }
    },
  });
}

function outputsOf({ outFile, textFile }) {
  return [outFile, textFile].filter((path) => path !== undefined).map((path) => inRoot(path));
}

/** A hidden file beside it. */
function temporaryOf(path) {
  return path.replace(/[^/]+$/, ".$&");
}

/**
 * Copies the files that another program needs to take the core along: beside the module its text, its description,
 * the vectors that the module itself records, and the sums of all of these.
 */
function corePackageStep() {
  const directory = inRoot("dist", "core");
  const recorder = inRoot("test", "vectors", "core");
  const seeded = inRoot("test", "world", "seeded.ts");
  const vectors = join(directory, "vectors");
  const description = inRoot("assembly", "abi.json");
  const module = ["berth-core.wasm", "berth-core.wat"];
  return buildStep({
    name: "core to take away",
    inputs: [...module.map((name) => join(directory, name)), description, recorder, seeded],
    outputs: [join(directory, "abi.json"), vectors, join(directory, "SHA256SUMS")],
    build: () => {
      copyFileSync(description, join(directory, "abi.json"));
      rmSync(vectors, { recursive: true, force: true });
      run(inRoot("node_modules", ".bin", "node"), [
        join(recorder, "record.ts"),
        join(directory, "berth-core.wasm"),
        vectors,
      ]);
      copyFileSync(join(recorder, "README.md"), join(vectors, "README.md"));
      const files = [...module, "abi.json", ...readdirSync(vectors).map((name) => `vectors/${name}`)].sort();
      const sums = files.map((name) => `${sha256Of(join(directory, name))}  ${name}\n`);
      writeFileSync(join(directory, "SHA256SUMS"), sums.join(""));
    },
  });
}

function sha256Of(path) {
  return createHash("sha256").update(readFileSync(path)).digest("hex");
}

/**
 * Neither blanks nor long forms: V8 keeps the text of loaded code. Names stay, for stack traces; lines are short,
 * because Node.js prints the whole line that an uncaught error comes from.
 */
const small = ["--minify-whitespace", "--minify-syntax", "--line-limit=200"];
// The package's ES modules, so that a bundle gets only the used ones. For Node.js it names one CommonJS module.
const yaml = "--alias:yaml=./node_modules/yaml/browser/index.js";
// An import of node:http reads all its exports, of which the one for WebSockets loads an HTTP client: 8 MB.
const http = ["node:http", "http"].map(
  (name) => `--alias:${name}=data:text/javascript,module.exports=process.getBuiltinModule("http")`,
);
const forNode = ["--bundle", "--platform=node", "--target=node26", ...small, yaml, ...http, "--log-level=warning"];

/** A function that CommonJS packages inside an ES module call. */
const require = 'import{createRequire as makeRequire}from"node:module";const require=makeRequire(import.meta.url);';

/** berthctl in one module, which a release puts into Node.js's executables. */
export function oneModuleStep() {
  const output = inRoot("dist", "one-file", "berthctl.mjs");
  const flags = [...forNode, ...define(buildVersion()), "--format=esm", `--banner:js=${require}`];
  return buildStep({
    name: "berthctl in one module",
    inputs: [inRoot("host"), inRoot("packages"), packageLock],
    outputs: [output],
    texts: flags,
    build: () => bundle([inRoot("host", "bin", "berthctl-file.ts")], [...flags, `--outfile=${output}`]),
  });
}

/** Runs esbuild. Returns which packages are in it: the release lists them with their licences. */
function bundle(entries, flags) {
  const esbuild = inRoot("node_modules", "@esbuild", `linux-${process.arch}`, "bin", "esbuild");
  const metafile = inRoot("dist", ".bundles.json");
  run(esbuild, [...entries, ...flags, `--metafile=${metafile}`]);
  const { inputs, outputs } = JSON.parse(readFileSync(metafile, "utf8"));
  rmSync(metafile);
  return { inputs, outputs };
}

/**
 * One ES module per entry, executable. A dynamic import is a chunk beside them: an executable's program, which an old
 * Node.js could not parse, and modules that only some need. A source map is beside each. Other modules in dist are of
 * older builds.
 */
function bundleStep(groups, version) {
  const entries = groups.flat();
  const nameOf = (entry) => entry.replace(/^.*\/(.+)\.ts$/, "$1.mjs");
  const names = entries.map(nameOf);
  const chunks = ["--splitting", "--entry-names=[name]", "--chunk-names=chunk-[hash]"];
  const flags = [
    ...forNode,
    ...define(version),
    "--format=esm",
    "--out-extension:.js=.mjs",
    ...chunks,
    `--banner:js=${require}`,
    "--sourcemap=linked",
  ];
  return buildStep({
    name: `bundles (${names.join(", ")})`,
    inputs: [inRoot("host"), inRoot("packages"), packageLock],
    outputs: [...names, "bundles.json"].map((name) => inRoot("dist", name)),
    texts: [...flags, ...groups.map((group) => group.map(nameOf).join(" "))],
    build: () => {
      // As deep as dist, because source maps have relative paths.
      const temporary = inRoot(".bundles");
      rmSync(temporary, { recursive: true, force: true });
      const contents = groups.map((group) => bundle(group, [...flags, `--outdir=${temporary}`]));
      const all = (part) => Object.assign({}, ...contents.map((each) => each[part]));
      writeFileSync(inRoot("dist", "bundles.json"), JSON.stringify({ inputs: all("inputs"), outputs: all("outputs") }));
      // The executables last, after the chunks that they load.
      const built = readdirSync(temporary);
      const chunks = built.filter((name) => !names.includes(name));
      for (const name of chunks) renameSync(join(temporary, name), inRoot("dist", name));
      for (const name of names) publish(join(temporary, name), inRoot("dist", name));
      const old = readdirSync(inRoot("dist")).filter(
        (name) => /\.[cm]js(?:\.map)?$/.test(name) && !built.includes(name),
      );
      for (const name of old) rmSync(inRoot("dist", name));
      rmSync(temporary, { recursive: true });
    },
  });
}

/** The page of the address map: one script for browsers of the last years, and the files beside it. */
function mapStep() {
  const files = ["index.html", "map.css"];
  const flags = [
    "--bundle",
    "--minify",
    "--format=esm",
    "--target=chrome123,firefox120,safari17.5",
    "--log-level=warning",
  ];
  return buildStep({
    name: "address map",
    inputs: [inRoot("packages", "map"), inRoot("host", "net"), inRoot("host", "records"), packageLock],
    outputs: ["map.js", ...files].map((name) => inRoot("dist", "map", name)),
    texts: flags,
    build: () => {
      const esbuild = inRoot("node_modules", "@esbuild", `linux-${process.arch}`, "bin", "esbuild");
      run(esbuild, [
        inRoot("packages", "map", "page", "main.ts"),
        ...flags,
        `--outfile=${inRoot("dist", "map", "map.js")}`,
      ]);
      for (const name of files) copyFileSync(inRoot("packages", "map", "page", name), inRoot("dist", "map", name));
    },
  });
}

/** Makes a bundle executable and renames it into place. */
function publish(from, to) {
  chmodSync(from, 0o755);
  renameSync(from, to);
}
