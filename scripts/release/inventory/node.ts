/**
 * Node.js and what is inside its executable. A library that is not in the tables of node-libraries.ts stops the
 * release.
 */
import type { Component } from "./component.ts";
import { crateComponents } from "./crates.ts";
import type { DebianTexts } from "./debian.ts";
import { NO_LIBRARY, NODE_LIBRARIES, NOT_IN_EXECUTABLE } from "./node-libraries.ts";

interface NodeOptions {
  readonly version: string;
  /** `process.versions` of that Node.js. */
  readonly versions: Readonly<Record<string, string | undefined>>;
  readonly executable: Buffer;
  /** Its LICENSE. */
  readonly license: string;
  readonly texts: DebianTexts;
}

const NAME = "Node.js";
const SECTION = /^- ([^\n]+), located at [^\n]+ is licensed as follows:\n {2}"""\n(.*?)^ {2}"""$/gms;
const RUST = /rustc version (\d+\.\d+\.\d+)/;

export function nodeComponents({ version, versions, executable, license, texts }: NodeOptions): Component[] {
  if (versions.node !== version)
    throw new Error(`A release with Node.js ${version} is built with it, not ${versions.node}`);
  const sections = readSections(license);
  requireKnown("process.versions names", Object.keys(versions), [
    ...Object.values(NODE_LIBRARIES).flatMap(({ versionKey }) => versionKey ?? []),
    ...NO_LIBRARY,
  ]);
  requireKnown("its LICENSE names", [...sections.keys()], [...Object.keys(NODE_LIBRARIES), ...NOT_IN_EXECUTABLE]);

  const own = license.slice(0, license.indexOf("The externally maintained libraries")).trim();
  const node: Component = {
    ...{ type: "application", name: NAME, version, license: "MIT" },
    ...{ purl: `pkg:github/nodejs/node@v${version}`, text: own },
  };
  const libraries = Object.entries(NODE_LIBRARIES)
    .filter(([, { versionKey }]) => versionKey === undefined || versions[versionKey])
    .map(([name, { license: spdx, versionKey, textOf }]): Component => {
      const found = versionKey === undefined ? undefined : versions[versionKey];
      const text = textOf === undefined ? (sections.get(name) ?? "") : texts.copyright(textOf);
      return { type: "library", name, ...(found && { version: found }), license: spdx, text, within: NAME };
    });
  const rust = RUST.exec(executable.toString("latin1"))?.[1] ?? "";
  const std: Component = {
    ...{ type: "library", name: "Rust standard library", version: rust, license: "MIT OR Apache-2.0" },
    ...{ text: texts.common("Apache-2.0"), within: NAME },
  };
  return [node, ...libraries, ...crateComponents(executable, NAME), std];
}

/** Returns the sections of LICENSE by the libraries' names. */
function readSections(license: string): Map<string, string> {
  return new Map(
    [...license.matchAll(SECTION)].map(([, name = "", text = ""]) => [name, text.replaceAll(/^ {4}/gm, "").trim()]),
  );
}

function requireKnown(where: string, names: readonly string[], known: readonly string[]): void {
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length === 0) return;
  throw new Error(
    `Node.js has libraries without a recorded licence: ${where} ${unknown.join(", ")}; add them to node-libraries.ts`,
  );
}
