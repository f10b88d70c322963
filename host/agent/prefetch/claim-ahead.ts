/**
 * Claims what an ADD will ask for, without a container: the journal first, then the pools.
 * Effects: reads and writes the registry.
 */
import { CniError, ErrorCode } from "../../cni/error.ts";
import type { AnnouncedNic } from "../../ipam/plan-prefetch.ts";
import type { Allocation } from "../../registry/registry.ts";
import type { Pod } from "../../resources/pod.ts";
import { type AddressDemand, type AllocateDeps, allocateAddresses } from "../ipam/allocate.ts";

/** How long a claim ahead of its ADD may last, and so how long an ADD waits for it: milliseconds. @limit */
export const PREFETCH_PATIENCE_MS = 10_000;

export interface AheadTools extends AllocateDeps {
  /** What the NIC's ADD will ask for (demand-ahead.ts). Rejects with what selection throws. */
  readonly demandOf: (pod: Pod, nic: AnnouncedNic, signal: AbortSignal) => Promise<AddressDemand>;
}

export interface AheadWish {
  readonly owner: string;
  readonly pod: Pod;
  /** At least one. */
  readonly nics: readonly AnnouncedNic[];
}

type RowsByNic = ReadonlyMap<string, readonly Allocation[]>;

export interface Ahead {
  /** Claimed now. */
  readonly claimed: RowsByNic;
  /** An agent that ran before this one has claimed them. */
  readonly found: RowsByNic;
  /** NICs that were attached before. */
  readonly attached: readonly string[];
}

/**
 * Throws when nothing can be claimed now, within PREFETCH_PATIENCE_MS, or before `unwanted` aborts; then nothing is kept.
 * Never waits for an address to become free.
 */
export async function claimAhead(tools: AheadTools, wish: AheadWish, unwanted: AbortSignal): Promise<Ahead> {
  const patience = new AbortController();
  const through = new AbortController();
  const tired = (): void => patience.abort(new Error(`No answer within ${PREFETCH_PATIENCE_MS} ms`));
  tools.sleep(PREFETCH_PATIENCE_MS, through.signal).then(tired, () => {});
  try {
    return await claimMissing(tools, wish, AbortSignal.any([unwanted, patience.signal]));
  } finally {
    through.abort();
  }
}

async function claimMissing(tools: AheadTools, { owner, pod, nics }: AheadWish, signal: AbortSignal): Promise<Ahead> {
  const own = await tools.registry.findOwner(owner);
  const bound = own.filter(({ state }) => state === "Bound");
  const names = nics.map(({ ifName }) => ifName);
  const attached = names.filter((ifName) => bound.some((row) => row.ifName === ifName && row.containerId !== ""));
  const isAttached = (ifName: string): boolean => attached.includes(ifName);
  const found = groupByNic(bound.filter(({ ifName }) => names.includes(ifName) && !isAttached(ifName)));
  const missing = nics.filter(({ ifName }) => !found.has(ifName) && !isAttached(ifName));
  const [first] = missing;
  if (first === undefined) return { claimed: new Map(), found, attached };
  signal.throwIfAborted();
  const demand = await tools.demandOf(pod, first, signal);
  const isMissing = (ifName: string): boolean => missing.some((nic) => nic.ifName === ifName);
  const wanted = demand.nics.filter(({ ifName }) => isMissing(ifName));
  const { created } = await allocateAddresses({ ...tools, sleep: refuseToWait }, { ...demand, nics: wanted });
  return { claimed: groupByNic(created), found, attached };
}

function groupByNic(rows: readonly Allocation[]): Map<string, readonly Allocation[]> {
  return Map.groupBy(rows, ({ ifName }) => ifName);
}

/** Whether a pod waits for an address that still cools is for its ADD to decide. */
function refuseToWait(): Promise<never> {
  return Promise.reject(new CniError(ErrorCode.TryAgainLater, "Only addresses that were released just now are left"));
}
