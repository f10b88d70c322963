/** Processor time of this thread, which other programs on the machine change less than the clock. */

function cpuTime(): number {
  const { user, system } = process.threadCpuUsage();
  return user + system;
}

/** Kernels may count in ticks: microseconds. Shorter times cannot be compared. */
const TICK_US = 4_000;

/** Returns how many times as long `large` takes as `small`: in turns, and the shortest time of each counts. */
export function costRatio(small: () => void, large: () => void, turns = 4): number {
  const take = (work: () => void): number => {
    const began = cpuTime();
    work();
    return cpuTime() - began;
  };
  const times = Array.from({ length: turns }, () => [take(small), take(large)] as const);
  const best = (index: 0 | 1): number => Math.min(...times.map((turn) => turn[index]));
  return best(1) / Math.max(TICK_US, best(0));
}
