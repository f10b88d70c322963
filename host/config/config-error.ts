/** The error of invalid configuration, by all decoders of config and resources: source, field, found, wanted. */
import type { z } from "zod";
import { JsonError, parseJson } from "../lib/json.ts";
import { decode, formatMismatches, type Mismatches } from "../lib/schema.ts";

/** `mismatches` lists everything that is wrong; `path`, `got` and `wanted` are those of the first. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  /** The decoded source, as a phrase: `annotation "ipam.vendor.io/ippool"`, `file "pools.yaml", document 2`. */
  readonly source: string;
  readonly mismatches: Mismatches;

  constructor(source: string, mismatches: Mismatches, message = formatMismatches(mismatches)) {
    super(`${source}: ${message}`);
    this.source = source;
    this.mismatches = mismatches;
  }

  /** Returns the same error with another source. */
  at(source: string): ConfigError {
    return new ConfigError(source, this.mismatches, this.message.slice(this.source.length + 2));
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

export const isConfigError = (error: unknown): error is ConfigError => error instanceof ConfigError;

/** Decodes a value; `source` names it in the error. Throws {@link ConfigError}. */
export function decodeConfig<S extends z.ZodType>(schema: S, value: unknown, source: string): z.output<S> {
  const decoded = decode(schema, value);
  if (decoded.ok) return decoded.value;
  throw new ConfigError(source, decoded.mismatches);
}

/** Like {@link decodeConfig}, for JSON text. The error has line and column of malformed JSON. */
export function decodeJsonConfig<S extends z.ZodType>(
  schema: S,
  text: string,
  source: string,
  parse = parseJson,
): z.output<S> {
  try {
    return decodeConfig(schema, parse(text), source);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    const { found, wanted } = error;
    throw new ConfigError(source, [{ path: "", got: found, wanted }], error.message);
  }
}
