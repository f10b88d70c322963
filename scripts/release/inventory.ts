/** The foreign parts of the artifacts for one processor, with licences: for their SBOMs and THIRD_PARTY_LICENSES. */
import { existsSync, mkdtempDisposableSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "../setup/paths.mjs";
import { IMAGE_PACKAGES } from "./image.ts";
import pinned from "./sources.json" with { type: "json" };
import { type Architecture, readNode, unpackDebian } from "./sources.ts";
import { TARBALL_PACKAGES } from "./tarball.ts";

export interface Component {
  readonly type: "application" | "library" | "data";
  readonly name: string;
  readonly version?: string;
  /** Package URL. */
  readonly purl?: string;
  /** SPDX identifier or expression, and the text with the copyright notices. Absent: those of `within`. */
  readonly license?: string;
  readonly text?: string;
  /** The place of the source code, if the licence asks for it. */
  readonly source?: string;
  /** Name of the component that contains this one. */
  readonly within?: string;
}

export interface Inventory {
  readonly image: readonly Component[];
  readonly tarball: readonly Component[];
  /** Of berthctl as one file: Node.js, the npm packages and the core. */
  readonly berthctl: readonly Component[];
  /** The npm packages and the core. */
  readonly npm: readonly Component[];
}

export async function takeInventory(architecture: Architecture): Promise<Inventory> {
  const license = String((await readNode(architecture)).get("package/LICENSE"));
  using folder = mkdtempDisposableSync(join(tmpdir(), "berth-inventory-"));
  const texts = new DebianTexts(folder.path);
  const npm = npmComponents(root, readMetafile(join(root, "dist")));
  const certificates: Component = {
    ...{ type: "data", name: "Mozilla's CA certificates in Node.js", version: pinned.node.version },
    ...{ license: "MPL-2.0", text: texts.common("MPL-2.0") },
  };
  const berthctl = [...npm, ...nodeComponents(license), certificates];
  // The shim is linked with musl and with the compiler's runtime.
  const withDebian = (names: readonly string[]) => [
    ...berthctl,
    ...[...new Set(["musl-dev", "libgcc-s1", ...names])].map((name) => debianComponent(name, architecture, texts)),
  ];
  return { image: withDebian(IMAGE_PACKAGES), tarball: withDebian(TARBALL_PACKAGES), berthctl, npm };
}

/** The file that esbuild writes beside the bundles, as far as it is read here. */
export interface Metafile {
  readonly outputs: Readonly<
    Record<
      string,
      {
        readonly inputs: Readonly<Record<string, { readonly bytesInOutput: number }>>;
        readonly imports: readonly { readonly path: string; readonly external?: boolean }[];
      }
    >
  >;
}

const PACKAGE = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/;
/** Packages whose files contain other packages. */
const CONTENTS: Readonly<Record<string, readonly string[]>> = {
  "jsonpath-plus": ["jsep", "@jsep-plugin/assignment", "@jsep-plugin/regex"],
};
/** assemblyscript compiles its runtime into the core, esbuild its module loader into the bundles. */
const COMPILERS = ["assemblyscript", "esbuild"];
const LICENCE_FILE = /^(licen[cs]e|copying|notice)(\.(md|txt))?$/i;

/** The npm packages in the bundles and in the core. `directory`: the start of `metafile`'s paths. */
export function npmComponents(directory: string, metafile: Metafile): Component[] {
  const inputs = Object.values(metafile.outputs).flatMap((output) => Object.entries(output.inputs));
  const used = inputs.filter(([, { bytesInOutput }]) => bytesInOutput > 0);
  const bundled = new Set(used.flatMap(([path]) => PACKAGE.exec(path) ?? []));
  const contained = [...bundled].flatMap((path) => CONTENTS[path.replace("node_modules/", "")] ?? []);
  const paths = [...bundled, ...[...contained, ...COMPILERS].map((name) => `node_modules/${name}`)];
  return paths.map((path) => npmComponent(join(directory, path)));
}

/** Throws for a package without a licence file. */
export function npmComponent(directory: string): Component {
  const { name, version, license } = JSON.parse(readFileSync(join(directory, "package.json"), "utf8"));
  const files = readdirSync(directory).filter((file) => LICENCE_FILE.test(file));
  const text = files.sort().map((file) => readFileSync(join(directory, file), "utf8").trim());
  if (text.join("") === "" || typeof license !== "string")
    throw new Error(`Package ${name} ${version} is part of a release but has no licence text in ${directory}`);
  const purl = `pkg:npm/${name.replace("@", "%40")}@${version}`;
  return { type: "library", name, version, license, purl, text: text.join("\n\n") };
}

/** Returns the list that esbuild wrote for the bundles in `dist`. */
export function readMetafile(dist: string): Metafile {
  const path = join(dist, "bundles.json");
  if (!existsSync(path)) throw new Error(`${path} is missing; run: npm run build`);
  return JSON.parse(readFileSync(path, "utf8")) as Metafile;
}

/** Keys of `process.versions` that name no library: Node.js's own code and numbers, and the data of ICU. */
const NO_LIBRARY = ["node", "modules", "napi", "nbytes", "ncrypto", "cldr", "tz", "unicode"];

/** Node.js with its LICENSE, and the libraries inside as it names them itself. */
function nodeComponents(license: string): Component[] {
  const { version } = pinned.node;
  if (process.versions.node !== version)
    throw new Error(`A release with Node.js ${version} is built with it, not ${process.versions.node}`);
  const purl = `pkg:github/nodejs/node@v${version}`;
  const libraries = Object.entries(process.versions).filter(([name]) => !NO_LIBRARY.includes(name));
  return [
    { type: "application", name: "Node.js", version, license: "MIT", purl, text: license },
    ...libraries.map(([name, found = ""]): Component => ({ type: "library", name, version: found, within: "Node.js" })),
  ];
}

/** The package whose `copyright` covers another one. */
const COPYRIGHT: Readonly<Record<string, string>> = {
  "libstdc++6": "gcc-12-base",
  "libgcc-s1": "gcc-12-base",
  libatomic1: "gcc-12-base",
};
const GCC_RUNTIME = "GPL-3.0-or-later WITH GCC-exception-3.1";
const LICENSES: Readonly<Record<string, string>> = {
  libc6: "LGPL-2.1-or-later",
  "libstdc++6": GCC_RUNTIME,
  "libgcc-s1": GCC_RUNTIME,
  libatomic1: GCC_RUNTIME,
  "musl-dev": "MIT",
};

/** Debian's texts, from packages that are unpacked for amd64: they are the same for each processor. */
class DebianTexts {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Returns the package's copyright file followed by the common licences that it refers to. */
  copyright(name: string): string {
    const folder = COPYRIGHT[name] ?? name;
    const text = this.#read(folder, `usr/share/doc/${folder}/copyright`);
    const names = [...text.matchAll(/\/usr\/share\/common-licenses\/([A-Za-z]+-[\d.]*\d)/g)].map(
      ([, found = ""]) => found,
    );
    const licences = [...new Set(names)].sort().map((found) => `=== ${found} ===\n\n${this.common(found)}`);
    return [text, ...licences].join("\n\n");
  }

  /** Returns a licence of Debian's collection, such as `MPL-2.0`. */
  common(name: string): string {
    return this.#read("base-files", `usr/share/common-licenses/${name}`);
  }

  #read(name: string, path: string): string {
    const directory = join(this.#directory, name);
    if (!existsSync(directory)) unpackDebian(name, "amd64", directory);
    return readFileSync(join(directory, path), "utf8").trim();
  }
}

function debianComponent(name: string, architecture: Architecture, texts: DebianTexts): Component {
  const entry = pinned.debian.packages.find((each) => each.name === name && each.architecture === architecture);
  const license = LICENSES[name];
  if (entry === undefined || license === undefined)
    throw new Error(`scripts/release has no version or licence of Debian package ${name} for ${architecture}`);
  const { version, source } = entry;
  const place = `arch=${architecture}&distro=debian-${pinned.debian.suite}`;
  return {
    ...{ type: "library", name, version, license },
    purl: `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?${place}`,
    text: texts.copyright(name),
    source: `https://snapshot.debian.org/package/${source}/${version}/`,
  };
}

const RULE = "=".repeat(80);

/** The line of a component above its licence text. */
export function headingOf({ name, version, license }: Pick<Component, "name" | "version" | "license">): string {
  return [name, version, `(${license})`].filter(Boolean).join(" ");
}

/** Returns THIRD_PARTY_LICENSES: each licence text once, under the components that it covers. */
export function writeNotices(components: readonly Component[]): Buffer {
  const groups = new Map<string, Set<string>>();
  for (const component of components) {
    const { text, source } = component;
    if (text === undefined) continue;
    const lines = groups.get(text) ?? new Set();
    groups.set(text, lines.add(headingOf(component)));
    if (source !== undefined) lines.add(`    source code: ${source}`);
  }
  const sections = [...groups].map(([text, lines]) => `${[RULE, ...lines, RULE].join("\n")}\n\n${text}\n`);
  const title =
    "Berth is licensed under Apache-2.0 (LICENSE). It contains the software below, each under the licence that follows it.\n";
  return Buffer.from([title, ...sections].join("\n"));
}
