/**
 * What a daemon costs besides the executables that call it: CPU time of all its threads, resident memory.
 * Effects: reads /proc.
 */
import { readdirSync, readFileSync } from "node:fs";

/** Milliseconds on a CPU of the threads that live now (proc(5), schedstat: the first number, in nanoseconds). */
export function daemonCpuMs(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  const nanoseconds = threads.map((thread) =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]),
  );
  return nanoseconds.reduce((sum, value) => sum + value, 0) / 1e6;
}

/** VmRSS in MiB. */
export function daemonRssMib(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kib) / 1024;
}
