/**
 * The registry: who holds which address. A port; sqlite-registry.ts is the embedded implementation.
 * Called by the agent. It decides nothing about pools: it only says whether a name was free.
 */
import type { Family, Ip } from "../net/ip.ts";
import type { Mac } from "../net/mac.ts";
import type { AllocationState, Workload } from "../resources/ip-allocation.ts";
import type { PoolUsage } from "../resources/usage/ip-pool-usage.ts";

/** Why an address must not be used, and who looks when it may be used again (conflict). */
export interface Quarantine {
  readonly reason: "Conflict";
  /** Of the machine that answered for the address; undefined when the answer did not tell. */
  readonly mac: Mac | undefined;
  /** The link of the node through which that machine can be asked; "" when none is known. */
  readonly parent: string;
  /** When to ask again, on the machine's monotonic clock, milliseconds. */
  readonly nextProbeAtMs: number;
}

/** One address that is not free. (`space`, `ip`) is unique. */
export interface Allocation {
  readonly space: string;
  readonly ip: Ip;
  /** Of the pool's subnet when the address was claimed; outlives the pool. */
  readonly prefixLength: number;
  readonly pool: string;
  readonly state: AllocationState;
  /** Pod UID, or container ID where no pod is known. */
  readonly owner: string;
  readonly ifName: string;
  /** Empty until the NIC has been attached: claimed together with another NIC of the pod. */
  readonly containerId: string;
  readonly network: string;
  readonly namespace: string;
  readonly pod: string;
  /** Path of the attachment's network namespace, as its ADD gave it; undefined when unknown. */
  readonly netns?: string | undefined;
  /** Of the attachment's NIC; undefined when unknown. */
  readonly mac?: Mac | undefined;
  /**
   * Of a Quarantined address. Of a Bound one: it was handed out although it is in quarantine, and must not be used before
   * it is known to be silent. {@link Registry.trust} says so; whatever else ends the binding brings it back to quarantine.
   */
  readonly quarantine?: Quarantine | undefined;
  /** What keeps the address when the pod goes; undefined when nothing does. */
  readonly workload?: Workload | undefined;
  /**
   * Of another node's address whose pod is deleted: that node, whose agent has yet to take it off the pod's NIC (retention). Of a Bound one
   * of this node: the node of the earlier pod, which is lost; {@link Registry.trust} is told that nobody answers, and makes the address this pod's.
   */
  readonly predecessorNode?: string | undefined;
  /** False: the API server is not known to have an object for it (cluster only). */
  readonly isConfirmed?: boolean | undefined;
  /** Of a Cooling one of this node: when it has cooled long enough, on the same clock as sinceMs. */
  readonly freeAtMs?: number | undefined;
  /** Of the last transition, on the machine's monotonic clock, milliseconds. */
  readonly sinceMs: number;
  /** Grows with every write; the precondition of take-over and undo. Of a cluster's allocation that this node has no row of: the object's resource version, negative. */
  readonly version: number;
}

/** An address that the caller would like for one NIC. */
export interface Proposal {
  readonly space: string;
  readonly ip: Ip;
  readonly prefixLength: number;
  readonly pool: string;
  readonly ifName: string;
  /** Version of the Cooling or Quarantined allocation to take over; absent when the address must be free. */
  readonly replaces?: number;
  /** Somebody asked for just this address: what was claimed for the NIC and never attached gives way to it. */
  readonly requested?: boolean;
  /** Somebody may answer for it: it is bound as if it had been in quarantine ({@link Allocation.quarantine}). */
  readonly needsProbe?: boolean;
  /** What keeps this address, in place of the claim's. */
  readonly workload?: Workload;
}

/** Who asks, for which NIC now, and what would suit: one address per family and NIC. */
export interface Claim {
  readonly owner: string;
  readonly namespace: string;
  readonly pod: string;
  /** The NIC of the current request. */
  readonly ifName: string;
  /** "": claimed ahead of the NIC's ADD, which will attach it. */
  readonly containerId: string;
  readonly network: string;
  /** Path of the network namespace of the NIC of the request. */
  readonly netns?: string | undefined;
  /** Of the NIC of the request. */
  readonly mac?: Mac | undefined;
  readonly proposals: readonly Proposal[];
  /** What keeps the pod's addresses when it goes; undefined when nothing does. */
  readonly workload?: Workload | undefined;
  /**
   * The same ADD again, which has lost an address of one family. What its NIC has is not written to; `taken` when another sandbox has it
   * by now. Any claim gives a NIC only the families that it lacks.
   */
  readonly partial?: boolean;
  /** Do not offer the owner's own cooling addresses again: they lie outside what is selected now. */
  readonly skipOwnCooling?: boolean;
}

