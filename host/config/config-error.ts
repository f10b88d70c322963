/**
 * The one error of bad configuration: which source, which field, what was found, what is wanted.
 * Thrown by every decoder of host/config and host/resources.
 * Effects: none.
 */
import type { Mismatch } from "../lib/schema.ts";

/** `mismatches` has all that was found wrong; `path`, `got` and `wanted` are those of the first. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  /** What was read, as a phrase: `annotation "ipam.vendor.io/ippool"`, `file "pools.yaml", document 2`. */
  readonly source: string;
  readonly mismatches: readonly [Mismatch, ...Mismatch[]];

  constructor(source: string, mismatches: readonly [Mismatch, ...Mismatch[]], message?: string) {
    super(message ?? `${source}: ${mismatches.map(formatMismatch).join("; ")}`);
    this.source = source;
    this.mismatches = mismatches;
  }

  get path(): string {
    return this.mismatches[0].path;
  }

  get got(): string {
    return this.mismatches[0].got;
  }

  get wanted(): string {
    return this.mismatches[0].wanted;
  }
}

function formatMismatch({ path, got, wanted }: Mismatch): string {
  return path === "" ? `found ${got}, want ${wanted}` : `field "${path}": found ${got}, want ${wanted}`;
}
