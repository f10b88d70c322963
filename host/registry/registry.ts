/**
 * The registry's port: which owner has which address. It decides nothing about pools, only whether an address was
 * free. Implementations: SqliteRegistry (embedded), KubernetesRegistry (cluster).
 */

import type { PoolAddress, Proposal } from "../ipam/pick.ts";
import type { Family, Ip } from "../net/ip.ts";
import type { Mac } from "../net/mac.ts";
import type { AllocationState } from "../resources/ip-allocation.ts";
import type { Workload } from "../resources/member.ts";

/** Addresses claimed for a NIC that was never attached are freed after this: milliseconds (unattached). */
export const UNATTACHED_MS = 120_000;

/** Why an address must not be used, and when it is probed again (conflict). */
export interface Quarantine {
  readonly reason: "Conflict";
  /** MAC address of the machine that answered for the address; undefined if the answer did not contain it. */
  readonly mac: Mac | undefined;
  /** Link of the node through which that machine can be probed, "" if unknown. */
  readonly parent: string;
  /** When to probe again, on the machine's monotonic clock, milliseconds. */
  readonly nextProbeAtMs: number;
}

/** The claim by which a NIC has an address (docs/decisions/0049). */
export interface ClaimName {
  /** UUID. */
  readonly id: string;
  /** As in {@link IpAllocationSpec.number}. */
  readonly number: number;
  /** Claims by which this node had the address before, this one included, which its object may still name. */
  readonly earlier: readonly string[];
}

/** {@link ClaimName.id} of a claim of an older release, which has no name. */
export const UNNAMED = "-";

/** One address that is not free. (`space`, `ip`) is unique. */
export interface Allocation extends PoolAddress {
  readonly state: AllocationState;
  /** Pod UID, or container ID if no pod is known. */
  readonly owner: string;
  /** Empty until the NIC has been attached: claimed together with another NIC of the pod. */
  readonly containerId: string;
  readonly network: string;
  readonly namespace: string;
  readonly pod: string;
  /** Path of the attachment's netns, as its ADD gave it; undefined if unknown. */
  readonly netns?: string | undefined;
  /**
   * The kernel's cookie of that netns (SO_NETNS_COOKIE), if it was read in this boot and the row has not been
   * written by an older Berth since: paths are used again, and fencing needs to know whose namespace it changes.
   */
  readonly netnsCookie?: bigint | undefined;
  /**
   * MAC address of the attachment's NIC, set if the ADD probed (`detectIPConflict`) or `berthctl recover` found the
   * NIC; else undefined.
   */
  readonly mac?: Mac | undefined;
  /**
   * Set if the address is Quarantined, or Bound although it is in quarantine: then it must be probed before it is
   * used. {@link Registry.endQuarantine} says that the probe found it silent; whatever else ends the binding returns
   * it to quarantine.
   */
  readonly quarantine?: Quarantine | undefined;
  /**
   * The address owner, which retains the address after the pod; undefined if none, and until {@link Journal.retain}.
   */
  readonly workload?: Workload | undefined;
  /**
   * Node of an earlier pod of the same member (retention). If the address is another node's, that node's agent has
   * yet to take it off the earlier pod's NIC. If it is Bound here, the node is lost, and {@link Registry.endQuarantine}
   * makes the address this pod's.
   */
  readonly predecessorNode?: string | undefined;
  /** Whether a live pod of another node has it: of several found for one NIC of a machine (`findRetained`). */
  readonly isInUse?: boolean | undefined;
  /** Cluster only; undefined in rows and objects of older releases. */
  readonly claim?: ClaimName | undefined;
  /** Whether an ADD was answered with the row, or may have been (cluster only). */
  readonly isConfirmed?: boolean | undefined;
  /** When the API server created the object, RFC 3339; only of another node's address. */
  readonly createdAt?: string | undefined;
  /** When the cooldown of a Cooling address of this node is over, on the same clock as sinceMs. */
  readonly freeAtMs?: number | undefined;
  /** Time of the last transition, on the machine's monotonic clock, milliseconds. */
  readonly sinceMs: number;
  /**
   * Grows with every write; the precondition of take-over and undo. If this node has no row: the object's resource
   * version, negative (cluster only).
   */
  readonly version: number;
}

/** The part of a row that describes the NIC of its ADD. */
export type NicOfRow = Pick<Allocation, "ifName" | "containerId" | "network" | "netns" | "netnsCookie">;

/**
 * A request for addresses: the owner, the NIC of the current ADD, and one proposal per family and NIC. A claim ahead of
 * the NIC's ADD, which will attach it, has no container: "".
 */
