/**
 * Returns memory to the kernel that V8 and the C library keep although nothing is in it: a third of the process after a thousand pools were decoded, or
 * after V8 has compiled what is called often.
 */

/** How often the agent looks whether it has memory to return: milliseconds. */
export const TRIM_INTERVAL_MS = 1_000;

/** The same in a storm. */
export const STORM_INTERVAL_MS = 100;

/** After so many calls of plugins the C library returns its free memory, which takes it a millisecond. */
export const CALLS_PER_TRIM = 500;

/** After so many calls the C library returns its free memory, too, once no plugin calls any more. */
export const CALLS_PER_QUIET_TRIM = 50;

/** V8 collects all garbage once no plugin has called for so many looks, because the event loop stands still meanwhile, for up to 0.1 s. */
const QUIET_LOOKS = 2;

/**
 * Until so many calls have come since the start, collecting all garbage costs little. Later it discards optimised code, for between two calls nothing
 * refers to the functions and shapes of objects that the code was compiled for: an ADD of the coordinator takes a tenth longer, for some hundreds of
 * ADDs.
 */
export const COLD_CALLS = 200;

/**
 * Between two collections of all garbage lie so many calls, once COLD_CALLS have come. When they have come and plugins still call, there is a storm, until
 * plugins pause.
 */
export const CALLS_PER_COLLECTION = 5_000;

/** After so many looks without a call all garbage is collected, however few calls have come since the last time. */
export const IDLE_LOOKS = 600;

/** By how much V8's heap must have grown since the last collection, but for a storm: bytes. */
const GROWTH_BYTES = 6 * 1024 * 1024;

/** Memory is saved in a storm unless V8's heap has more than this: bytes. To look for garbage in a larger one costs more than it returns. */
export const MAX_SAVING_HEAP_BYTES = 48 * 1024 * 1024;

/** The next collection is so many times as far away as the last one was long. */
const REST_FACTOR = 100;

interface TrimOptions {
  /** The calls of plugins: those that have come so far, and those that are not answered. */
  readonly calls: { readonly begun: number; readonly underWay: number };
  /** Collects all garbage: of the main thread before it returns, of the registry's thread soon after. */
  readonly collect: () => void;
  /** Makes the C library return its free memory. */
  readonly trim: () => void;
  /** Makes V8 keep its heaps small for some processor time, or ends that. */
  readonly save: (isOn: boolean) => void;
  /** Returns what V8 has of the kernel's memory: bytes. Without a system call, which a process without a free descriptor could not make. */
  readonly heapBytes: () => number;
}

interface Trimming {
  close(): void;
}

export function startTrimming({ calls, collect, trim, save, heapBytes }: TrimOptions): Trimming {
  let [begunAtLook, begunAtTrim, quietLooks, isStorm] = [calls.begun, calls.begun, 0, false];
  let [bytesAtRest, dueMs, begunAtCollection] = [0, 0, 0];
  const haveManyCome = (): boolean => calls.begun - begunAtCollection >= CALLS_PER_COLLECTION;
  const collectIfDue = (isAfterStorm: boolean): boolean => {
    const startMs = performance.now();
    const isCheap = calls.begun < COLD_CALLS || haveManyCome() || quietLooks >= IDLE_LOOKS;
    const hasGrown = isAfterStorm || heapBytes() - bytesAtRest >= GROWTH_BYTES;
    if (!isCheap || startMs < dueMs || !hasGrown) return false;
    collect();
    begunAtCollection = calls.begun;
    dueMs = performance.now() + (performance.now() - startMs) * REST_FACTOR;
    return true;
  };
  const setStorm = (isOn: boolean): void => {
    isStorm = isOn;
    save(isOn && heapBytes() <= MAX_SAVING_HEAP_BYTES);
  };
  const look = (): void => {
    const isQuiet = calls.underWay === 0 && calls.begun === begunAtLook;
    begunAtLook = calls.begun;
    quietLooks = isQuiet ? quietLooks + 1 : 0;
    const isResting = quietLooks >= QUIET_LOOKS;
    const isAfterStorm = isStorm && isResting;
    if (isAfterStorm) setStorm(false);
    else if (!isStorm && !isQuiet && haveManyCome()) setStorm(true);
    const collected = isResting && collectIfDue(isAfterStorm);
    if (!collected && calls.begun - begunAtTrim < (isResting ? CALLS_PER_QUIET_TRIM : CALLS_PER_TRIM)) return;
    trim();
    begunAtTrim = calls.begun;
    if (collected) bytesAtRest = heapBytes();
  };
  const wait = (): NodeJS.Timeout =>
    setTimeout(
      () => {
        look();
        timer = wait();
      },
      isStorm ? STORM_INTERVAL_MS : TRIM_INTERVAL_MS,
    ).unref();
  let timer = wait();
  return { close: () => clearTimeout(timer) };
}
