/** A cluster in which no other node and no earlier pod has anything, unless a test says otherwise. */
import type { ClusterIpam } from "../../host/agent/ipam/cluster-ipam.ts";

export function clusterIpam(changes: Partial<ClusterIpam> = {}): ClusterIpam {
  return {
    prefetched: { waitForClaim: async () => {}, claimedFor: () => [], used: () => {}, discard: async () => {} },
    poolChanges: { changeCount: 0, changed: async () => false },
    readSubnet: async () => ({ kind: "absent" }),
    forgetPoolOwners: () => {},
    markWanted: async () => {},
    releaseRetained: async () => {},
    evictPredecessor: async () => undefined,
    foreseeEviction: async () => undefined,
    askForCooling: async () => {},
    awaitChange: async () => false,
    isShared: async () => false,
    reportRefusal: () => {},
    reportIgnored: () => {},
    findLoss: () => undefined,
    ...changes,
  };
}
