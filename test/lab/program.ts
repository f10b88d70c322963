/** Programs of the product as Node.js gets them: of the build, or of the source with a fault switched on. */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "../../scripts/setup/paths.mjs";

export interface ProgramOptions {
  /** The folder of the build. Default: dist. */
  readonly dist?: string | undefined;
  /** A name in simulation/faults/faults.ts: the program runs from its source, with that fault. */
  readonly fault?: string | undefined;
}

const SWITCH = pathToFileURL(join(import.meta.dirname, "switch-fault.ts")).href;

/** Returns words of a command line, from options of Node.js to the program's file. */
export function programWords(name: "berth-agent" | "berth-controller", { dist, fault }: ProgramOptions): string[] {
  if (fault === undefined) return [join(dist ?? join(root, "dist"), `${name}.mjs`)];
  return ["--import", `${SWITCH}?fault=${encodeURIComponent(fault)}`, join(root, "host", "bin", `${name}.ts`)];
}
