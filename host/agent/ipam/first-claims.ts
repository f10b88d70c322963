/**
 * Claims while the registry may lack what running pods have (registry-epoch): what the journal does not have as this
 * pod's is probed before it is recorded, whatever the settings say, or refused until all nodes have written. The same
 * holds for what is retained in blocks that the hub has not confirmed for this registry; others of those are refused.
 */
import { CniError, ErrorCode } from "../../cni/error.ts";
import type { Picked } from "../../ipam/pick.ts";
import { equalIp, formatIp, type Ip } from "../../net/ip.ts";
import type { Mac } from "../../net/mac.ts";
import type { Claiming, FirstClaims } from "../../registry/epoch/registry-epoch.ts";
import { UNKNOWN_CONTAINER } from "../../registry/journal.ts";
import { nameOf } from "../../registry/kubernetes/known-object.ts";
import type { Allocation, Registry } from "../../registry/registry.ts";
import { isConfirmed } from "../../resources/pool-source.ts";
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
  /** Absent ahead of the ADD: nothing is claimed while the epoch is open. */
  readonly probe?: Probe | undefined;
}

/**
 * Runs a claim; `admit` is to end before each attempt to record addresses. What was recorded while the registry was
 * found to be another one is undone. Throws CniError 11.
 */
export async function claimFirst(
  { epoch, registry, probe }: ProbationDeps,
  demand: AddressDemand,
  claim: (demand: AddressDemand) => Promise<Claimed>,
): Promise<Claimed> {
  if (epoch === undefined) return claim(demand);
  const claiming = epoch.claiming();
  try {
    const probation = new Probation({ epoch, registry, probe }, demand, claiming);
    const claimed = await claim({
      ...demand,
      // What would be picked in its place may not be recorded now.
      ownFirst: epoch.isOpen,
      admit: (picked) => probation.admit(picked),
    });
    if (claimed.created.length === 0 || !(await probation.isOutdated())) return claimed;
    await registry.undo(claimed.created);
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
    const isFirstPick = ({ ifName, ip }: Picked): boolean =>
      first.some((each) => each.ifName === ifName && equalIp(each.ip, ip));
    const foreign = picked.find((each) => this.#isUnconfirmed(each) && !isMembers(each) && isFirstPick(each));
    if (foreign !== undefined) throw unconfirmed(foreign);
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
      return ifName === claimant.ifName && this.#isDoubtful(row) ? [{ ...row, name: nameOf(row), row }] : [];
    });
  }

  #isDoubtful(row: Allocation): boolean {
    const { epoch } = this.#deps;
    return epoch.isUnverified(nameOf(row)) || (epoch.isOpen && !isKnown(row));
  }

  #isUnconfirmed({ pool: { source } }: Picked): boolean {
    return source !== undefined && !isConfirmed(source, this.#deps.epoch.inForce);
  }

  /** Also of one that cools here as the pod's: nothing has kept others from it since its sandbox ended. */
  #firstOf(pick: Picked | undefined): readonly FirstAddress[] {
    if (pick === undefined || !(this.#deps.epoch.isOpen || this.#isUnconfirmed(pick))) return [];
    const { ip, ifName, pool } = pick;
    return [{ ip, ifName, name: nameOf({ space: pool.spec.addressSpace, ip }) }];
  }
}

/** Returns whether the pod's member had the address before, as far as is recorded. */
function isMembers({ source }: Picked): boolean {
  return source === "retained" || source === "own";
}

interface FirstAddress {
  readonly ip: Ip;
  readonly ifName: string;
  readonly name: string;
  /** The pod's row, if it has one. */
  readonly row?: Allocation;
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

function unconfirmed({ ip, pool }: Picked): CniError {
  const why = `the hub has not confirmed the blocks of pool "${pool.name}" in this epoch of the registry`;
  return new CniError(ErrorCode.TryAgainLater, `Address ${formatIp(ip)} is not given yet: ${why}; try again`);
}

function answered(epoch: FirstClaims, { ip, mac }: { readonly ip: Ip; readonly mac: Mac | undefined }): CniError {
  const waiting = epoch.isOpen ? `; first addresses wait for ${epoch.waitsFor}` : "";
  const text = `${REGISTRY}: ${mac ?? "a machine"} answers for address ${formatIp(ip)}${waiting}; try again`;
  return new CniError(ErrorCode.TryAgainLater, text);
}
