/**
 * Writes into each IPAMClaim which addresses its NIC has been given (docs/workloads.md). Agents only read claims: what they gave is in the allocations.
 * One of the controller's parts.
 * Effects: reads claims and writes their status; a timer.
 */

import { ConfigError } from "../../config/config-error.ts";
import { isNotFound } from "../../kubernetes/kube-api.ts";
import { IPAM_CLAIMS, objectPath, statusPath } from "../../kubernetes/paths.ts";
import { FAMILIES, formatIp } from "../../net/ip.ts";
import type { IpAllocation, Workload } from "../../resources/ip-allocation.ts";
import { decodeIpamClaim, type IpamClaim } from "../../resources/workloads/ipam-claim.ts";
import { patchIfSame } from "../patch.ts";
import { Rounds } from "../rounds.ts";
import type { Controller, ControllerDeps, StartController } from "../types.ts";

export interface ClaimStatus {
  /** With the length of the pool's subnet, IPv4 first. */
  readonly ips: readonly string[];
  /** The pod that has them; the last one that had them while none has. */
  readonly ownerPod: string;
}

/** Undefined: it says so already, or nothing has been given. What it was given once stays in it while nothing else is. */
export function planClaimStatus(claim: IpamClaim, allocations: readonly IpAllocation[]): ClaimStatus | undefined {
  const own = allocations.filter(({ spec }) => isOf(claim, spec.workload) && isGiven(spec.state));
  // What a pod has counts before what is kept.
  const ranked = [
    ...own.filter(({ spec }) => spec.state === "Bound"),
    ...own.filter(({ spec }) => spec.state === "Kept"),
  ];
  const given = FAMILIES.flatMap((family) => ranked.find(({ spec }) => spec.ip.family === family) ?? []);
  if (given.length === 0) return undefined;
  const ips = given.map(({ spec }) => `${formatIp(spec.ip)}/${spec.prefixLength}`);
  const ownerPod = given.flatMap(({ spec }) => spec.holders)[0]?.pod ?? claim.ownerPod;
  const before = claim.given.map(({ ip, length }) => `${formatIp(ip)}/${length}`);
  return before.join() === ips.join() && ownerPod === claim.ownerPod ? undefined : { ips, ownerPod };
}

/** Not by its UID alone: that may be in the owner reference of any pod. */
function isOf({ namespace, uid }: IpamClaim, workload: Workload | undefined): boolean {
  return workload?.kind === "IPAMClaim" && workload.namespace === namespace && workload.uid === uid;
}

function isGiven(state: IpAllocation["spec"]["state"]): boolean {
  return state === "Bound" || state === "Kept";
}

/** How long after a change of its allocations the status of an IPAMClaim is written, so that both families are one write: milliseconds. @limit */
export const CLAIM_STATUS_REST_MS = 200;

export const startClaimStatus: StartController = (deps) => new ClaimStatusController(deps);

class ClaimStatusController implements Controller {
  readonly #deps: ControllerDeps;
  readonly #rounds: Rounds;
  readonly #unsubscribe: () => void;
  /** By the claim's UID, then by name. */
  readonly #allocations = new Map<string, Map<string, IpAllocation>>();
  /** Claims whose allocations have changed, by UID. */
  readonly #changed = new Map<string, Workload>();

  constructor(deps: ControllerDeps) {
    this.#deps = deps;
    const { caches, leading, log, random } = deps;
    for (const [name, allocation] of caches.allocations.items) this.#note(name, allocation, undefined);
    this.#rounds = new Rounds({
      ...{ leading, log, random, failure: "The status of an IPAMClaim could not be written" },
      work: () => this.#work(),
      restMs: () => CLAIM_STATUS_REST_MS,
    });
    this.#unsubscribe = caches.allocations.subscribe((change) => {
      const isOurs = this.#note(change.key, change.kind === "set" ? change.value : undefined, change.before);
      if (isOurs) this.#rounds.wake();
    });
  }

  get problems(): readonly string[] {
    return this.#rounds.problems;
  }

  async close(): Promise<void> {
    this.#unsubscribe();
    await this.#rounds.close();
  }

  #note(name: string, now: IpAllocation | undefined, before: IpAllocation | undefined): boolean {
    const [kept, former] = [claimOf(now), claimOf(before)];
    if (former !== undefined && former.uid !== kept?.uid) {
      const rest = this.#allocations.get(former.uid);
      rest?.delete(name);
      if (rest?.size === 0) this.#allocations.delete(former.uid);
    }
    if (kept === undefined || now === undefined) return false;
    const own = this.#allocations.get(kept.uid) ?? new Map<string, IpAllocation>();
    this.#allocations.set(kept.uid, own.set(name, now));
    this.#changed.set(kept.uid, kept);
    return true;
  }

  /** One claim that cannot be written keeps no other waiting. */
  async #work(): Promise<undefined> {
    const failures: unknown[] = [];
    for (const [uid, claim] of [...this.#changed]) {
      // News that come meanwhile count again.
      this.#changed.delete(uid);
      try {
        await this.#write(claim);
      } catch (error) {
        if (error instanceof ConfigError) this.#deps.log.warn({ err: error }, "An IPAMClaim cannot be understood");
        else failures.push(error);
        if (!(error instanceof ConfigError) && !this.#changed.has(uid)) this.#changed.set(uid, claim);
      }
    }
    if (failures.length > 0) throw failures[0];
  }

  async #write(of: Workload): Promise<void> {
    const { api, leading: signal } = this.#deps;
    const { namespace = "", name, uid } = of;
    const object = { namespace, name };
    try {
      const claim = decodeIpamClaim(
        await api.call({ method: "GET", path: objectPath(IPAM_CLAIMS, object), signal }),
        `IPAMClaim "${namespace}/${name}"`,
      );
      if (claim.uid !== uid) return;
      const status = planClaimStatus(claim, [...(this.#allocations.get(uid)?.values() ?? [])]);
      if (status === undefined) return;
      const { resourceVersion } = claim;
      const patch = { path: statusPath(IPAM_CLAIMS, object), uid, resourceVersion, body: { status }, signal };
      if ((await patchIfSame(api, patch)) !== undefined) return;
      // Another writer was faster: its addresses are compared again.
      this.#changed.set(uid, of);
      this.#rounds.wake();
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
}

function claimOf(allocation: IpAllocation | undefined): Workload | undefined {
  const workload = allocation?.spec.workload;
  return workload?.kind === "IPAMClaim" ? workload : undefined;
}
