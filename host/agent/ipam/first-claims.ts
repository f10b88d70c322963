/**
 * Claims while the registry may lack running pods' addresses (registry-epoch): an address that is not this pod's in the
 * journal is probed before it is recorded, whatever the settings, or refused until all nodes have written. Blocks that
 * the hub has not confirmed give none.
 */
import { CniError, ErrorCode } from "../../cni/error.ts";
import type { Proposal } from "../../ipam/pick.ts";
import type { PoolCache } from "../../ipam/pool-cache.ts";
import { formatIp, type Ip } from "../../net/ip.ts";
import type { Mac } from "../../net/mac.ts";
import type { Claiming, FirstClaims } from "../../registry/epoch/registry-epoch.ts";
import { UNKNOWN_CONTAINER } from "../../registry/journal.ts";
import { nameOf } from "../../registry/kubernetes/known-object.ts";
import type { Allocation, Registry } from "../../registry/registry.ts";
import type { EarlyStage } from "../detection/verify-addresses.ts";
import type { Claimed } from "./allocate.ts";
import type { AddressDemand } from "./sources/source.ts";

/** Time for which an ADD waits for the nodes to write, before it probes or is refused: milliseconds. @limit */
const EPOCH_WAIT_MS = 5_000;

interface ClaimFirstDeps {
  readonly epoch: FirstClaims;
  readonly registry: Pick<Registry, "findOwner" | "undo">;
  readonly poolCache: Pick<PoolCache, "find" | "findDoubt" | "findDoubtOf" | "leasing">;
  /** Absent ahead of the ADD: nothing is claimed while the epoch is open. */
  readonly ask?: EarlyStage["ask"];
}

/**
 * Runs a claim; `admit` must end before each attempt to record addresses. Undoes records of a registry that turned out
 * to be another one. Throws CniError 11.
 */
export async function claimFirst(
  deps: ClaimFirstDeps,
  demand: AddressDemand,
  claim: (demand: AddressDemand) => Promise<Claimed>,
): Promise<Claimed> {
  const { epoch } = deps;
  const claiming = epoch.claiming();
  const isSure = (): boolean => epoch.line.isUp() && !claiming.isOutdated();
  const isPlain = (): boolean => isSure() && !epoch.isOpen && !epoch.hasUnverified && deps.poolCache.leasing.size === 0;
  let probation: Probation | undefined;
  const probe = (): Probation => {
    probation ??= new Probation({ ...deps, demand, claiming });
    return probation;
  };
  try {
    const claimed = await claim({
      ...demand,
      // Another address in its place may not be recorded now.
      ownFirst: epoch.isOpen,
      admit: async (picked) => {
        if (!isPlain()) await probe().admit(picked);
      },
    });
    if (claimed.created.length > 0 && !isSure()) await probe().confirm(claimed.created);
    return claimed;
  } finally {
    claiming.end();
  }
}

interface ProbationDeps extends ClaimFirstDeps {
  readonly demand: AddressDemand;
  readonly claiming: Claiming;
}

class Probation {
  readonly #deps: ProbationDeps;
  #patience: AbortSignal | undefined;

  constructor(deps: ProbationDeps) {
    this.#deps = deps;
  }

  async admit(picked: readonly Proposal[]): Promise<void> {
    const { epoch, ask, demand, claiming } = this.#deps;
    const isFirst = async (isUnheard: boolean) => (await this.#findFirst(picked, isUnheard)).length > 0;
    if (!epoch.line.isUp() && (await isFirst(true))) await this.#hear();
    if (epoch.isOpen && (await isFirst(false))) await this.#wait((signal) => claiming.settled(signal));
    if (claiming.isOutdated()) throw refusal(epoch);
    const first = await this.#findFirst(picked, false);
    const doubted = first.find(({ doubt }) => doubt !== undefined);
    if (doubted !== undefined) throw await this.#refuseDoubted(doubted);
    const [{ ip } = {}] = first;
    if (ip === undefined) return;
    if (ask === undefined || first.some(({ ifName }) => ifName !== demand.claimant.ifName)) throw refusal(epoch, ip);
    const ips = first.flatMap((each) => each.ip ?? []);
    const conflict = await ask(ips, demand.deadline.signal).catch(async (error: unknown) => {
      demand.deadline.signal.throwIfAborted();
      throw await this.#giveUp(first, refusal(epoch, ip, error));
    });
    if (conflict !== undefined) throw await this.#giveUp(first, answered(epoch, conflict));
    for (const { name } of first) epoch.verified(name);
  }

  /**
   * Addresses taken in from the registry's past that cannot be shown to be the pod's make room for others, once all
   * nodes have written. Returns the refusal of this attempt.
   */
  async #giveUp(first: readonly FirstAddress[], refused: CniError): Promise<CniError> {
    const { epoch, registry } = this.#deps;
    const rows = first.flatMap(({ row }) => row ?? []);
    if (epoch.isOpen || rows.length === 0) return refused;
    await registry.undo(rows);
    for (const row of rows) epoch.verified(nameOf(row));
    return refused;
  }

