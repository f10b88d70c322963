/** A fault that is put into the product: small edits of its source text, made while it is loaded. The product has no switches. */
import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "../../unit/house/sources.ts";
import type { ProfileName } from "../profiles.ts";

export interface Edit {
  /** Relative to the project's root. */
  readonly file: string;
  /** Occurs exactly once in the file. */
  readonly text: string;
  readonly replacement: string;
}

export interface Fault {
  readonly name: string;
  /** The rule of docs/allocation.md that no longer holds, or the review's finding that comes back. */
  readonly breaks: string;
  readonly profile: ProfileName;
  /** Part of the violation that the fault leads to; others do not count. Absent: any. */
  readonly violation?: string;
  /** Multiplies the shares of the network's and the runtimes' faults; absent: 1. */
  readonly faults?: number;
  /** Steps of each run before all faults of the cluster end; absent: 5,000. */
  readonly steps?: number;
  /** Within how many steps of consecutive seeds the simulation has to notice. */
  readonly limit: number;
  readonly edits: readonly Edit[];
}

/** A fault that the simulation cannot notice, and a test of another level does. */
export interface TestedFault extends Pick<Fault, "name" | "breaks" | "edits"> {
  readonly test: readonly [project: string, files: string];
}

/** Throws unless the edit's text occurs exactly once. */
export function applyEdit(source: string, { file, text, replacement }: Edit): string {
  const count = source.split(text).length - 1;
  if (count === 1) return source.replace(text, () => replacement);
  throw new Error(
    `${file} has ${count} times, not once, the text that a fault of test/simulation/faults/faults.ts replaces:\n${text}`,
  );
}

/** Modules that are loaded from now on have the fault. */
export function putIn({ edits }: Fault): void {
  const byUrl = Map.groupBy(edits, ({ file }) => pathToFileURL(join(root, file)).href);
  for (const { file, ...edit } of edits) applyEdit(readFileSync(join(root, file), "utf8"), { file, ...edit });
  registerHooks({
    load: (url, context, nextLoad) => {
      const loaded = nextLoad(url, context);
      const wanted = byUrl.get(url);
      if (wanted === undefined) return loaded;
      return { ...loaded, source: wanted.reduce(applyEdit, String(Buffer.from(loaded.source as Uint8Array))) };
    },
  });
}
