/**
 * Claims while the registry may lack what running pods have (registry-epoch): what the journal does not have as this
 * pod's is probed before it is recorded, whatever the settings say, or refused until all nodes have written. Of blocks
 * that the hub has not confirmed nothing is given.
 */
import { CniError, ErrorCode } from "../../cni/error.ts";
import type { Picked } from "../../ipam/pick.ts";
import type { PoolCache } from "../../ipam/pool-cache.ts";
import { formatIp, type Ip } from "../../net/ip.ts";
import type { Mac } from "../../net/mac.ts";
import type { Claiming, FirstClaims } from "../../registry/epoch/registry-epoch.ts";
import { UNKNOWN_CONTAINER } from "../../registry/journal.ts";
import { nameOf } from "../../registry/kubernetes/known-object.ts";
import type { Allocation, Registry } from "../../registry/registry.ts";
import type { Claimed } from "./allocate.ts";
import type { AddressDemand } from "./sources/source.ts";

/** Time for which an ADD waits for the nodes to write, before it probes or is refused: milliseconds. @limit */
const EPOCH_WAIT_MS = 5_000;

/** The NIC of the ADD as a means of probing. */
interface Probe {
  /** Whether it can be probed now. */
  readonly isPossible: () => boolean;
  /** Probes these addresses. Returns who answers; undefined: no answer. Rejects if it cannot. */
  readonly ask: (ips: readonly Ip[]) => Promise<{ readonly ip: Ip; readonly mac: Mac | undefined } | undefined>;
}

interface ProbationDeps {
  readonly epoch: FirstClaims | undefined;
  readonly registry: Pick<Registry, "findOwner" | "undo">;
  readonly poolCache: Pick<PoolCache, "findDoubt" | "findDoubtOf">;
  /** Absent ahead of the ADD: nothing is claimed while the epoch is open. */
  readonly probe?: Probe | undefined;
}

/**
 * Runs a claim; `admit` is to end before each attempt to record addresses. What was recorded while the registry was
 * found to be another one is undone. Throws CniError 11.
 */
export async function claimFirst(
  { epoch, ...deps }: ProbationDeps,
  demand: AddressDemand,
  claim: (demand: AddressDemand) => Promise<Claimed>,
): Promise<Claimed> {
  if (epoch === undefined) return claim(demand);
  const claiming = epoch.claiming();
  try {
    const probation = new Probation({ epoch, ...deps }, demand, claiming);
    const claimed = await claim({
      ...demand,
      // What would be picked in its place may not be recorded now.
      ownFirst: epoch.isOpen,
      admit: (picked) => probation.admit(picked),
    });
    if (claimed.created.length === 0 || !(await probation.isOutdated())) return claimed;
    await deps.registry.undo(claimed.created);
    throw refusal(epoch);
  } finally {
    claiming.end();
  }
}

class Probation {
  readonly #deps: ProbationDeps & { readonly epoch: FirstClaims };
  readonly #demand: AddressDemand;
  readonly #claiming: Claiming;
  #patience: AbortSignal | undefined;

  constructor(deps: ProbationDeps & { readonly epoch: FirstClaims }, demand: AddressDemand, claiming: Claiming) {
    this.#deps = deps;
    this.#demand = demand;
    this.#claiming = claiming;
  }

  async admit(picked: readonly Picked[]): Promise<void> {
    const { epoch, probe } = this.#deps;
    if (await this.isOutdated()) throw refusal(epoch);
    const isFirst = async (): Promise<boolean> => (await this.#findFirst(picked)).length > 0;
    if (epoch.isOpen && (await isFirst())) await this.#wait((signal) => this.#claiming.settled(signal));
    if (this.#claiming.isOutdated) throw refusal(epoch);
    const first = await this.#findFirst(picked);
    if (first.length === 0) return;
    const doubted = first.find(({ doubt }) => doubt !== undefined);
    if (doubted !== undefined) throw await this.#refuseDoubted(doubted);
    const { ifName } = this.#demand.claimant;
    if (probe?.isPossible() !== true || first.some((each) => each.ifName !== ifName))
      throw await this.#giveUp(first, refusal(epoch, first[0]?.ip));
    const conflict = await probe.ask(first.map(({ ip }) => ip)).catch(async (error: unknown) => {
      this.#demand.deadline.signal.throwIfAborted();
      throw await this.#giveUp(first, refusal(epoch, first[0]?.ip, error));
    });
    if (conflict !== undefined) throw await this.#giveUp(first, answered(epoch, conflict));
    for (const { name } of first) epoch.verified(name);
  }

  /**
   * What was taken in from the registry's past and cannot be shown to be the pod's makes room for another address, once
   * all nodes have written. Returns the refusal of this attempt.
   */
  async #giveUp(first: readonly FirstAddress[], refused: CniError): Promise<CniError> {
    const { epoch, registry } = this.#deps;
    const rows = first.flatMap(({ row }) => row ?? []);
    if (epoch.isOpen || rows.length === 0) return refused;
    await registry.undo(rows);
    for (const row of rows) epoch.verified(nameOf(row));
    return refused;
  }

  /** What was claimed ahead makes room for another address if its block is gone. Returns this attempt's refusal. */
  async #refuseDoubted({ ip, doubt = "", row, isLost }: FirstAddress): Promise<CniError> {
    if (row !== undefined && isLost === true) await this.#deps.registry.undo([row]);
    return new CniError(ErrorCode.TryAgainLater, `Address ${formatIp(ip)} is not given: ${doubt}; try again`);
  }

