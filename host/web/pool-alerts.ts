/** What is wrong with a pool by its counts, as the alerts of deploy/chart/berth/files/alerts.yaml see it. */
import type { PoolAlert } from "../records/map-records.ts";

/** Below this share of free addresses a pool is nearly full. */
const NEARLY_FULL = 0.1;

interface PoolCounts {
  /** Addresses that the pool may hand out. */
  readonly size: bigint;
  /** Of them, those that are not free. */
  readonly used: number;
  readonly quarantined: number;
  /** Such a pool is as large as its workload needs. */
  readonly isGenerated: boolean;
}

/** Returns the worst first. */
export function findAlerts({ size, used, quarantined, isGenerated }: PoolCounts): PoolAlert[] {
  const free = size - BigInt(used);
  const alerts: PoolAlert[] = [];
  if (!isGenerated && size > 0n && free <= 0n) {
    alerts.push({ kind: "Full", text: "The pool has no free address: new pods that need it do not start." });
  } else if (!isGenerated && Number(free) < NEARLY_FULL * Number(size)) {
    alerts.push({ kind: "NearlyFull", text: `The pool is nearly full: ${free} of ${size} addresses are free.` });
  }
  if (quarantined > 0) {
    const what = quarantined === 1 ? "1 address is" : `${quarantined} addresses are`;
    const text = `${what} in quarantine: another machine answered for it, or its node was lost.`;
    alerts.push({ kind: "Quarantined", text: quarantined === 1 ? text : text.replace("it, or its", "each, or its") });
  }
  return alerts;
}
