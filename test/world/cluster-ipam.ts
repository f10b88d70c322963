/** A cluster in which no other node and no earlier pod has anything, unless a test says otherwise. */
import type { ClusterIpam, SharedRecords } from "../../host/agent/ipam/cluster-ipam.ts";

/** No node has recorded anything. */
export const RECORDS: SharedRecords = {
  findRetained: async () => [],
  foresee: async () => ({ kind: "published", isNew: false }),
  listUsed: async () => undefined,
  readUsageSummary: async () => undefined,
  releaseRetained: async () => {},
  retain: async () => {},
  markWanted: async () => {},
  awaitChange: async () => false,
};

export function clusterIpam(changes: Partial<ClusterIpam> = {}): ClusterIpam {
  return {
    prefetched: { waitForClaim: async () => {}, claimedFor: () => [], used: () => {}, discard: async () => {} },
    poolChanges: { changeCount: 0, changed: async () => false },
    readSubnet: async () => ({ kind: "absent" }),
    forgetPoolOwners: () => {},
    markWanted: async () => {},
    records: RECORDS,
    evictPredecessor: async () => undefined,
    foreseeEviction: async () => undefined,
    isShared: async () => false,
    reportRefusal: () => {},
    reportIgnored: () => {},
    isGone: async () => true,
    findLoss: () => undefined,
    ...changes,
  };
}
