/**
 * The version-free result to and from the JSON of each CNI version.
 * Called where a result is printed and where prevResult is read.
 * Effects: none.
 */
import type { CniResult } from "./result.ts";
import type { CniVersion } from "./version.ts";

/** The JSON value of the result in that version; empty lists are left out. */
export function formatResult(_result: CniResult, _version: CniVersion): Record<string, unknown> {
  throw new Error("formatResult is under construction");
}

/** Throws {@link CniError} code 7 naming the field when the value is no result. */
export function decodeResult(_value: unknown, _version: CniVersion): CniResult {
  throw new Error("decodeResult is under construction");
}
