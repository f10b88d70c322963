/** The supported versions of the CNI protocol. */
import { describeValue } from "../lib/describe.ts";
import { CniError, ErrorCode } from "./error.ts";

/** Oldest first; the shim answers VERSION with the same list. */
export const SUPPORTED_VERSIONS = ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"] as const;

export const LATEST_VERSION = "1.1.0" satisfies CniVersion;

export type CniVersion = (typeof SUPPORTED_VERSIONS)[number];

/**
 * Decodes the `cniVersion` of a configuration; a missing one means 0.1.0 (CNI 1.1 §"Network configuration format").
 * `where` names its place in the error. Throws {@link CniError} code 1 if it is not supported, code 6 if it is not
 * text.
 */
export function decodeCniVersion(value: unknown, where = "cniVersion"): CniVersion {
  const version = value === undefined || value === null || value === "" ? "0.1.0" : value;
  if (typeof version !== "string") {
    throw new CniError(ErrorCode.DecodeFailure, `Field "${where}" is not text; expected a version such as "1.0.0"`);
  }
  const known = SUPPORTED_VERSIONS.find((supported) => supported === version);
  if (known !== undefined) return known;
  const origin = version === value ? "" : ', which a missing "cniVersion" stands for,';
  const place = where === "cniVersion" ? "" : ` in "${where}"`;
  throw new CniError(
    ErrorCode.IncompatibleVersion,
    `CNI version ${describeValue(version)}${origin}${place} is not supported; supported are ${SUPPORTED_VERSIONS.join(", ")}`,
  );
}
