/**
 * Podman 5 and its network backend netavark, for the long tests: Debian 12 has neither. A cold build costs a quarter of
 * an hour of one processor.
 * Effects: the user's cache, Debian packages (as root).
 */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "./command.mjs";
import { debianStep } from "./debian.mjs";
import { requireRust } from "./embeddings/rust.mjs";
import { goStep } from "./go.mjs";
import { NETAVARK_VERSION, netavarkDir } from "./paths.mjs";

export function podmanSteps() {
  return [debianStep("podman"), podmanStep(), netavarkStep()];
}

/** With the C library, which its database needs; without optional libraries of Debian. */
function podmanStep() {
  const tags = ["containers_image_openpgp", "exclude_graphdriver_btrfs", "btrfs_noversion"];
  return goStep({
    tool: "podman",
    title: "Podman (minutes, the first time)",
    flags: ["-gcflags=all=-dwarf=false", "-tags", tags.join(",")],
    env: { CGO_ENABLED: "1" },
  });
}

/** From its crate, with the versions of its own lock file. */
function netavarkStep() {
  const program = join(netavarkDir(), "bin", "netavark");
  return {
    name: `netavark (minutes, the first time) ${NETAVARK_VERSION}`,
    isCurrent: () => existsSync(program),
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
