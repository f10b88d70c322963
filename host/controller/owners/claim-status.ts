/**
 * Writes into each IPAMClaim the addresses of its NIC (docs/workloads.md). Agents only read claims; the addresses that
 * they gave are in the allocations.
 */

import { ConfigError } from "../../config/config-error.ts";
import { callIfThere } from "../../kubernetes/kube-api.ts";
import { valueAfter } from "../../kubernetes/mirror.ts";
import { IPAM_CLAIMS, objectPath, statusPath } from "../../kubernetes/paths.ts";
import { RefusalsOf } from "../../kubernetes/refused-writes.ts";
import type { PeriodicWorker } from "../../lib/periodic.ts";
import { equalIp, FAMILIES, formatIp, type Ip } from "../../net/ip.ts";
import type { Workload } from "../../resources/member.ts";
import { CLAIM_WRITER, decodeIpamClaim, type IpamClaim } from "../../resources/workloads/ipam-claim.ts";
import type { CachedAllocation } from "../cached-allocation.ts";
import { patchIfSame } from "../patch.ts";
import { startReconciling } from "../reconcile-loop.ts";
import type { ControllerDeps, StartController } from "../types.ts";

/** Delay of an IPAMClaim's status, so that both families share one write: milliseconds. */
const CLAIM_STATUS_REST_MS = 200;

export const startClaimStatus: StartController = (deps) => new ClaimStatusController(deps).loop;

class ClaimStatusController {
  readonly #deps: ControllerDeps;
  readonly loop: PeriodicWorker;
  /** By the claim's UID, then by name. */
  readonly #allocations = new Map<string, Map<string, CachedAllocation>>();
  /** Addresses that the claim has lost, by its UID. */
  readonly #gone = new Map<string, Map<string, Ip>>();
  /** Claims whose allocations have changed, by UID. */
  readonly #changed = new Map<string, Workload>();

  constructor(deps: ControllerDeps) {
    this.#deps = deps;
    const { caches } = deps;
    for (const [name, allocation] of caches.allocations.items) this.#note(name, allocation, undefined);
    this.loop = startReconciling(deps, {
      failure: "Writing the status of an IPAMClaim failed",
      work: () => this.#work(),
      restMs: () => CLAIM_STATUS_REST_MS,
      follow: (wake) => [
        caches.allocations.subscribe((change) => {
          if (this.#note(change.key, valueAfter(change), change.before)) wake();
        }),
      ],
    });
  }

  #note(name: string, now: CachedAllocation | undefined, before: CachedAllocation | undefined): boolean {
    const [kept, former] = [claimOf(now), claimOf(before)];
    if (former !== undefined && former.uid !== kept?.uid) {
      const rest = this.#allocations.get(former.uid);
      rest?.delete(name);
      if (rest?.size === 0) this.#allocations.delete(former.uid);
      if (before !== undefined) this.#gone.getOrInsertComputed(former.uid, () => new Map()).set(name, before.spec.ip);
      this.#changed.set(former.uid, former);
    }
    if (kept === undefined || now === undefined) return former !== undefined;
    this.#gone.get(kept.uid)?.delete(name);
    this.#allocations.getOrInsertComputed(kept.uid, () => new Map()).set(name, now);
    this.#changed.set(kept.uid, kept);
    return true;
  }

