/** The npm packages in the bundles and in the Wasm core. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Component } from "./component.ts";

/** The file that esbuild writes beside the bundles, as far as it is read here. */
interface Metafile {
  readonly outputs: Readonly<
    Record<string, { readonly inputs: Readonly<Record<string, { readonly bytesInOutput: number }>> }>
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

/** Throws for a package without a licence file. `directory` is the one that `metafile`'s paths start from. */
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
