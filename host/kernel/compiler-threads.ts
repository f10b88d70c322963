/**
 * The threads in which V8 compiles functions and collects garbage. When the main thread wakes one, the kernel mostly runs it on the same processor and
 * preempts the main thread, in the middle of a call, for one to four milliseconds, although another processor is idle. A thread of SCHED_BATCH (sched(7))
 * does not preempt a running thread when it wakes, and has the same share of the processors.
 */
import { readdirSync, readFileSync } from "node:fs";
import { formatErrno } from "./errno.ts";
import { loadNative, type Native } from "./native.ts";

/** linux/sched.h */
const SCHED_BATCH = 3;

const THREADS = "/proc/self/task";
/** As Node.js calls each of them. */
const COMPILER = "node-V8Worker";

/** Lets the threads of V8, all of which are there from the start of the process, preempt no running thread when they wake. Throws Error if the kernel refuses. */
export function demoteCompilerThreads({ setScheduler }: Pick<Native, "setScheduler"> = loadNative()): void {
  for (const thread of readdirSync(THREADS)) {
    if (readFileSync(`${THREADS}/${thread}/comm`, "utf8").trim() !== COMPILER) continue;
    const outcome = setScheduler(Number(thread), SCHED_BATCH);
    if (outcome < 0) throw new Error(`Cannot set the policy of thread ${thread}: ${formatErrno(-outcome)}`);
  }
}
