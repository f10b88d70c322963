/** A part of the chart's values. */
import * as z from "zod";

/** A strict object all of whose fields have defaults. */
export function section<T extends z.ZodRawShape>(shape: T) {
  return z.strictObject(shape).prefault({} as never);
}