export interface Claim extends NicOfRow, Pick<Allocation, "owner" | "namespace" | "pod" | "mac" | "workload"> {
  readonly proposals: readonly Proposal[];
  /** One above the highest number of the addresses of the owner's member, if they were read. Default: they were not. */
  readonly number?: number | undefined;
  /** A virtual machine of another pod migrates to this one, and has its addresses there. Default: none does. */
  readonly isMigrationTarget?: boolean | undefined;
  /**
   * The same ADD claims again because it lost the address of one family. The NIC's other addresses are not written;
   * the outcome is `taken` if another sandbox has them by now. (Every claim gives a NIC only the families that it
   * lacks.)
   */
  readonly partial?: boolean;
  /**
   * The caller will claim other addresses in place of those that are taken, or undo the rest. Without it a claim is
   * all or nothing.
   */
  readonly keepsRest?: boolean;
  /** Do not offer the owner's own cooling addresses again: they are outside of the selected pools. */
  readonly skipOwnCooling?: boolean;
}

export type Bound = Extract<ClaimOutcome, { kind: "bound" }>;

export type ClaimedPart = Pick<Bound, "created" | "previous" | "added" | "open">;

export type ClaimOutcome =
  /**
   * `held`: all addresses of the NIC of the request. `created`: the addresses that this claim wrote, for any NIC.
   * `previous`: those of `held` that were on another NIC before (of an older sandbox, or released and not yet free),
   * as they were.
   */
  | {
      readonly kind: "bound";
      readonly held: readonly Allocation[];
      readonly created: readonly Allocation[];
      readonly previous: readonly Allocation[];
      /** The rows for which the API server had no object. Absent in the embedded registry. */
      readonly added?: readonly Allocation[];
      /**
       * The rows of `held` and `created` that their address owner had not before as far as is known, or beside which it
       * may have others that come first: {@link Journal.retain} makes them its own once these were compared.
       */
      readonly open?: readonly Allocation[];
    }
  /** The owner's own addresses are still cooling: propose them, or skip them. Nothing was written. */
  | { readonly kind: "cooling"; readonly own: readonly Allocation[] }
  /**
   * A proposed address has another owner. Nothing was written, except in a cluster for a claim that `keepsRest`: `kept`
   * is its part of the rest. The caller claims the missing ones, with `partial`, or undoes it.
   */
  | { readonly kind: "taken"; readonly by: readonly Allocation[]; readonly kept?: ClaimedPart };

/**
 * `isNew`: the claim created the object, or tried to. `isShared`: another pod has the address, too; default: none.
 * `claim`: the claim by which the row takes over its member's address, where that is foreseen.
 */
export type PublishOutcome =
  | {
      readonly kind: "published";
      readonly isNew: boolean;
      readonly isShared?: boolean;
      readonly claim?: ClaimName | undefined;
    }
  | { readonly kind: "taken"; readonly by: Allocation };

export interface Attachment {
  readonly containerId: string;
  readonly ifName: string;
  /** Name of its network. Default: any network. */
  readonly network?: string;
}

/** All addresses of one family in one address space from `first` to `last`, both included. */
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

/** The last address of a page of {@link Registry.list}. */
export interface ListCursor {
  readonly space: string;
  readonly ip: Ip;
}

/** Selects quarantined addresses that meet all given conditions. */
export interface QuarantineQuery {
  readonly limit: number;
  /** In quarantine since this time or before. */
  readonly untilMs?: number;
  /** To be probed at this time or before. */
  readonly dueMs?: number;
  readonly pool?: string;
  readonly mac?: Mac;
  /** In any of these spans. */
  readonly spans?: readonly AddressSpan[];
}

/**
 * Returns the container ID under which `berthctl recover` records a NIC that no runtime remembers. A DEL with this
 * netns releases it.
 */
export function containerOfNetns(netns: string): string {
  return `netns:${netns}`;
}

/** Times for which a released address cools: milliseconds. */
export interface Cooldowns {
  readonly defaultMs: number;
  readonly byPool: ReadonlyMap<string, number>;
}

/** Returns the cooldown of the pool's addresses: its own, else the default: milliseconds. */
export function cooldownOf(
  pool: string,
  { defaultMs, byPool }: { defaultMs: number; byPool: Pick<Cooldowns["byPool"], "get"> },
): number {
  return byPool.get(pool) ?? defaultMs;
}

/** Called with every address that becomes free, in the order of the registry's writes. */
export type FreedObserver = (space: string, ip: Ip) => void;

