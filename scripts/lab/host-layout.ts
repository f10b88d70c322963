/**
 * The files of a release tarball in a folder, from what is in dist: for tests of install.sh.
 * Effects: files below `directory`.
 */
import { chmod, copyFile, cp, mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { VERSION } from "../../host/bin/version.ts";
import { root } from "../setup/paths.mjs";

const PROGRAMS = ["berth-agent", "berth-controller", "berthctl"];

/** Returns the path of its install.sh. */
export async function assembleHostLayout(directory: string): Promise<string> {
  const dist = join(root, "dist");
  for (const folder of ["bin", "lib"]) await mkdir(join(directory, folder), { recursive: true });
  for (const name of await readdir(dist))
    if (name.endsWith(".mjs")) await copyFile(join(dist, name), join(directory, "lib", name));
  for (const folder of ["core", "native"])
    await cp(join(dist, folder), join(directory, "lib", folder), { recursive: true });
  await copyFile(process.execPath, join(directory, "lib", "node"));
  for (const name of PROGRAMS) {
    const script = `#!/bin/sh\nlib=$(dirname "$(readlink -f "$0")")/../lib\nexec "$lib/node" "$lib/${name}.mjs" "$@"\n`;
    await writeFile(join(directory, "bin", name), script, { mode: 0o755 });
  }
  await cp(join(dist, "bin"), join(directory, "cni"), { recursive: true });
  await cp(join(root, "deploy", "host"), directory, { recursive: true });
  await writeFile(join(directory, "VERSION"), `${VERSION}\n`);
  const script = join(directory, "install.sh");
  await chmod(script, 0o755);
  return script;
}
