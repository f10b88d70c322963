/** The ADD on a view: its own code, with the reads of an ADD, no writes, no waits, and silent addresses. */
import type { AttachRequest } from "../../cni/request.ts";
import type { Selection } from "../../ipam/model.ts";
import { invariant } from "../../lib/invariant.ts";
import type { Mac } from "../../net/mac.ts";
import { AnsweredAttachments } from "../detection/answered-attachments.ts";
import type { Detection } from "../detection/open-detection.ts";
import { type AddDeps, addAddresses } from "../ipam/add.ts";
import type { ClusterIpam } from "../ipam/cluster-ipam.ts";
import { PoolInventory } from "../ipam/pool-inventory.ts";
import type { Assigned } from "../request/plugin.ts";
import { RegistryView } from "./registry-view.ts";

/** Main plugins that create the NIC only after its addresses are known: nothing can be probed before. */
const LATE_PLUGINS: readonly string[] = ["ptp"];

const NIC = { index: 1, mac: "02:00:00:00:00:01" as Mac, flags: 0, up: true, addresses: [] };

export class AddView {
  readonly #deps: AddDeps;
  readonly #signal: AbortSignal;
  /** Time that the ADDs so far would have waited: milliseconds. */
  waitedMs = 0;

  /** `trouble`: why the registry cannot record. */
  constructor(ipam: AddDeps, trouble: string | undefined, signal: AbortSignal) {
    const { poolCache, registry, snapshot, refused } = ipam.inventory;
    const view = new RegistryView(registry, { records: ipam.cluster?.records, trouble, signal });
    this.#signal = signal;
    this.#deps = {
      ...ipam,
      inventory: new PoolInventory(poolCache, view, snapshot, { refused }),
      view,
      clock: {
        nowMs: () => ipam.clock.nowMs() + this.waitedMs,
        sleep: async (milliseconds) => {
          this.waitedMs += Math.max(0, milliseconds);
        },
      },
      log: ipam.log.child({}, { level: "silent" }),
      cluster: ipam.cluster && clusterOn(view, ipam.cluster),
      attaching: undefined,
      fences: undefined,
    };
  }

  /**
   * Returns the assignments of the ADD after the earlier ones, and rejects with its refusal. `onSelected` ends before
   * the candidate pools are searched.
   */
  async add(request: AttachRequest, onSelected: (selection: Selection) => Promise<void>): Promise<Assigned> {
    const detection = silent(this.#deps.detection, !LATE_PLUGINS.includes(request.netConf.type));
    const { assigned } = await addAddresses({ ...this.#deps, detection, onSelected }, request, this.#signal);
    invariant(assigned !== undefined, "Berth's plugin says what it assigns");
    return assigned;
  }
}

/** No machine answers for an address, and no NIC is read or changed. */
function silent(detection: Detection, hasNic: boolean): Detection {
  return {
    ...detection,
    answered: new AnsweredAttachments(),
    links: {
      observe: () => (hasNic ? NIC : undefined),
      withdraw: () => undefined,
      findParentName: () => "",
      findAskingLink: (nic) => nic,
    },
    detect: async () => undefined,
    withQuietLink: ({ netnsPath, ifName }, work) => work({ netnsPath, index: NIC.index, name: ifName, mac: NIC.mac }),
  };
}

/** The cluster's part reads the same objects; it asks no other node, marks no pool and reports nothing. */
function clusterOn(view: RegistryView, cluster: ClusterIpam): ClusterIpam {
  const { prefetched, records } = cluster;
  return {
    prefetched: {
      waitForClaim: async () => {},
      claimedFor: (owner, ifName) => prefetched.claimedFor(owner, ifName).filter((row) => !view.isGone(row)),
      used: () => {},
      discard: (owner, ifName) => view.undo(prefetched.claimedFor(owner, ifName)),
    },
    poolChanges: { changeCount: 0, changed: async () => false },
    readSubnet: (of, signal) => cluster.readSubnet(of, signal),
    isShared: (row, signal) => cluster.isShared(row, signal),
    foreseeEviction: (former, claimant) => cluster.foreseeEviction(former, claimant),
    evictPredecessor: async (former, claimant) => {
      const cooling = await cluster.foreseeEviction(former, claimant);
      if (cooling !== undefined) view.note(cooling);
      return cooling;
    },
    markWanted: async () => {},
    records: {
      findRetained: (...of) => records.findRetained(...of),
      foresee: (...of) => records.foresee(...of),
      listUsed: (...of) => records.listUsed(...of),
      readUsageSummary: (pool) => records.readUsageSummary(pool),
      releaseRetained: async () => {},
      retain: async () => {},
      markWanted: async () => {},
      awaitChange: async () => false,
    },
    forgetPoolOwners: () => {},
    reportRefusal: () => {},
    reportIgnored: () => {},
    isGone: async () => false,
    findLoss: () => undefined,
  };
}
