/**
 * Collects garbage without the option --expose-gc on the command line: V8 keeps its options in the check of every code cache, so with that one Node.js compiles
 * each of its own modules anew instead of taking it from the cache that it comes with.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

type Collect = (options: {
  readonly type: "major";
  readonly flavor: "last-resort";
  readonly execution: "sync";
}) => void;

/**
 * Collects all garbage of this thread, and keeps no free memory in reserve. The event loop stands still meanwhile, for up to 0.1 s. Does nothing if another thread
 * takes the option back just then: it holds for all of them.
 */
export function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  const collect: Collect | undefined = runInNewContext("globalThis.gc");
  setFlagsFromString("--no-expose-gc");
  collect?.({ type: "major", flavor: "last-resort", execution: "sync" });
}
