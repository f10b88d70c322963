/** The tarball for hosts: programs that bring their Node.js and use the host's C library. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../setup/paths.mjs";
import { type ArchiveEntry, compress, writeTar } from "./archive.ts";
import type { Facts } from "./facts.ts";
import { below, withDirectories } from "./product.ts";
import type { Architecture } from "./sources.ts";

const PROGRAMS = ["berth-agent", "berth-controller", "berthctl"];

/** Many hosts lack libatomic; all others that Node.js links come with the distribution. */
function launcher(program: string): string {
  return `#!/bin/sh
# Runs ${program} with the Node.js beside it.
lib=$(dirname "$(readlink -f "$0")")/../lib/berth
LD_LIBRARY_PATH=\${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$lib/lib exec "$lib/node" "$lib/${program}.mjs" "$@"
`;
}

interface TarballOptions {
  readonly architecture: Architecture;
  readonly node: Buffer;
  readonly libatomic: Buffer;
  readonly product: readonly ArchiveEntry[];
}

export async function writeTarball(options: TarballOptions, facts: Facts): Promise<Buffer> {
  const { architecture, node, libatomic, product } = options;
  const entries = [
    ...PROGRAMS.map((name) => ({ path: `bin/${name}`, mode: 0o755, content: Buffer.from(launcher(name)) })),
    { path: "lib/berth/node", mode: 0o755, content: node },
    { path: "lib/berth/lib/libatomic.so.1", mode: 0o644, content: libatomic },
    ...below("lib/berth", product),
    { path: "LICENSE", mode: 0o644, content: readFileSync(join(root, "LICENSE")) },
  ];
  const folder = `berth-${facts.version}-linux-${architecture}`;
  return compress(await writeTar(withDirectories(below(folder, entries)), facts.timeSeconds));
}
