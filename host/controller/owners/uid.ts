/**
 * The UID of an object of any kind.
 */
import { z } from "zod";
import { decodeConfig } from "../../config/config-error.ts";

const schema = z.object({ metadata: z.object({ uid: z.string().min(1) }) });

/** Throws ConfigError for what has none. */
export function requireUid(object: unknown, source: string): string {
  return decodeConfig(schema, object, source).metadata.uid;
}
