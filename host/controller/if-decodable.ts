import { ConfigError } from "../config/config-error.ts";

/** Returns undefined for an object that cannot be decoded: `decode` throws ConfigError. */
export function ifDecodable<T>(decode: () => T): T | undefined {
  try {
    return decode();
  } catch (error) {
    if (error instanceof ConfigError) return undefined;
    throw error;
  }
}
