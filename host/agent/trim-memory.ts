/**
 * Returns memory to the kernel that V8 and the C library keep although nothing is in it: a third of the process after a thousand pools were decoded, or
 * after V8 has compiled what is called often.
 */

/** How often the agent looks whether it has memory to return: milliseconds. @limit */
export const TRIM_INTERVAL_MS = 1_000;

/** After so many calls of plugins the C library returns its free memory, which takes it a millisecond. @limit */
export const CALLS_PER_TRIM = 500;

/** After so many calls the C library returns its free memory, too, once no plugin calls any more. @limit */
export const CALLS_PER_QUIET_TRIM = 50;

/** V8 collects all garbage once no plugin has called for so many looks, because the event loop stands still meanwhile, for up to 0.1 s. */
const QUIET_LOOKS = 2;

/**
 * Until so many calls have come since the start, collecting all garbage costs little. Later it discards optimised code, for between two calls nothing
 * refers to the functions and shapes of objects that the code was compiled for: an ADD of the coordinator takes a tenth longer, for some hundreds of
 * ADDs. @limit
 */
export const COLD_CALLS = 200;

/** Between two collections of all garbage lie so many calls, once COLD_CALLS have come. @limit */
export const CALLS_PER_COLLECTION = 5_000;

/** After so many looks without a call all garbage is collected, however few calls have come since the last time. @limit */
export const IDLE_LOOKS = 600;

/** By how much V8's heap must have grown since the last collection: bytes. */
const GROWTH_BYTES = 6 * 1024 * 1024;

/** The next collection is so many times as far away as the last one was long. */
const REST_FACTOR = 100;

interface TrimOptions {
  /** The calls of plugins: those that have come so far, and those that are not answered. */
  readonly calls: { readonly begun: number; readonly underWay: number };
  /** Collects all garbage: of the main thread before it returns, of the registry's thread soon after. */
  readonly collect: () => void;
  /** Makes the C library return its free memory. */
  readonly trim: () => void;
  /** Returns what V8 has of the kernel's memory: bytes. Without a system call, which a process without a free descriptor could not make. */
  readonly heapBytes: () => number;
}

interface Trimming {
  close(): void;
}

export function startTrimming({ calls, collect, trim, heapBytes }: TrimOptions): Trimming {
  let [begunAtLook, begunAtTrim, quietLooks] = [calls.begun, calls.begun, 0];
  let [bytesAtRest, dueMs, begunAtCollection] = [0, 0, 0];
  const look = (): void => {
    const isQuiet = calls.underWay === 0 && calls.begun === begunAtLook;
    begunAtLook = calls.begun;
    quietLooks = isQuiet ? quietLooks + 1 : 0;
    const startMs = performance.now();
    const isCheap =
      calls.begun < COLD_CALLS || calls.begun - begunAtCollection >= CALLS_PER_COLLECTION || quietLooks >= IDLE_LOOKS;
    const isResting = quietLooks >= QUIET_LOOKS;
    const collects = isResting && isCheap && startMs >= dueMs && heapBytes() - bytesAtRest >= GROWTH_BYTES;
    if (!collects && calls.begun - begunAtTrim < (isResting ? CALLS_PER_QUIET_TRIM : CALLS_PER_TRIM)) return;
    if (collects) collect();
    trim();
    begunAtTrim = calls.begun;
    if (!collects) return;
    begunAtCollection = calls.begun;
    bytesAtRest = heapBytes();
    dueMs = performance.now() + (performance.now() - startMs) * REST_FACTOR;
  };
  const timer = setInterval(look, TRIM_INTERVAL_MS).unref();
  return { close: () => clearInterval(timer) };
}
