/**
 * The tarball for hosts: programs that bring their Node.js and use the host's C library, the plugins, and install.sh.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { SHELL_SCRIPTS, SHELLS } from "../../host/cli/shell-scripts.ts";
import { root } from "../setup/paths.mjs";
import { tagOf } from "../setup/version.mjs";
import { type ArchiveEntry, compress, writeTar } from "./archive.ts";
import type { Facts } from "./facts.ts";
import { below, withDirectories } from "./product.ts";
import type { Architecture } from "./sources.ts";

const PROGRAMS = ["berth-agent", "berth-controller", "berthctl", "kubectl-berth"];
const PLUGINS = "bin/";

/**
 * Works through symbolic links. Many hosts lack libatomic; all others that Node.js links come with the distribution.
 */
function launcher(program: string): string {
  return `#!/bin/sh
# Runs ${program} with the Node.js of this release.
lib=$(dirname "$(readlink -f "$0")")/../lib
LD_LIBRARY_PATH=\${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$lib exec "$lib/node" "$lib/${program}.mjs" "$@"
`;
}

/** kubectl calls it to complete `kubectl berth`. */
const COMPLETION = `#!/bin/sh
# kubectl calls this to complete "kubectl berth": it prints what may follow these words.
exec "$(dirname "$(readlink -f "$0")")/kubectl-berth" __complete "$@"
`;

/** Where shells look for them below share. */
const COMPLETIONS = {
  bash: "bash-completion/completions/berthctl",
  zsh: "zsh/site-functions/_berthctl",
  fish: "fish/vendor_completions.d/berthctl.fish",
} as const;

/** The Debian packages with parts in the tarball. */
export const TARBALL_PACKAGES = ["libatomic1"];

interface HostOptions {
  readonly version: string;
  readonly node: Buffer;
  readonly libatomic: Buffer;
  readonly product: readonly ArchiveEntry[];
  /** THIRD_PARTY_LICENSES. */
  readonly notices: Buffer;
}

/** Returns the files around deploy/host/install.sh: bin, lib, share, cni, systemd, examples, VERSION. */
export function hostEntries({ version, node, libatomic, product, notices }: HostOptions): ArchiveEntry[] {
  const plugins = product.filter(({ path }) => path.startsWith(PLUGINS));
  const libraries = product.filter(({ path }) => !path.startsWith(PLUGINS));
  return withDirectories([
    ...PROGRAMS.map((name) => ({ path: `bin/${name}`, mode: 0o755, content: Buffer.from(launcher(name)) })),
    { path: "bin/kubectl_complete-berth", mode: 0o755, content: Buffer.from(COMPLETION) },
    ...plugins.map((entry) => ({ ...entry, path: `cni/${entry.path.slice(PLUGINS.length)}` })),
    ...SHELLS.map((shell) => {
      return { path: `share/${COMPLETIONS[shell]}`, mode: 0o644, content: Buffer.from(SHELL_SCRIPTS[shell]) };
    }),
    { path: "lib/node", mode: 0o755, content: node },
    { path: "lib/libatomic.so.1", mode: 0o644, content: libatomic },
    ...below("lib", libraries),
    ...sourceEntries(join(root, "deploy", "host")),
    { path: "LICENSE", mode: 0o644, content: readFileSync(join(root, "LICENSE")) },
    { path: "VERSION", mode: 0o644, content: Buffer.from(`${version}\n`) },
    { path: "THIRD_PARTY_LICENSES", mode: 0o644, content: notices },
  ]);
}

/** Returns the files below a folder of the repository; scripts are executable. */
function sourceEntries(directory: string): ArchiveEntry[] {
  return readdirSync(directory, { recursive: true, encoding: "utf8" })
    .sort()
    .filter((path) => statSync(join(directory, path)).isFile())
    .map((path) => ({
      path,
      mode: path.endsWith(".sh") ? 0o755 : 0o644,
      content: readFileSync(join(directory, path)),
    }));
}

export async function writeTarball(
  architecture: Architecture,
  entries: readonly ArchiveEntry[],
  facts: Facts,
): Promise<Buffer> {
  const folder = `berth-${tagOf(facts.version)}-linux-${architecture}`;
  return compress(await writeTar(withDirectories(below(folder, entries)), facts.timeSeconds));
}
