/** All benchmarks; each has a section of its name in README.md. */
import { clusterBench } from "./cluster/cluster.ts";
import { coordinatorBench } from "./coordinator/coordinator.ts";
import { coreBench } from "./core/core.ts";
import { growthBench } from "./growth/growth.ts";
import type { Bench } from "./harness/report.ts";
import { ipamBench } from "./ipam/ipam.ts";
import { nodeBench } from "./node/node.ts";
import { peersBench } from "./peers/peers.ts";

export const benches: readonly Bench[] = [
  nodeBench,
  ipamBench,
  clusterBench,
  coordinatorBench,
  coreBench,
  peersBench,
  growthBench,
];
