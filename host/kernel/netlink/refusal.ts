/**
 * Refusals that are answers: the object is absent, or is there already.
 * Called by the requests of the message families. Effects: those of `ask`.
 */
import { NetlinkError } from "./error.ts";

/** What `ask` returns, or undefined when the kernel refuses with one of the error numbers. Other errors are thrown. */
export function unlessRefused<T>(errnos: readonly number[], ask: () => T): T | undefined {
  try {
    return ask();
  } catch (error) {
    if (error instanceof NetlinkError && errnos.includes(error.errno)) return undefined;
    throw error;
  }
}