export type ClaimOutcome =
  /**
   * `held`: all addresses of the NIC of the request; `created`: what this claim wrote, for any NIC; `previous`: those of
   * `held` as they were, where they were on another NIC before: of an older sandbox, or released and not yet free.
   */
  | {
      readonly kind: "bound";
      readonly held: readonly Allocation[];
      readonly created: readonly Allocation[];
      readonly previous: readonly Allocation[];
      /** Those of `created` whose address nobody had; absent where everything is here to be seen (the embedded registry). */
      readonly fresh?: readonly Allocation[];
    }
  /** The owner's own addresses are still cooling: nothing was written; propose them, or forsake them. */
  | { readonly kind: "cooling"; readonly own: readonly Allocation[] }
  /** Somebody has a proposed address: nothing was written. */
  | { readonly kind: "taken"; readonly by: readonly Allocation[] };

export interface Attachment {
  readonly containerId: string;
  readonly ifName: string;
  /** Name of its network. Absent: of whichever network. */
  readonly network?: string;
}

/** All addresses of one family in one space from `first` to `last`, both included. */
export interface AddressSpan {
  readonly space: string;
  readonly family: Family;
  readonly first: bigint;
  readonly last: bigint;
}

/** Returns whether the address lies in the span. */
export function isInSpan(
  { space, family, first, last }: AddressSpan,
  address: Pick<Allocation, "space" | "ip">,
): boolean {
  const { value } = address.ip;
  return space === address.space && family === address.ip.family && first <= value && value <= last;
}

export interface UsageCount {
  readonly pool: string;
  readonly state: AllocationState;
  readonly count: number;
}

/** Where a page of {@link Registry.list} ended. */
export interface ListCursor {
  readonly space: string;
  readonly ip: Ip;
}

/** Which quarantined addresses to find: all that every given condition fits. */
export interface QuarantineQuery {
  readonly limit: number;
  /** Quarantined at this time or before. */
  readonly untilMs?: number;
  /** To be asked at this time or before. */
  readonly dueMs?: number;
  readonly pool?: string;
  readonly mac?: Mac;
  /** In any of these. */
  readonly spans?: readonly AddressSpan[];
}

/** How long a released address cools, in milliseconds. */
export interface Cooldowns {
  readonly defaultMs: number;
  readonly byPool: ReadonlyMap<string, number>;
}

/** Told of every address that becomes free, in the order of the registry's own writes. */
export type FreedObserver = (space: string, ip: Ip) => void;

/**
 * Every method settles only when what it answers is recorded. Failures are RegistryError.
 * A method either does all it says or nothing. What waits for one answer runs before the next answer is given, so that
 * the pool cache can follow the order of the registry's writes.
 */
