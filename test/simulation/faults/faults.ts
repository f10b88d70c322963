/**
 * The faults that the simulation has to notice, by name. Each gives the product a port, a decision or a limit that
 * breaks its promise: an export of one of its modules is replaced while it is loaded.
 */

import type * as Ipam from "../../../host/agent/cluster/ipam.ts";
import type * as VerifyAddresses from "../../../host/agent/detection/verify-addresses.ts";
import type * as OrphanNics from "../../../host/agent/fences/orphan-nics.ts";
import type { NicAccess } from "../../../host/agent/fences/orphan-nics.ts";
import type * as TenantLimits from "../../../host/agent/ipam/tenant-limits.ts";
import type * as Own from "../../../host/agent/reconcile/own-allocations.ts";
import type * as PlanReconciliation from "../../../host/agent/reconcile/plan-reconciliation.ts";
import type * as AddDeadline from "../../../host/agent/request/add-deadline.ts";
import type * as Dispatcher from "../../../host/agent/server/dispatcher.ts";
import type * as Spool from "../../../host/agent/server/spool.ts";
import type * as PlanCollection from "../../../host/controller/gc/plan-collection.ts";
import type * as PlanNotices from "../../../host/controller/notices/plan-notices.ts";
import type * as ApplyPlan from "../../../host/controller/subnets/apply-plan.ts";
import type * as Capacity from "../../../host/controller/subnets/plan/capacity.ts";
import type * as FreeSpans from "../../../host/controller/subnets/plan/free-spans.ts";
import type * as Filters from "../../../host/ipam/filters.ts";
import type * as Leak from "../../../host/ipam/leak.ts";
import type * as PoolCache from "../../../host/ipam/pool-cache.ts";
import type * as SubnetPools from "../../../host/ipam/subnet-pools.ts";
import type * as AllocationObjects from "../../../host/registry/kubernetes/allocation-objects.ts";
import type * as ClusterClaim from "../../../host/registry/kubernetes/cluster-claim.ts";
import type * as Decide from "../../../host/registry/kubernetes/decide.ts";
import type * as KnownObject from "../../../host/registry/kubernetes/known-object.ts";
import type * as KubernetesRegistry from "../../../host/registry/kubernetes/kubernetes-registry.ts";
import type * as RegistryPort from "../../../host/registry/registry.ts";
import type * as Session from "../../../host/registry/sqlite/session.ts";
import type * as SqliteRegistry from "../../../host/registry/sqlite/sqlite-registry.ts";
import type * as IpAllocation from "../../../host/resources/ip-allocation.ts";
import type * as Member from "../../../host/resources/member.ts";
import type { PoolTable } from "../../../host/resources/pools-by-name.ts";
import type { ProfileName } from "../profiles.ts";
import { type ReplacedModule, replace } from "./replace-exports.ts";

export interface Fault {
  readonly profile: ProfileName;
  /** Part of the violation that the fault leads to; others do not count. */
  readonly violation: string;
  /** Within how many steps of consecutive seeds the simulation has to notice. */
  readonly limit: number;
  readonly replaced: ReplacedModule;
}

const KUBERNETES_REGISTRY = "host/registry/kubernetes/kubernetes-registry.ts";
const DECIDE = "host/registry/kubernetes/decide.ts";

/** Orphans are fenced over another port to NICs. */
function withNics(change: (nics: NicAccess) => NicAccess): ReplacedModule {
  return replace<typeof OrphanNics>("host/agent/fences/orphan-nics.ts", {
    fenceOrphan:
      (fence) =>
      ({ nics, ...deps }, orphan) =>
        fence({ ...deps, nics: nics && change(nics) }, orphan),
  });
}

function withDecision(
  change: (action: Decide.SyncAction, inputs: Decide.SyncInputs) => Decide.SyncAction,
): ReplacedModule {
  return replace<typeof Decide>(DECIDE, { decide: (decide) => (inputs) => change(decide(inputs), inputs) });
}

type Journal = SqliteRegistry.SqliteRegistry;
type Changed = "claim" | "release" | "endQuarantine";

/** `change` returns the methods that are others. */
function withJournal(change: (journal: Pick<Journal, Changed>) => Partial<Journal>): ReplacedModule {
  return replace<typeof SqliteRegistry>("host/registry/sqlite/sqlite-registry.ts", {
    SqliteRegistry: (Original) =>
      class extends Original {
        constructor(...given: ConstructorParameters<typeof Original>) {
          super(...given);
          const { claim, release, endQuarantine } = this;
          Object.assign(this, change({ claim, release, endQuarantine }));
        }
      },
  });
}

const noticed = (profile: ProfileName, violation: string, limit: number): Omit<Fault, "replaced"> => ({
  ...{ profile, violation, limit },
});

