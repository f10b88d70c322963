/**
 * Returns blocks of one range: each address of a block is claimed with the same create as a pod's, so that what is in
 * use fails the claim, and the create of an agent that has not heard of it fails, too. The claims stay for a while
 * after the hub has the block back, so that such creates are few; agents read the pool after theirs
 * (docs/decisions/0055).
 *
 * A claim counts if this process has written it since it last meant to delete it: what an earlier leader still deletes
 * is then another version.
 */

import type { ControllerDeps } from "../../../host/controller/types.ts";
import { isConflict } from "../../../host/kubernetes/kube-api.ts";
import { inParallel } from "../../../host/lib/in-parallel.ts";
import type { Ip } from "../../../host/net/ip.ts";
import { formatPrefix, type Prefix, parsePrefix } from "../../../host/net/prefix.ts";
import { AllocationObjects } from "../../../host/registry/kubernetes/allocation-objects.ts";
import {
  allocationName,
  blockClaimant,
  type IpAllocation,
  type IpAllocationSpec,
  parseAllocationName,
} from "../../../host/resources/ip-allocation.ts";
import type { SourceView } from "../blocks/block-source.ts";

/** Claims that are written or deleted at once. */
const CLAIMS_AT_ONCE = 8;

/** Time for which claims stay after the hub has confirmed that it has the block back: milliseconds. */
export const CLAIMS_LEFT_MS = 120_000;

type Written = Pick<IpAllocation, "uid" | "resourceVersion">;

interface Leaving extends Written {
  /** Since the hub was found not to have leased the block to this cluster. */
  readonly sinceMs: number;
}

export class BlockReturns {
  readonly #deps: Pick<ControllerDeps, "api" | "clock" | "leading">;
  readonly #objects: AllocationObjects;
  readonly #range: string;
  /** By name: the claims that this process has written. */
  readonly #written = new Map<string, Written>();
  /** By name: claims of blocks that the hub has back. */
  readonly #leaving = new Map<string, Leaving>();
  readonly #progress = new Map<string, "claimed" | "refused">();

  constructor(deps: Pick<ControllerDeps, "api" | "clock" | "leading">, range: string) {
    this.#deps = deps;
    this.#objects = new AllocationObjects(deps.api);
    this.#range = range;
  }

  /** `claims`: those of the block that are recorded. */
  progressOf(block: string, claims: readonly string[]): "begun" | "claimed" | "refused" | undefined {
    const isBegun = claims.some((name) => !this.#leaving.has(name));
    return this.#progress.get(block) ?? (isBegun ? "begun" : undefined);
  }

  /** The block is not returned, or not any more. */
  forget(block: string): void {
    this.#progress.delete(block);
  }

  /** Claims all addresses of the block, once. Rejects when there is no answer; what was claimed by then counts. */
  async claim(block: string, of: { readonly pool: string; readonly view: SourceView }): Promise<void> {
    // What was refused is tried again when the pool's status no longer says that the block is returned.
    if (this.#progress.has(block)) return;
    const prefix = parsePrefix(block);
    if (prefix === undefined) return;
    let isRefused = false;
    await inParallel(addressesOf(prefix, of.view.size), CLAIMS_AT_ONCE, async (ip) => {
      if (!isRefused && !(await this.#claimOne(ip, of))) isRefused = true;
    });
    this.#progress.set(block, isRefused ? "refused" : "claimed");
  }

  async #claimOne(ip: Ip, { pool, view }: { readonly pool: string; readonly view: SourceView }): Promise<boolean> {
    const name = allocationName(ip, view.addressSpace);
    if (this.#written.has(name)) return true;
    const spec: IpAllocationSpec = {
      ...{ ip, addressSpace: view.addressSpace, prefixLength: view.subnet.length, pool },
      ...{ state: "Quarantined", node: blockClaimant(this.#range), holders: [] },
      quarantine: { reason: "BlockReturned", mac: "", parent: "" },
      since: this.#deps.clock.now().toISOString(),
    };
    try {
      this.#written.set(name, await this.#objects.create(spec, this.#terms, () => undefined));
      return true;
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
    const found = await this.#read(name);
    if (found === undefined) return false;
    this.#written.set(name, await this.#objects.replace(spec, found, this.#terms));
    return true;
  }

  /**
   * The hub has not leased the block of these claims to this cluster. Deletes those of which it has been so for
   * CLAIMS_LEFT_MS.
   */
  async leave(names: readonly string[]): Promise<void> {
    const { clock } = this.#deps;
    await inParallel(names, CLAIMS_AT_ONCE, async (name) => {
      const known = this.#leaving.get(name);
      if (known !== undefined && clock.nowMs() - known.sinceMs < CLAIMS_LEFT_MS) return;
      if (known !== undefined) return this.#delete(name, known);
      this.#written.delete(name);
      const found = await this.#read(name);
      if (found !== undefined) this.#leaving.set(name, { ...found, sinceMs: clock.nowMs() });
    });
  }

  /**
   * The block of these claims is leased to this cluster again, or is not returned after all. `isKept` asks the API
   * server whether it is returned.
   */
  async withdraw(names: readonly string[], isKept: () => Promise<boolean>): Promise<void> {
    const found = await inParallel(names, CLAIMS_AT_ONCE, async (name) => {
      const known = this.#leaving.get(name) ?? this.#written.get(name);
      this.#written.delete(name);
      const claim = known ?? (await this.#read(name));
      return claim && { name, claim };
    });
    // Asked after the claims were read: later ones have another version.
    if (await isKept()) return;
    await inParallel(found, CLAIMS_AT_ONCE, async (each) => each && this.#delete(each.name, each.claim));
  }

  async #delete(name: string, of: Written): Promise<void> {
    this.#leaving.delete(name);
    try {
      await this.#objects.delete(name, of, this.#terms);
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
  }

  /** Returns undefined if the address is recorded for anything else, or free. */
  async #read(name: string): Promise<Written | undefined> {
    const found = await this.#objects.get(name, this.#terms);
    if (found?.spec.quarantine?.reason !== "BlockReturned") return undefined;
    return found.spec.node === blockClaimant(this.#range) ? found : undefined;
  }

  get #terms() {
    return { lane: "background", signal: this.#deps.leading } as const;
  }
}

function addressesOf({ ip: { family, value } }: Prefix, size: number): readonly Ip[] {
  return Array.from({ length: size }, (_, at) => ({ family, value: value + BigInt(at) }));
}

/** Returns the block that the address of the claim is in; undefined if the range has none. */
export function blockOfClaim(name: string, view: SourceView): string | undefined {
  const parsed = parseAllocationName(name);
  return parsed === undefined || parsed.addressSpace !== view.addressSpace ? undefined : blockOf(parsed.ip, view);
}

/** Returns the block that the address is in; undefined if it is of the other family. */
export function blockOf(
  { family, value }: Ip,
  { subnet, size }: Pick<SourceView, "subnet" | "size">,
): string | undefined {
  const bits = BigInt(Math.log2(size));
  const length = (family === 4 ? 32 : 128) - Number(bits);
  return family === subnet.ip.family
    ? formatPrefix({ ip: { family, value: (value >> bits) << bits }, length })
    : undefined;
}
