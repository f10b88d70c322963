/** The controller's metrics. */
import { COMMON_METRICS } from "./common-metrics.ts";
import { counter, gauge, type OpenedMetrics } from "./metric.ts";
import { POOL_METRICS } from "./pool-metrics.ts";
import { RANGE_METRICS } from "./range-metrics.ts";
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
  ...RANGE_METRICS,
  gcCandidates: gauge("berth_gc_candidates", "Allocations that were found without a pod, node or owner once."),
  gcActions: counter("berth_gc_actions_total", "What the controller did with allocations that no agent releases.", [
    "action",
  ]),
  recordEntries: gauge(
    "berth_records_entries",
    "Addresses of pods by how the IPAM of record has them; `foreign`: there is an entry of others.",
    ["state"],
  ),
  recordSuccess: gauge(
    "berth_records_last_success_timestamp_seconds",
    "When the IPAM of record last had all that it should have, but for findings.",
  ),
  recordRequests: counter("berth_records_requests_total", "Requests to the IPAM of record."),
  recordChanges: counter("berth_records_changes_total", "Entries that were created, updated and deleted.", ["action"]),
  recordDrift: counter("berth_records_drift_total", "Own entries that others have changed, deleted or put back."),
} as const;

export type ControllerMetrics = OpenedMetrics<typeof CONTROLLER_METRICS>;
