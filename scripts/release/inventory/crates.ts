/** The Rust crates inside the Node.js executable, by crates.json, which record-crates.ts writes from their packages. */
import type { Component } from "./component.ts";
import recorded from "./crates.json" with { type: "json" };

export interface CrateRecords {
  readonly crates: Readonly<Record<string, CrateRecord>>;
  /** By package and file; crates share texts. */
  readonly texts: Readonly<Record<string, string>>;
}

interface CrateRecord {
  /** Version of the package that licence and texts are from. */
  readonly version: string;
  /** SPDX expression of the package. */
  readonly license: string;
  /** Hash of the package, as crates.io states it. */
  readonly sha256: string;
  /** Keys of `texts`. */
  readonly texts: readonly string[];
}

/**
 * Paths of sources that panic: Node.js's crates by the first numbers of their versions, those of Rust's standard
 * library by all.
 */
const CRATE = /\/(?:deps\/crates|rustc-[^/\s]+)\/vendor\/([\w-]+?)-v?(\d+(?:[._]\d+)*)\//g;

/** Returns versions by names; only of crates that can panic. */
export function cratesIn(executable: Buffer): Map<string, string> {
  const matches = executable.toString("latin1").matchAll(CRATE);
  return new Map(
    [...matches].map(([, name = "", version = ""]): [string, string] => [name, version.replaceAll("_", ".")]).sort(),
  );
}

/**
 * Returns all recorded crates; a version is as exact as the executable is. Throws for a crate, or a version, that is
 * not recorded.
 */
export function crateComponents(executable: Buffer, within: string): Component[] {
  const found = cratesIn(executable);
  const { crates, texts }: CrateRecords = recorded;
  const unknown = [...found].filter(([name, version]) => !`${crates[name]?.version}.`.startsWith(`${version}.`));
  if (unknown.length > 0) {
    const list = unknown.map((each) => each.join(" ")).join(", ");
    throw new Error(
      `Node.js has libraries without a recorded licence: its executable contains crate ${list}; run: node scripts/release/record-crates.ts`,
    );
  }
  return Object.entries(crates).map(([name, { license, texts: keys }]): Component => {
    const version = found.get(name);
    const text = keys.map((key) => texts[key] ?? "").join("\n\n");
    return { type: "library", name, ...(version && { version }), license, text, within };
  });
}