/** By name. */
export const FAULTS: Readonly<Record<string, Fault>> = {
  "an address that another pod has is written over": {
    ...noticed("calm", "another node may take over only", 100_000),
    replaced: withDecision((action) => (action.kind === "taken" ? { kind: "replace", state: "Bound" } : action)),
  },
  "a claim is answered before its record exists": {
    ...noticed("calm", "its record is nothing", 20_000),
    replaced: replace<typeof ClusterClaim>("host/registry/kubernetes/cluster-claim.ts", {
      claimInCluster:
        () =>
        ({ journal }, claim) =>
          journal.claim(claim),
    }),
  },
  "a claim that failed is not undone": {
    ...noticed("faults", " addresses on ", 400_000),
    replaced: withJournal(() => ({ undo: async () => {} })),
  },
  "a right record is written again": {
    ...noticed("calm", "was written more than", 60_000),
    replaced: withDecision((action, { row }) =>
      action.kind === "synced" && row.isConfirmed === true ? { kind: "replace", state: row.state } : action,
    ),
  },
  "a record that vanished is not written again": {
    ...noticed("calm", "its record is not back", 60_000),
    replaced: replace<typeof PlanReconciliation>("host/agent/reconcile/plan-reconciliation.ts", {
      needsPublishing: () => () => false,
    }),
  },
  "the controller sends no notice": {
    ...noticed("calm", "its record is not back", 60_000),
    replaced: replace<typeof PlanNotices>("host/controller/notices/plan-notices.ts", { planNotices: () => () => [] }),
  },
  "a DEL is ignored": {
    ...noticed("scarce", "out of use", 200_000),
    replaced: withJournal(() => ({ release: async () => [] })),
  },
  "a DEL of another network releases": {
    ...noticed("runtimes", "its record is ", 60_000),
    replaced: withJournal(({ release }) => ({
      release: ({ containerId, ifName }) => release({ containerId, ifName }),
    })),
  },
  "a GC releases what its list lacks, whether the pod is gone or not": {
    ...noticed("runtimes", "its record is ", 60_000),
    replaced: replace<typeof Ipam>("host/agent/cluster/ipam.ts", {
      KubernetesIpam: (Original) =>
        class extends Original {
          override async isGone(): Promise<boolean> {
            return true;
          }
        },
    }),
  },
  "addresses of a NIC that never comes stay": {
    ...noticed("runtimes", "is still Bound", 100_000),
    replaced: replace<typeof RegistryPort>("host/registry/registry.ts", { UNATTACHED_MS: () => 3_600_000 as never }),
  },
  "leaked addresses are not collected": {
    ...noticed("faults", "s after the last fault: ", 200_000),
    replaced: replace<typeof Leak>("host/ipam/leak.ts", { decideLeak: () => () => ({ kind: "observe" }) }),
  },
  "addresses of a silent node are freed": {
    ...noticed("silence", "its record is ", 400_000),
    replaced: replace<typeof PlanCollection>("host/controller/gc/plan-collection.ts", {
      decideCollection: (decide) => (found, times) => {
        const decision = decide(found, times);
        return decision.action === "quarantine" ? { ...decision, action: "free" } : decision;
      },
    }),
  },
  "an address on a lost node is taken over without a probe": {
    ...noticed("partition", " is on ", 200_000),
    replaced: replace<typeof Decide>(DECIDE, {
      takeOver:
        (takeOver) =>
        async (...question) => {
          const action = await takeOver(...question);
          const isToProbe = action.kind === "taken" && action.needsProbe === true;
          return isToProbe ? { kind: "replace", state: "Bound", sharers: [] } : action;
        },
    }),
  },
  "an address is taken over before the NIC of the earlier pod has lost it": {
    ...noticed("partition", " is on ", 200_000),
    replaced: replace<typeof Decide>(DECIDE, {
      takeOver: (takeOver) => (deps, row, read) => takeOver({ ...deps, readNodeStatus: async () => "off" }, row, read),
    }),
  },
  "the end of one of two launchers releases the address": {
    ...noticed("machines", " was refused: ", 200_000),
    replaced: withDecision((action) => (action.kind === "leave" ? { kind: "replace", state: "Kept" } : action)),
  },
  "a member's retained address is not looked for": {
    ...noticed("statefulsets", " had ", 60_000),
    replaced: replace<typeof KubernetesRegistry>(KUBERNETES_REGISTRY, {
      openKubernetesRegistry: (open) => async (options) => {
        const registry = await open(options);
        registry.findRetained = async () => [];
        return registry;
      },
    }),
  },
  "a member's address is released like a plain pod's": {
    ...noticed("statefulsets", " had ", 60_000),
    replaced: withDecision((action) =>
      action.kind === "replace" && action.state === "Kept" ? { ...action, state: "Cooling" } : action,
    ),
  },
  "an older journal is not noticed": {
    ...noticed("restores", "its record is ", 900_000),
    replaced: replace<typeof Session>("host/registry/sqlite/session.ts", { findLoss: () => () => undefined }),
  },
  "a full disk refuses ADDs for good": {
    ...noticed("faults", " addresses on ", 300_000),
    replaced: withJournal(({ claim }) => {
      let failure: unknown;
      return {
        claim: async (wanted) => {
          if (failure !== undefined) throw failure;
          return claim(wanted).catch((error: unknown) => {
            failure = error;
            throw error;
          });
        },
      };
    }),
  },
  "a cooling address is taken over at once": {
    ...noticed("scarce", " ms after ", 60_000),
    replaced: replace<typeof AddDeadline>("host/agent/request/add-deadline.ts", { MIN_COOLING_MS: () => 0 as never }),
  },
  "an address that another machine answers for is used": {
    ...noticed("conflicts", "and on another machine", 60_000),
    replaced: replace<typeof VerifyAddresses>("host/agent/detection/verify-addresses.ts", {
      EarlyStage: (EarlyStage) =>
        class extends EarlyStage {
          override async verify(...claimed: Parameters<InstanceType<typeof EarlyStage>["verify"]>) {
            const found = await super.verify(...claimed);
            return found.kind === "conflict" ? { kind: "silent" as const, addresses: claimed[0].wanted } : found;
          }
        },
    }),
  },
  "a quarantine does not end": {
    ...noticed("conflicts", "is still Quarantined", 100_000),
    replaced: withJournal(({ endQuarantine }) => ({
      endQuarantine: async (row) => (row.state === "Bound" ? endQuarantine(row) : undefined),
    })),
  },
  "an edit of a pool is ignored": {
    ...noticed("pools", "which no pool gives to pods", 200_000),
    replaced: replace<typeof PoolCache>("host/ipam/pool-cache.ts", {
      PoolCache: (PoolCache) =>
        class extends PoolCache {
          readonly #known = new Set<string>();

          override apply(...[changes, reserved]: Parameters<InstanceType<typeof PoolCache>["apply"]>) {
            const first = [...changes].filter(([name]) => !this.#known.has(name));
            for (const [name] of first) this.#known.add(name);
            return super.apply(first, reserved);
          }
        },
    }),
  },
  "a Subnet gives an address to two pools": {
    ...noticed("subnets", "is in two pools", 60_000),
    replaced: replace<typeof Capacity>("host/controller/subnets/plan/capacity.ts", {
      openCapacities: (open) => (view) => {
        const capacities = open(view);
        for (const capacity of capacities.values())
          capacity.take = (own, count, heldIn) =>
            [...open(view)].flatMap(([name, each]) =>
              name === capacity.subnet.object.name ? each.take(own, count, heldIn) : [],
            );
        return capacities;
      },
    }),
  },
  "a pool gets addresses before its Subnet has assigned them": {
    ...noticed("subnets", "has not assigned it", 60_000),
    replaced: replace<typeof ApplyPlan>("host/controller/subnets/apply-plan.ts", {
      applyPlan: (apply) => (deps, plan) => apply(deps, { ...plan, grows: false }),
    }),
  },
  "a pool keeps what it no longer needs": {
    ...noticed("subnets", "without use", 200_000),
    replaced: replace<typeof FreeSpans>("host/controller/subnets/plan/free-spans.ts", {
      giveBack: () => (own) => ({ left: own, given: 0n }),
    }),
  },
  "a pod has addresses of another workload's generated pool": {
    ...noticed("subnets", "which is in ", 60_000),
    replaced: replace<typeof SubnetPools>("host/ipam/subnet-pools.ts", {
      findSubnetPool: (find) => (pools, request) =>
        [...(pools as PoolTable).values()].flatMap(({ spec: { generated } }) =>
          generated === undefined ? [] : find(pools, { ...request, application: generated.application }),
        ),
    }),
  },
  "a pool serves namespaces that it is not for": {
    ...noticed("tenants", "may not use that pool", 200_000),
    replaced: replace<typeof Filters>("host/ipam/filters.ts", {
      refusePool: (refuse) => (pool, subject, family) =>
        refuse({ ...pool, spec: { ...pool.spec, namespaceName: [] } }, subject, family),
    }),
  },
  "a namespace has no limit of addresses": {
    ...noticed("tenants", "and still gets", 200_000),
    replaced: replace<typeof TenantLimits>("host/agent/ipam/tenant-limits.ts", {
      limitsFor:
        (limits) =>
        (...question) => {
          const found = limits(...question);
          return found && { ...found, full: undefined };
        },
    }),
  },
  "a record's time has another form than its kind wants": {
    ...noticed("calm", "was refused: IPAllocation.ipam.vendor.io", 20_000),
    replaced: replace<typeof KnownObject>("host/registry/kubernetes/known-object.ts", {
      specOf: (specOf) => (row, state, place) =>
        specOf(row, state, { ...place, since: place.since.replace("Z", "+00:00") }),
    }),
  },
  "a record does not say in which namespace its workload is": {
    ...noticed("calm", "a workload keeps addresses for pods of its namespace", 20_000),
    replaced: replace<typeof KnownObject>("host/registry/kubernetes/known-object.ts", {
      specOf:
        (specOf) =>
        (...facts) => {
          const { workload, ...spec } = specOf(...facts);
          return workload === undefined ? spec : { ...spec, workload: { ...workload, namespace: "" } };
        },
    }),
  },
  "a deletion names no version": {
    ...noticed("statefulsets", "may not delete it", 100_000),
    replaced: replace<typeof AllocationObjects>("host/registry/kubernetes/allocation-objects.ts", {
      deleteAllocation: (deleteAllocation) => (api, name, _object, terms) =>
        deleteAllocation(api, name, {} as never, terms),
    }),
  },
  "nothing is compared when a journal in use has lost rows": {
    ...noticed("damage", "is still Bound", 400_000),
    replaced: replace<typeof Own>("host/agent/reconcile/own-allocations.ts", {
      OwnAllocations: (OwnAllocations) =>
        class extends OwnAllocations {
          override rowsLost() {}
        },
    }),
  },
  "a spooled DEL is replayed again": {
    ...noticed("containers", "its record is ", 200_000),
    replaced: replace<typeof Dispatcher>("host/agent/server/dispatcher.ts", {
      Dispatcher: (Dispatcher) =>
        class extends Dispatcher {
          override async dispatch(...call: Parameters<InstanceType<typeof Dispatcher>["dispatch"]>) {
            setTimeout(() => void super.dispatch(...call), 3_000);
            return super.dispatch(...call);
          }
        },
    }),
  },
  "an ADD does not wait for spooled DELs": {
    ...noticed("containers", "its record is ", 200_000),
    replaced: replace<typeof Spool>("host/agent/server/spool.ts", {
      Spool: (Spool) =>
        class extends Spool {
          override clear(): Promise<void> {
            return Promise.resolve();
          }
        },
    }),
  },
  "an orphan answers for what comes up later": {
    ...noticed("nics", "its record is ", 400_000),
    replaced: withNics((nics) => ({ ...nics, fenceNics: (each) => nics.fenceNics({ ...each, isOrphan: false }) })),
  },
  "what is at an orphan's path is its namespace": {
    ...noticed("nics", "s after the last fault: ", 400_000),
    replaced: withNics((nics) => ({
      ...nics,
      readNetnsStatus: ({ netnsCookie: _, ...nic }) => nics.readNetnsStatus(nic),
      fenceNics: (each) => nics.fenceNics({ ...each, netnsCookie: nics.readCookie(each.netns) }),
    })),
  },
  "an address proves that a namespace is an orphan's": {
    ...noticed("spaces", "as if it were an orphan's", 900_000),
    replaced: withNics((nics) => ({
      ...nics,
      findNetns: (nic, known) => {
        const found = nics.findNetns(nic, known);
        const [netns] = found.kind === "unknown" ? found.candidates : [];
        return netns === undefined ? found : { kind: "proven", netns, netnsCookie: nics.readCookie(netns) };
      },
    })),
  },
  "the links of an orphan with a guest stay up": {
    ...noticed("bridges", "its record is ", 200_000),
    replaced: replace<typeof OrphanNics>("host/agent/fences/orphan-nics.ts", {
      fenceOrphan: (fence) => (deps, orphan) =>
        fence(deps, { ...orphan, workload: orphan.workload && { ...orphan.workload, kind: "StatefulSet" } }),
    }),
  },
  "an address has one record in all address spaces": {
    ...noticed("spaces", "the address, followed by a dot and the address space", 60_000),
    replaced: replace<typeof IpAllocation>("host/resources/ip-allocation.ts", {
      allocationName: (nameOf) => (ip) => nameOf(ip, ""),
      encodeIpAllocation: (encode) => (spec, more) => {
        const { metadata } = encode({ ...spec, addressSpace: "" }, more);
        return { ...encode(spec, more), metadata };
      },
    }),
  },
  "an owner's label has another value than in the last release": {
    ...noticed("releases", " had ", 200_000),
    replaced: replace<typeof Member>("host/resources/member.ts", {
      memberKey: (memberKey) => (member) => `${memberKey(member)} in another form`,
    }),
  },
};
