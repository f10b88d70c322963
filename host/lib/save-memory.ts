/** Lets V8 trade processor time for memory while it runs, for all threads. */
import { setFlagsFromString } from "node:v8";

/** V8 lets a heap grow by 12 MB before it looks for garbage in all of it; this is the share of that, in percent, while memory is saved. */
const GROWTH_PERCENT = 10;

/**
 * While it is on, V8 looks for garbage sooner, and returns the free parts of each page to the kernel. Off means the same as never having been on: a check of V8's
 * options decides whether compiled code that an earlier run has kept is used.
 */
export function saveMemory(isOn: boolean): void {
  setFlagsFromString(isOn ? "--optimize-for-size" : "--no-optimize-for-size");
  setFlagsFromString(`--incremental-marking-hard-trigger=${isOn ? GROWTH_PERCENT : 0}`);
}