  /** Whether the registry was found to be another one since the claim began, or may be and cannot be asked. */
  async isOutdated(): Promise<boolean> {
    const { line } = this.#deps.epoch;
    if (!line.isUp) await this.#wait((signal) => line.up(signal));
    return this.#claiming.isOutdated || !line.isUp;
  }

  /** Waits for so long in all. */
  async #wait(until: (signal: AbortSignal) => Promise<void>): Promise<void> {
    if (this.#deps.probe === undefined) return;
    const { signal } = this.#demand.deadline;
    this.#patience ??= AbortSignal.timeout(EPOCH_WAIT_MS);
    const tooLong = this.#patience;
    await until(AbortSignal.any([signal, tooLong])).catch((error: unknown) => {
      if (!tooLong.aborted || signal.aborted) throw error;
    });
  }

  /** Returns the addresses that the claim would give to the pod for the first time as far as the journal knows. */
  async #findFirst(picked: readonly Picked[]): Promise<readonly FirstAddress[]> {
    const { nics, claimant } = this.#demand;
    const rows = await this.#deps.registry.findOwner(claimant.owner);
    const each = nics.flatMap(({ ifName, families }) => families.map(({ family }) => ({ ifName, family })));
    return each.flatMap(({ ifName, family }) => {
      const isOfNic = (of: { readonly ifName: string; readonly ip: Ip }): boolean =>
        of.ifName === ifName && of.ip.family === family;
      const row = rows.find((of) => of.state === "Bound" && isOfNic(of));
      if (row === undefined) return this.#firstOf(picked.find(isOfNic));
      // Another NIC's is looked at when that comes.
      if (ifName !== claimant.ifName) return [];
      const isOnNic = row.containerId !== "" && isKnown(row);
      const doubt = isOnNic ? undefined : this.#deps.poolCache.findDoubtOf(row);
      return doubt !== undefined || this.#isDoubtful(row) ? [{ ...row, ...doubt, name: nameOf(row), row }] : [];
    });
  }

  #isDoubtful(row: Allocation): boolean {
    const { epoch } = this.#deps;
    return epoch.isUnverified(nameOf(row)) || (epoch.isOpen && !isKnown(row));
  }

  /** Also of one that cools here as the pod's: nothing has kept others from it since its sandbox ended. */
  #firstOf(pick: Picked | undefined): readonly FirstAddress[] {
    if (pick === undefined) return [];
    const { ip, ifName, pool } = pick;
    const doubt = this.#deps.poolCache.findDoubt(pool);
    if (!this.#deps.epoch.isOpen && doubt === undefined) return [];
    const name = nameOf({ space: pool.spec.addressSpace, ip });
    return [{ ip, ifName, name, doubt: doubt && `pool "${pool.name}" gives none ${doubt}` }];
  }
}

interface FirstAddress {
  readonly ip: Ip;
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

function refusal(epoch: FirstClaims, ip?: Ip, cause?: unknown): CniError {
  const which = ip === undefined ? "" : ` Address ${formatIp(ip)} cannot be probed on this interface now.`;
  const text = epoch.isOpen
    ? `${REGISTRY}; this pod waits for ${epoch.waitsFor}.${which} Try again`
    : `${REGISTRY}.${which} Try again`;
  return new CniError(ErrorCode.TryAgainLater, text, cause === undefined ? {} : { cause });
}

function answered(epoch: FirstClaims, { ip, mac }: { readonly ip: Ip; readonly mac: Mac | undefined }): CniError {
  const waiting = epoch.isOpen ? `; first addresses wait for ${epoch.waitsFor}` : "";
  const text = `${REGISTRY}: ${mac ?? "a machine"} answers for address ${formatIp(ip)}${waiting}; try again`;
  return new CniError(ErrorCode.TryAgainLater, text);
}
