/**
 * The allocators of other projects that the benchmark `core` measures: benchmarks/core/peers, whose go.mod fixes
 * their versions.
 * Effects: dist/bench/allocators; Go's own caches.
 */
import { goProgramStep } from "./go.mjs";

export function allocatorsSteps() {
  return [
    goProgramStep({
      name: "allocators of other projects",
      source: "benchmarks/core/peers",
      program: "bench/allocators",
    }),
  ];
}
