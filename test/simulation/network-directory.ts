/** The folder of the machines' network definitions, which all processes that simulate share. */
import { hash } from "node:crypto";
import { existsSync, linkSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { errnoOf } from "../../host/lib/describe.ts";
import { root } from "../unit/house/sources.ts";
import { plainConf } from "./machine.ts";

const DEFINITION = JSON.stringify({ cniVersion: "1.1.0", name: "lan", plugins: [plainConf("lan")] });

/**
 * Returns the folder, and makes it if there is none. The file in it is made once and whole, and never written again:
 * the agents watch the folder, so that one process would change the history of another.
 */
export function networkDirectory(): string {
  const cache = join(root, "node_modules", ".cache");
  const directory = join(cache, `simulation-net-${hash("sha256", DEFINITION, "hex").slice(0, 8)}.d`);
  const path = join(directory, "10-lan.conflist");
  if (existsSync(path)) return directory;
  mkdirSync(directory, { recursive: true });
  const temporary = join(cache, `simulation-net-${process.pid}`);
  writeFileSync(temporary, DEFINITION);
  try {
    linkSync(temporary, path);
  } catch (error) {
    if (errnoOf(error) !== "EEXIST") throw error;
  } finally {
    rmSync(temporary);
  }
  return directory;
}