  /** An address claimed ahead makes room for another one if its block is gone. Returns this attempt's refusal. */
  async #refuseDoubted({ ip, doubt, row, isLost }: FirstAddress): Promise<CniError> {
    if (row !== undefined && isLost === true) await this.#deps.registry.undo([row]);
    return new CniError(ErrorCode.TryAgainLater, `Address ${ip && formatIp(ip)} is not given: ${doubt}; try again`);
  }

  /** Undoes the records, unless the registry is still known to be the one in which the claim began. */
  async confirm(created: readonly Allocation[]): Promise<void> {
    try {
      await this.#hear();
      if (this.#deps.claiming.isOutdated()) throw refusal(this.#deps.epoch);
    } catch (error) {
      await this.#deps.registry.undo(created);
      throw error;
    }
  }

  /** Another registry can only be behind an interruption. */
  async #hear(): Promise<void> {
    const { line } = this.#deps.epoch;
    if (!line.isUp()) await this.#wait((signal) => line.up(signal));
    if (!line.isUp()) throw new CniError(ErrorCode.TryAgainLater, `${line.silence()}. ${NOT_NOW}`);
  }

  /** Waits for so long in all. */
  async #wait(until: (signal: AbortSignal) => Promise<void>): Promise<void> {
    if (this.#deps.ask === undefined) return;
    const { signal } = this.#deps.demand.deadline;
    this.#patience ??= AbortSignal.timeout(EPOCH_WAIT_MS);
    const tooLong = this.#patience;
    await until(AbortSignal.any([signal, tooLong])).catch((error: unknown) => {
      if (!tooLong.aborted || signal.aborted) throw signal.reason ?? error;
    });
  }

  /**
   * Returns the addresses that the claim would give to the pod for the first time as far as the journal knows.
   * `isUnheard`: as if the epoch were open, and without an address where none was found.
   */
  async #findFirst(picked: readonly Proposal[], isUnheard: boolean): Promise<readonly FirstAddress[]> {
    const { epoch, poolCache, registry, demand } = this.#deps;
    const { nics, claimant } = demand;
    const isOpen = isUnheard || epoch.isOpen;
    const rows = await registry.findOwner(claimant.owner);
    const each = nics.flatMap(({ ifName, families }) => families.map(({ family }) => ({ ifName, family })));
    return each.flatMap(({ ifName, family }): readonly FirstAddress[] => {
      const isOfNic = (of: { readonly ifName: string; readonly ip: Ip }): boolean =>
        of.ifName === ifName && of.ip.family === family;
      const row = rows.find((of) => of.state === "Bound" && isOfNic(of));
      const pick = picked.find(isOfNic);
      const isOwn = ifName === claimant.ifName;
      if (row === undefined && pick !== undefined) return this.#firstOf(pick, isOpen);
      if (row === undefined) return isUnheard && isOwn ? [{ ifName, name: "" }] : [];
      // Another NIC's is looked at when that comes.
      if (!isOwn) return [];
      const doubt = row.containerId !== "" && isKnown(row) ? undefined : poolCache.findDoubtOf(row);
      const isFirst = doubt !== undefined || epoch.isUnverified(nameOf(row)) || (isOpen && !isKnown(row));
      return isFirst ? [{ ...row, ...doubt, name: nameOf(row), row }] : [];
    });
  }

  /** Also an address that cools here as the pod's: since its sandbox ended, others could get it. */
  #firstOf(picked: Proposal, isOpen: boolean): readonly FirstAddress[] {
    const { ip, ifName, pool } = picked;
    const { poolCache } = this.#deps;
    const found = poolCache.find(pool);
    const doubt = found && poolCache.findDoubt(found);
    if (!isOpen && doubt === undefined) return [];
    return [{ ip, ifName, name: nameOf(picked), doubt: doubt && `pool "${pool}" gives none ${doubt}` }];
  }
}

interface FirstAddress {
  /** Undefined if none was found. */
  readonly ip?: Ip;
  readonly ifName: string;
  readonly name: string;
  /** The pod's row, if it has one. */
  readonly row?: Allocation;
  /** Why it is not given, a clause: its block may be another cluster's, or `isLost`: is not this one's. */
  readonly doubt?: string | undefined;
  readonly isLost?: boolean;
}

/** An ADD was answered with it, or it was claimed before the registry was another one. */
function isKnown({ isConfirmed, containerId }: Allocation): boolean {
  return isConfirmed !== false && containerId !== UNKNOWN_CONTAINER;
}

const REGISTRY =
  "The registry of addresses has just appeared or went back in time, and may lack what running pods have";

const NOT_NOW =
  "Until it does, pods get only what is recorded as theirs. Try again; if this lasts, look at the API server and the network to it";

function refusal(epoch: FirstClaims, ip?: Ip, cause?: unknown): CniError {
  const waiting = epoch.isOpen ? `; this pod waits for ${epoch.waitsFor}` : "";
  const which = ip === undefined ? "" : ` Address ${formatIp(ip)} cannot be probed on this interface now.`;
  const text = `${REGISTRY}${waiting}.${which} Try again`;
  return new CniError(ErrorCode.TryAgainLater, text, cause === undefined ? {} : { cause });
}

function answered(epoch: FirstClaims, { ip, mac }: { readonly ip: Ip; readonly mac: Mac | undefined }): CniError {
  const waiting = epoch.isOpen ? `; first addresses wait for ${epoch.waitsFor}` : "";
  const text = `${REGISTRY}: ${mac ?? "a machine"} answers for address ${formatIp(ip)}${waiting}; try again`;
  return new CniError(ErrorCode.TryAgainLater, text);
}
