import { COMMON_METRICS } from "./common-metrics.ts";
import { counter, gauge, type OpenedMetrics } from "./metric.ts";
import { POOL_METRICS } from "./pool-metrics.ts";
import { SUBNET_METRICS } from "./subnet-metrics.ts";

export const CONTROLLER_METRICS = {
  ...COMMON_METRICS,
  leader: gauge("berth_controller_leader", "Whether this replica leads: 1 or 0."),
  problems: gauge(
    "berth_controller_problems",
    "Problems that `GET /v1/status` lists; `process`: of the replica itself.",
    ["part"],
  ),
  epochWaitingNodes: gauge(
    "berth_registry_epoch_waiting_nodes",
    "Nodes for which the open epoch of the registry waits.",
  ),
  ...POOL_METRICS,
  ...SUBNET_METRICS,
  reservations: gauge(
    "berth_reservations",
    "ReservedIPs by what became of them: `kept`, `taken` by another, `unavailable` in all pools, `expired`.",
    ["state"],
  ),
  gcCandidates: gauge("berth_gc_candidates", "Allocations that were found without a pod, node or owner once."),
  gcActions: counter("berth_gc_actions_total", "Actions of the controller on allocations that no agent releases.", [
    "action",
  ]),
} as const;

export type ControllerMetrics = OpenedMetrics<typeof CONTROLLER_METRICS>;
