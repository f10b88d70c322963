/**
 * netavark, the network backend of Podman 5, for the long tests: Debian 12 has neither.
 * Effects: the user's cache.
 */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "./command.mjs";
import { requireRust } from "./embeddings/rust.mjs";
import { NETAVARK_VERSION, netavarkDir } from "./paths.mjs";

/** From its crate, with the versions of its own lock file. */
export function netavarkStep() {
  return {
    name: `netavark ${NETAVARK_VERSION} (minutes, the first time)`,
    isCurrent: () => existsSync(join(netavarkDir(), "bin", "netavark")),
    run: () => {
      const { cargo, env } = requireRust();
      const target = mkdtempSync(join(tmpdir(), "netavark-"));
      const args = ["install", "--quiet", "--locked", "--root", netavarkDir(), "--target-dir", target];
      try {
        run(cargo, [...args, "--version", NETAVARK_VERSION, "netavark"], { env });
      } finally {
        rmSync(target, { recursive: true });
      }
    },
  };
}
