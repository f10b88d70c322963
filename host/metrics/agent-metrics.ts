import { COMMON_METRICS } from "./common-metrics.ts";
import { counter, gauge, histogram, type MetricSet, type OpenedMetrics } from "./metric.ts";
import { POOL_METRICS } from "./pool-metrics.ts";

/** Upper bounds of calls' durations: seconds, from an answer out of memory to the longest ADD of a runtime. */
const CALL_BUCKETS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20] as const;

export const AGENT_METRICS = {
  ...COMMON_METRICS,
  ready: gauge("berth_agent_ready", "Whether the agent serves ADDs: 1 or 0."),
  problems: gauge("berth_agent_problems", "Problems that `berthctl check` lists."),
  cniRequests: counter(
    "berth_cni_requests_total",
    "Calls of CNI plugins: `0` for success, a code of docs/errors.md, `undelivered` if the runtime hung up.",
    ["plugin", "command", "code"],
  ),
  cniDuration: histogram("berth_cni_request_duration_seconds", "Time from a CNI call's arrival to its answer.", {
    buckets: CALL_BUCKETS_S,
    labels: ["plugin", "command"],
  }),
  cniInProgress: gauge("berth_cni_requests_in_progress", "Calls of CNI plugins that are not answered yet."),
  claims: counter(
    "berth_claims_total",
    "Claims of addresses: `bound`; `taken` by another pod or node; `cooling`, the pod's own was offered; `failed`, no answer.",
    ["outcome"],
  ),
  claimRetries: counter("berth_claim_retries_total", "Claims after the first one of the same ADD or prefetch."),
  claimDuration: histogram(
    "berth_claim_duration_seconds",
    "Time of one claim, in a cluster with the API server's answer.",
    { buckets: CALL_BUCKETS_S },
  ),
  conflicts: counter(
    "berth_address_conflicts_total",
    "Addresses for which another machine answered: `quarantined`; `proxyArp`, it answers for any address; `superseded`, the pod was gone.",
    ["action"],
  ),
  nodeAddresses: gauge(
    "berth_node_addresses",
    "Addresses in this node's registry: `bound`, `cooling`, `retained` (Kept), `quarantined`.",
    ["state"],
  ),
  ...POOL_METRICS,
  prefetchNics: counter(
    "berth_prefetch_nics_total",
    "NICs whose addresses were to be claimed before their ADD: `claimed`, `found` (by an earlier agent), `late` (the ADD came first), `withdrawn`, `failed`.",
    ["result"],
  ),
  prefetchAdds: counter("berth_prefetch_adds_total", "First ADDs of NICs that a prefetch could have served."),
  prefetchHits: counter("berth_prefetch_hits_total", "Of these ADDs: used the prefetched addresses."),
  prefetchWaste: counter(
    "berth_prefetch_waste_total",
    "NICs whose prefetched addresses were released unused: `discarded` (did not fit), `returned` (the pod went), `timed_out`.",
    ["reason"],
  ),
  gcCandidates: gauge("berth_gc_candidates", "Addresses whose pod was missed once."),
  gcCollected: counter("berth_gc_collected_total", "Leaked addresses that were released."),
  spoolFiles: gauge("berth_spool_files", "Files in the spool: `waiting` to be replayed, or `rejected` as unreadable.", [
    "state",
  ]),
  journalCalls: gauge("berth_journal_pending_calls", "Calls that wait for the registry's thread."),
  publisherBacklog: gauge(
    "berth_publisher_backlog_addresses",
    "Addresses whose objects are not yet what the journal says.",
  ),
  lostAddresses: gauge("berth_lost_addresses", "Addresses of running pods whose objects other pods have."),
  auditLinesLost: counter("berth_audit_lines_lost_total", "Lines that the audit log lacks: a slow or full disk."),
  mirrorDrifts: counter(
    "berth_node_mirror_drifts_total",
    "How often the mirror of the node's network differed from the kernel's state.",
  ),
  nodeRepairs: counter(
    "berth_node_repairs_total",
    "Parts of the node's network that other software removed or changed and the agent restored: `rule`, `route`, `neighbour`, `nftables`, `sysctl`, `link`.",
    ["what"],
  ),
  cutOff: gauge(
    "berth_node_cut_off",
    "Whether pods may be cut off because what other software removed is not restored yet: 1 or 0.",
  ),
  missingNics: gauge("berth_missing_nics", "NICs of running pods that are gone, as with the node's link under them."),
  socketRestores: counter("berth_socket_restores_total", "How often the agent restored its socket."),
} as const;

export type AgentMetrics = OpenedMetrics<typeof AGENT_METRICS>;

export type AgentMetricSet = MetricSet<typeof AGENT_METRICS>;

export type ClaimMetrics = Pick<AgentMetrics, "claims" | "claimRetries" | "claimDuration">;

export type CoordinatorMetrics = Pick<AgentMetrics, "mirrorDrifts" | "nodeRepairs">;

export type ConflictMetrics = Pick<AgentMetrics, "conflicts">;