export interface Registry {
  /** `signal` ends the wait for an API server; what was written by then is taken back. */
  claim(claim: Claim, signal?: AbortSignal): Promise<ClaimOutcome>;
  /** Takes back exactly these records, if nobody has written to them since: what was cooling cools on, the rest is free. */
  undo(created: readonly Allocation[]): Promise<void>;
  /** DEL: the attachment's addresses start to cool; with the owner's last NIC go those that were never attached. */
  release(attachment: Attachment): Promise<readonly Allocation[]>;
  /** GC: like release for every attachment of the network that is not in `valid` and was bound before `beforeMs`. */
  releaseOthers(network: string, valid: readonly Attachment[], beforeMs: number): Promise<readonly Allocation[]>;
  /** Takes back what was claimed before `beforeMs` and never attached, as undo does. */
  releaseUnattached(beforeMs: number): Promise<readonly Allocation[]>;
  /** Frees what has cooled long enough, in pieces. Answers how many addresses still cool. */
  expire(): Promise<number>;
  findAttachment(attachment: Attachment): Promise<readonly Allocation[]>;
  findAddress(space: string, ip: Ip): Promise<Allocation | undefined>;
  /** All addresses of an owner, of every NIC and state. */
  findOwner(owner: string): Promise<readonly Allocation[]>;
  /**
   * Cooling addresses in any of the spans, which are of one space and family, the longest released first. With the name of their pool those of
   * other nodes, too, as old as this node has known of them; when there are none, their nodes are asked to show them (cooling-visibility).
   */
  findCooling(spans: readonly AddressSpan[], limit: number, pool?: string): Promise<readonly Allocation[]>;
  /**
   * Bound → Quarantined, if nobody has written since: owner and attachment are gone from it, so no DEL makes it cool and
   * no claim of the owner gets it back. Survives a power loss. Undefined when somebody has written.
   * With it goes what was claimed for the same ADD, `created`, as by undo: an agent that dies now leaves no half of a pod's addresses.
   */
  quarantine(
    allocation: Allocation,
    quarantine: Quarantine,
    created?: readonly Allocation[],
  ): Promise<Allocation | undefined>;
  /** Quarantined addresses, those to be asked first in front. */
  findQuarantined(query: QuarantineQuery): Promise<readonly Allocation[]>;
  /** The address was asked and is still in use. Nothing happens when somebody has written since. */
  postponeProbe(allocation: Allocation, nextProbeAtMs: number): Promise<void>;
  /** Quarantined → free, if nobody has written since. */
  endQuarantine(allocation: Allocation): Promise<void>;
  /** A Bound address that came out of quarantine is silent: Bound like any other. Undefined when somebody has written. */
  trust(allocation: Allocation): Promise<Allocation | undefined>;
  /** All addresses in use in the span as far as is known here, 4 or 16 big-endian bytes each, in order. */
  readUsed(span: AddressSpan): Promise<Uint8Array>;
  /**
   * All addresses that anybody has in the span, in the same form, as of a moment after the call. Undefined where {@link readUsed} tells that
   * already, or nobody can tell at a reasonable price; `pools` are the names of all pools that lie in the span.
   */
  listUsed(span: AddressSpan, pools: readonly string[]): Promise<Uint8Array | undefined>;
  /**
   * How much of the pool is in use as somebody has counted a while ago, if that is news; undefined otherwise. A hint of which anything may be
   * wrong: it says where to look first, and nothing is refused for it. Never rejects.
   */
  readUsageSummary(pool: string): Promise<PoolUsage | undefined>;
  /**
   * retention: the addresses, anywhere, that are kept for this member of the workload, or that an earlier pod of it has. The caller asks when
   * its first candidate was somebody else's or free, compares the answer with the pools that are selected, and proposes what fits with
   * `replaces`: the registry knows no pools. {@link claim} decides whether it may be had. Empty where nothing is kept.
   */
  findRetained(workload: Workload, signal?: AbortSignal): Promise<readonly Allocation[]>;
  countUsage(): Promise<readonly UsageCount[]>;
  list(after: ListCursor | undefined, limit: number): Promise<readonly Allocation[]>;
  setCooldowns(cooldowns: Cooldowns): void;
  /** Why nothing can be recorded now, a sentence that names the file; undefined when all can, as far as is known. From memory. */
  readonly trouble: string | undefined;
  /** Tries whether something can be recorded, when there is reason to doubt it or some time has passed; {@link trouble} is right afterwards. Never rejects. */
  probe(): Promise<void>;
  close(): Promise<void>;
}

/** An address that a live NIC has, as others than the registry know. */
export type Recovered = Pick<
  Allocation,
  "space" | "ip" | "prefixLength" | "pool" | "owner" | "ifName" | "containerId" | "network" | "namespace" | "pod"
> &
  Pick<Allocation, "netns" | "mac">;

/** A registry that nothing else can fill again: the embedded mode's. */
export interface RecoverableRegistry extends Registry {
  /**
   * `found` are Bound from now on, whatever their rows say; `gone` cool, if nobody has written since. After that the registry counts as complete:
   * a loss ends. Where the file was damaged or lost, all rows that can be read go into a new one.
   */
  recover(found: readonly Recovered[], gone: readonly Allocation[]): Promise<void>;
}

/** The registry could not do it. `full` says that the state directory has no room. */
export class RegistryError extends Error {
  override readonly name = "RegistryError";
  readonly full: boolean;

  constructor(message: string, options: { full?: boolean; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.full = options.full ?? false;
  }
}