  /** A claim that cannot be written does not delay the others. */
  async #work(): Promise<number | undefined> {
    const failures: unknown[] = [];
    const refusals = new RefusalsOf();
    for (const [uid, claim] of [...this.#changed]) {
      // A change from now on counts again.
      this.#changed.delete(uid);
      try {
        const isWritten = await refusals.attempt(() => this.#write(claim).then(() => true), false);
        if (isWritten === false) this.#changed.getOrInsert(uid, claim);
      } catch (error) {
        if (error instanceof ConfigError) {
          this.#deps.log.warn({ err: error }, "An IPAMClaim cannot be decoded; its status stays unchanged");
          continue;
        }
        failures.push(error);
        this.#changed.getOrInsert(uid, claim);
      }
    }
    if (failures.length > 0) throw failures[0];
    return refusals.require();
  }

  async #write(of: Workload): Promise<void> {
    const { api, leading: signal } = this.#deps;
    const { namespace = "", name, uid } = of;
    const object = { namespace, name };
    const found = await callIfThere(api, { method: "GET", path: objectPath(IPAM_CLAIMS, object), signal });
    const claim = found && decodeIpamClaim(found, `IPAMClaim "${namespace}/${name}"`);
    const [own, gone] = [this.#allocations.get(uid)?.values() ?? [], this.#gone.get(uid)?.values() ?? []];
    const status = claim?.uid === uid ? planClaimStatus(claim, [...own], [...gone]) : undefined;
    if (claim === undefined || status === undefined) return void this.#gone.delete(uid);
    const { resourceVersion } = claim;
    const path = statusPath(IPAM_CLAIMS, object);
    const patch = { path, uid, resourceVersion, body: { status }, fieldManager: CLAIM_WRITER, signal };
    if ((await patchIfSame(api, patch)) !== undefined) return void this.#gone.delete(uid);
    // Another writer was faster: compare again.
    this.#changed.set(uid, of);
    this.loop.wake();
  }
}

function claimOf(allocation: CachedAllocation | undefined): Workload | undefined {
  const workload = allocation?.spec.workload;
  return workload?.kind === "IPAMClaim" ? workload : undefined;
}

interface ClaimStatus {
  /** With the prefix length of the pool's subnet, IPv4 first. */
  readonly ips: readonly string[];
  /** The present or last pod with the addresses. */
  readonly ownerPod: string;
}

/**
 * Returns undefined if the status is up to date, or no address was given. Addresses of earlier pods stay in it until
 * there are new ones. Bound or retained addresses, and those in quarantine because their node is lost, stay even then:
 * the next pod requests the status's addresses, and a new one may be of an ADD that is never answered. `gone`:
 * addresses that the claim had and that are in none of these states. Another pod may have them by now, and all later
 * pods of the claim would be refused.
 */
export function planClaimStatus(
  claim: IpamClaim,
  allocations: readonly CachedAllocation[],
  gone: readonly Ip[] = [],
): ClaimStatus | undefined {
  const own = allocations.filter(({ spec }) => isOf(claim, spec.workload));
  // Those in the status already precede; then the highest number, as for the claim's next pod; then those of a pod.
  const ranked = ["Bound", "Kept"]
    .flatMap((state) => own.filter(({ spec }) => spec.state === state))
    .toSorted((a, b) => (b.spec.number ?? 1) - (a.spec.number ?? 1));
  const isSaid = ({ spec }: CachedAllocation): boolean => claim.given.some(({ ip }) => equalIp(ip, spec.ip));
  const given = FAMILIES.flatMap((family) => {
    const ofFamily = ranked.filter(({ spec }) => spec.ip.family === family);
    const ofLostNode = own.find(
      (each) => each.spec.state === "Quarantined" && each.spec.ip.family === family && isSaid(each),
    );
    return ofFamily.find(isSaid) ?? ofLostNode ?? ofFamily[0] ?? [];
  });
  if (given.length === 0) return withdraw(claim, gone);
  const ips = given.map(({ spec }) => `${formatIp(spec.ip)}/${spec.prefixLength}`);
  const ownerPod = given.flatMap(({ spec }) => spec.holders)[0]?.pod ?? claim.ownerPod;
  const before = claim.given.map(({ ip, length }) => `${formatIp(ip)}/${length}`);
  return before.join() === ips.join() && ownerPod === claim.ownerPod ? undefined : { ips, ownerPod };
}

/** Undefined if the status lists none of them. */
function withdraw({ given, ownerPod }: IpamClaim, gone: readonly Ip[]): ClaimStatus | undefined {
  const rest = given.filter(({ ip }) => !gone.some((each) => equalIp(each, ip)));
  if (rest.length === given.length) return undefined;
  const ips = rest.map(({ ip, length }) => `${formatIp(ip)}/${length}`);
  return { ips, ownerPod: rest.length === 0 ? "" : ownerPod };
}

/** The UID alone is not enough: any pod may have it in its owner reference. */
function isOf({ namespace, uid }: IpamClaim, workload: Workload | undefined): boolean {
  return workload?.kind === "IPAMClaim" && workload.namespace === namespace && workload.uid === uid;
}
