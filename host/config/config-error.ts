/**
 * The one error of bad configuration: which source, which field, what was found, what is wanted.
 * Thrown by every decoder of host/config and host/resources.
 */
import type { z } from "zod";
import { JsonError, parseJson } from "../lib/json.ts";
import { decode, formatMismatches, type Mismatches } from "../lib/schema.ts";

/** `mismatches` has all that was found wrong; `path`, `got` and `wanted` are those of the first. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  /** What was read, as a phrase: `annotation "ipam.vendor.io/ippool"`, `file "pools.yaml", document 2`. */
  readonly source: string;
  readonly mismatches: Mismatches;

  constructor(source: string, mismatches: Mismatches, message = formatMismatches(mismatches)) {
    super(`${source}: ${message}`);
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

/** The value as the schema describes it. Throws {@link ConfigError}. */
export function decodeConfig<S extends z.ZodType>(schema: S, value: unknown, source: string): z.output<S> {
  const decoded = decode(schema, value);
  if (decoded.ok) return decoded.value;
  throw new ConfigError(source, decoded.mismatches);
}

/** Like {@link decodeConfig} for JSON text, whose malformations are reported with their place. */
export function decodeJsonConfig<S extends z.ZodType>(schema: S, text: string, source: string): z.output<S> {
  try {
    return decodeConfig(schema, parseJson(text), source);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    const { found, wanted } = error;
    throw new ConfigError(source, [{ path: "", got: found, wanted }], error.message);
  }
}
