/** Shim and addon for one processor, compiled in a temporary folder by native/build.sh. */
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { root } from "../setup/paths.mjs";
import type { NativeParts } from "./product.ts";
import { type Architecture, unpackDebian } from "./sources.ts";

export const TRIPLES: Readonly<Record<Architecture, string>> = {
  amd64: "x86_64-linux-gnu",
  arm64: "aarch64-linux-gnu",
};

interface NativeOptions {
  readonly architecture: Architecture;
  /** Files of the npm package of Node.js: its headers are used. */
  readonly node: ReadonlyMap<string, Buffer>;
  /** `berth --version` prints both; the build is the commit. */
  readonly version: string;
  readonly build: string;
  readonly directory: string;
}

export function buildNative({ architecture, node, version, build, directory }: NativeOptions): NativeParts {
  const triple = TRIPLES[architecture];
  const headers = join(directory, "headers");
  for (const [path, content] of node) {
    if (!path.startsWith("package/include/node/")) continue;
    const target = join(headers, path.slice("package/include/node/".length));
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, content);
  }
  const env = {
    ...process.env,
    BERTH_OUT: join(directory, "out"),
    BERTH_SHIM_CC: `${triple}-gcc -specs=${writeMuslSpecs(architecture, directory)}`,
    BERTH_ADDON_CC: `${triple}-gcc`,
    BERTH_NODE_HEADERS: headers,
    BERTH_VERSION: version,
    BERTH_BUILD: build,
  };
  for (const part of ["shim", "addon"]) execFileSync("sh", [join(root, "native", "build.sh"), part], { env });
  return readNative(join(directory, "out"));
}

/** Returns the results of native/build.sh in `directory`. */
export function readNative(directory: string): NativeParts {
  const bin = join(directory, "bin");
  const names = readdirSync(bin).sort();
  return {
    plugins: new Map(names.map((name) => [name, readFileSync(join(bin, name))])),
    addon: readFileSync(join(directory, "native", "berth.node")),
  };
}

/** The package's own specs with the paths of the unpacked package: musl-gcc for any processor. */
function writeMuslSpecs(architecture: Architecture, directory: string): string {
  const musl = join(directory, "musl");
  unpackDebian("musl-dev", architecture, musl);
  const folder = TRIPLES[architecture].replace("-gnu", "-musl");
  const specs = readFileSync(join(musl, "usr", "lib", folder, "musl-gcc.specs"), "utf8");
  const path = join(directory, "musl-gcc.specs");
  writeFileSync(path, specs.replaceAll(/\/usr\/(?=include|lib)/g, `${musl}/usr/`));
  return path;
}
