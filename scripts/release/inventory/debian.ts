/** The parts of Debian packages in a release, and texts that only Debian has. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import pinned from "../sources.json" with { type: "json" };
import { type Architecture, unpackDebian } from "../sources.ts";
import type { Component } from "./component.ts";

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
const COMMON = "usr/share/common-licenses";

/** Debian's texts, from packages that are unpacked for amd64: they are the same for each processor. */
export class DebianTexts {
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
    return this.#read("base-files", `${COMMON}/${name}`);
  }

  #read(name: string, path: string): string {
    const directory = join(this.#directory, name);
    if (!existsSync(directory)) unpackDebian(name, "amd64", directory);
    return readFileSync(join(directory, path), "utf8").trim();
  }
}

export function debianComponent(name: string, architecture: Architecture, texts: DebianTexts): Component {
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

/** Returns the parts that the compiler links into the static shim; `version` is the compiler's. */
export function compilerRuntime(version: string, texts: DebianTexts): Component {
  return {
    ...{ type: "library", name: "libgcc", version, license: GCC_RUNTIME },
    text: texts.copyright("libgcc-s1"),
    source: `https://gcc.gnu.org/gcc-${version.split(".")[0]}/`,
  };
}
