import { isConfigError } from "../config/config-error.ts";
import { insteadOf } from "../lib/try-or.ts";

/** Returns undefined for an object that cannot be decoded: `decode` throws ConfigError. */
export function ifDecodable<T>(decode: () => T): T | undefined {
  return insteadOf(isConfigError, undefined, decode);
}