/**
 * A method resolves only when its result is recorded, does all of its work or nothing, and rejects with
 * RegistryError. "Unchanged" means: the version is that of the given allocation. The continuations of one result run
 * before the next result is delivered, so that the pool cache can follow the order of the writes.
 */
export interface Registry {
  /** `signal` ends the wait for an API server; the claim is then undone. */
  claim(claim: Claim, signal?: AbortSignal): Promise<ClaimOutcome>;
  /**
   * Undoes a claim of exactly these records, if unchanged: those that were cooling cool for the rest of their time,
   * the others become free.
   */
  undo(created: readonly Allocation[]): Promise<void>;
  /**
   * DEL: the attachment's addresses start to cool. With the owner's last NIC, addresses that were never attached
   * become free. Returns the released addresses.
   */
  release(attachment: Attachment): Promise<readonly Allocation[]>;
  /** The row's pod or its sandbox is gone: Bound → Cooling, if unchanged; else returns undefined. */
  collect(allocation: Allocation): Promise<Allocation | undefined>;
  /** Frees the addresses whose cooldown is over, in pieces, and undoes claims that were not attached in time. */
  expire(): Promise<void>;
  findAttachment(attachment: Attachment): Promise<readonly Allocation[]>;
  findAddress(space: string, ip: Ip): Promise<Allocation | undefined>;
  /** Returns all addresses of an owner, of every NIC and state. */
  findOwner(owner: string): Promise<readonly Allocation[]>;
  /**
   * Returns Cooling addresses in any of the spans, which are of one space and family, the longest released first.
   * With a pool's name includes those of other nodes that show them (cooling-visibility), aged by when this node first
   * read them.
   */
  findCooling(spans: readonly AddressSpan[], limit: number, pool?: string): Promise<readonly Allocation[]>;
  /**
   * Bound → Quarantined, if unchanged, otherwise returns undefined. The record loses its owner and attachment, so
   * that no DEL makes it cool and no claim of the owner gets it back. Survives a power loss. Undoes `created`, the
   * claim of the same ADD, in the same transaction: an agent that dies leaves no half of a pod's addresses. An address
   * that is in quarantine stays there, since the same time.
   */
  quarantine(
    allocation: Allocation,
    quarantine: Quarantine,
    created?: readonly Allocation[],
  ): Promise<Allocation | undefined>;
  /** Returns quarantined addresses, the next to be probed first. */
  findQuarantined(query: QuarantineQuery): Promise<readonly Allocation[]>;
  /**
   * The address was found silent, or no probe is wanted: Quarantined → free. One that is Bound from quarantine is
   * Bound like any other now, and returned. Does nothing, and returns undefined, if the record has changed.
   */
  endQuarantine(allocation: Allocation): Promise<Allocation | undefined>;
  /** Returns all addresses of the span that this node's records have in use, 4 or 16 big-endian bytes each, sorted. */
  readUsed(span: AddressSpan): Promise<Uint8Array>;
  countUsage(): Promise<readonly UsageCount[]>;
  list(after: ListCursor | undefined, limit: number): Promise<readonly Allocation[]>;
  setCooldowns(cooldowns: Cooldowns): void;
}

/** Whether a registry's file can be written. */
export interface RegistryHealth {
  /** Why nothing can be recorded now, a sentence that names the file; undefined if unknown. Does no I/O. */
  readonly trouble: string | undefined;
  /** Calls that are not answered yet. */
  readonly pendingCalls: number;
  /** Updates {@link trouble} by a trial write, if there is trouble or the last trial was a while ago. Never rejects. */
  probe(): Promise<void>;
}

/** A registry in a file. */
export interface FileRegistry extends Registry, RegistryHealth {
  close(): Promise<void>;
}

/** An address that a live NIC has, according to the runtimes. */
export type Recovered = PoolAddress &
  NicOfRow &
  Pick<Allocation, "owner" | "namespace" | "pod" | "mac"> & {
    /** Of the row that the search found; undefined: none. */
    readonly seenVersion?: number | undefined;
  };

/** The embedded mode's registry: after a loss no API server has its rows. */
export interface RecoverableRegistry extends FileRegistry {
  /**
   * `found` become Bound and `gone` cool, if their rows are as the search found them. The registry then counts as
   * complete, which ends a loss. If the file was damaged or lost, all rows that can still be read are written to a new
   * one.
   */
  recover(found: readonly Recovered[], gone: readonly Allocation[]): Promise<void>;
}

/** A call of the registry failed. `full`: the state directory has no room. */
export class RegistryError extends Error {
  override readonly name = "RegistryError";
  readonly full: boolean;

  constructor(message: string, options: { full?: boolean; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.full = options.full ?? false;
  }
}
