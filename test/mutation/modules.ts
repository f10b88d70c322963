/** The modules that decide, each group with the tests that execute it (docs/mutation.md). Patterns of files. */
export interface Group {
  readonly modules: readonly string[];
  readonly unit: readonly string[];
  readonly property: readonly string[];
}

/** Selection, picks, plans, decisions about records, detection's verdict, retention, collection; and what is kept along for them, which they believe. */
export const GROUPS: readonly Group[] = [
  {
    modules: [
      "host/ipam/{announced-nics,conflict,filters,leak,owner,pick,plan-operation,plan-prefetch,requested-ips,retention,selection,subnet-capacity,subnet-pools}.ts",
    ],
    unit: [
      "test/unit/ipam/*.test.ts",
      "test/unit/agent/{supply-wait,claim-verified}.test.ts",
      "test/unit/agent/detection/quarantine-prober.test.ts",
      "test/unit/agent/cluster/pool-owners.test.ts",
    ],
    property: ["test/property/agent/claims.test.ts", "test/property/agent/explain.test.ts"],
  },
  {
    modules: ["host/agent/ipam/sources/*.ts"],
    unit: [
      "test/unit/agent/{add,attaching-nics,claim-verified,supply-wait}.test.ts",
      "test/unit/agent/ipam/sources/*.test.ts",
      "test/unit/agent/cluster/claims.test.ts",
    ],
    property: ["test/property/agent/{claims,kept}.test.ts"],
  },
  {
    modules: ["host/registry/kubernetes/{address-states,decide,known-object}.ts"],
    unit: ["test/unit/registry/kubernetes/{address-states,decide,known-object,sharing}.test.ts"],
    property: ["test/property/registry/interleavings.test.ts"],
  },
  {
    modules: [
      "host/agent/cluster/adoption/plan-adoption.ts",
      "host/agent/diagnostics/find-damage.ts",
      "host/agent/embedded/recovery/plan-recovery.ts",
      "host/agent/gc/plan-reconciliation.ts",
      "host/cli/check/plan-release.ts",
      "host/controller/finalizers/plan-finalizers.ts",
      "host/controller/gc/plan-collection.ts",
      "host/kubernetes/lease/plan-lease.ts",
    ],
    unit: [
      "test/unit/agent/cluster/adoption/plan-adoption.test.ts",
      "test/unit/agent/diagnostics/find-damage.test.ts",
      "test/unit/agent/embedded/plan-recovery.test.ts",
      "test/unit/agent/gc/plan-reconciliation.test.ts",
      "test/unit/cli/check/report.test.ts",
      "test/unit/controller/finalizers/plan-finalizers.test.ts",
      "test/unit/controller/gc/*.test.ts",
      "test/unit/kubernetes/lease/plan-lease.test.ts",
    ],
    property: ["test/property/controller/garbage-walk.test.ts", "test/property/kubernetes/election.test.ts"],
  },
  {
    modules: ["host/controller/{conditions,networks,owners}/plan-*.ts"],
    unit: ["test/unit/controller/{conditions,owners}/*.test.ts", "test/unit/controller/networks/plan-status.test.ts"],
    property: ["test/property/controller/overlap.test.ts"],
  },
  {
    modules: ["host/controller/usage/plan-*.ts"],
    unit: ["test/unit/controller/usage/*.test.ts"],
    property: ["test/property/controller/usage.test.ts"],
  },
  {
    modules: ["host/controller/subnets/plan/*.ts"],
    unit: ["test/unit/controller/subnets/{capacity,free-spans,plan-ends,plan-subnets,plan-surplus,split-view}.test.ts"],
    property: ["test/property/controller/subnets-walk.test.ts"],
  },
  {
    modules: ["host/controller/{pool-writes,subnets/own-writes,subnets/write-turns}.ts"],
    unit: ["test/unit/controller/pool-writes.test.ts", "test/unit/controller/subnets/{own-writes,write-turns}.test.ts"],
    property: ["test/property/controller/subnets-walk.test.ts"],
  },
  {
    modules: ["host/controller/subnets/parts-at-rest.ts"],
    unit: ["test/unit/controller/subnets/parts-at-rest.test.ts"],
    property: ["test/property/controller/parts-at-rest.test.ts"],
  },
  {
    modules: [
      "host/agent/detection/answered-attachments.ts",
      "host/agent/gc/notice-term.ts",
      "host/controller/gc/addresses-elsewhere.ts",
      "host/controller/notices/plan-notices.ts",
      "host/controller/subnets/stray-addresses.ts",
      "host/lib/sorted-map.ts",
      "host/net/prefix-table.ts",
      "host/resources/{allocation-notice,checked-pools}.ts",
    ],
    unit: [
      "test/unit/agent/answered-attachments.test.ts",
      "test/unit/agent/gc/notice-term.test.ts",
      "test/unit/controller/gc/addresses-elsewhere.test.ts",
      "test/unit/controller/notices/plan-notices.test.ts",
      "test/unit/controller/subnets/stray-addresses.test.ts",
      "test/unit/lib/sorted-map.test.ts",
      "test/unit/net/prefix-table.test.ts",
      "test/unit/resources/{allocation-notice,checked-pools}.test.ts",
    ],
    property: ["test/property/agent/changing-pools.test.ts", "test/property/resources/prefix-table.test.ts"],
  },
  {
    modules: ["host/coordinator/plan/*.ts", "host/coordinator/{plan-check,probe}.ts"],
    unit: ["test/unit/coordinator/*.test.ts"],
    property: ["test/property/coordinator/plan.test.ts"],
  },
  {
    modules: ["host/ifacer/plan-*.ts"],
    unit: ["test/unit/ifacer/*.test.ts"],
    property: ["test/property/ifacer/plan-devices.test.ts"],
  },
];
