/**
 * Addresses whose workload was recreated, with another UID, around their pods (`--cascade=orphan`, a restored backup).
 * While such a pod lives, it names its owner; its node's agent follows a StatefulSet by itself, unless the agent is
 * away.
 */

import { decodePodAnnotations } from "../../config/annotations.ts";
import { claimsOf } from "../../ipam/retention.ts";
import { isOutdated } from "../../kubernetes/kube-api.ts";
import { ADDRESS_OWNERS, PODS } from "../../kubernetes/paths.ts";
import { orElse } from "../../lib/try-or.ts";
import { readAllocation, replaceAllocation } from "../../registry/kubernetes/allocation-objects.ts";
import type { Holder } from "../../resources/ip-allocation.ts";
import { hasNamedPods, listedKind, type Workload } from "../../resources/member.ts";
import { decodePod, type Pod } from "../../resources/pod.ts";
import { decodeIpamClaim } from "../../resources/workloads/ipam-claim.ts";
import { decodeMachine, isKubevirt } from "../../resources/workloads/virtual-machine.ts";
import { firstNicOf, settingsOf } from "../caches.ts";
import type { ControllerDeps } from "../types.ts";
import { COLLECTION_PATIENCE_MS, readObject } from "./read-status.ts";

/** Times after an owner's deletion at which its addresses are checked: a new owner adopts the pods by and by. */
const FOLLOW_AFTER_MS = [2_000, 10_000, 60_000];

interface RecreatedDeps extends Pick<ControllerDeps, "api" | "caches" | "owners" | "clock" | "log"> {
  readonly signal: AbortSignal;
}

export class RecreatedOwners {
  readonly #deps: RecreatedDeps;
  #dueMs: readonly number[] = [];

  constructor(deps: RecreatedDeps) {
    this.#deps = deps;
  }

  /** An owner was deleted or has changed. */
  ownerChanged(): void {
    const nowMs = this.#deps.clock.nowMs();
    const next = FOLLOW_AFTER_MS.map((milliseconds) => nowMs + milliseconds);
    this.#dueMs = [...this.#dueMs.slice(0, FOLLOW_AFTER_MS.length), ...next];
  }

  /** Returns the names of the allocations to check now; the cache only tells candidates. */
  due(): readonly string[] {
    const nowMs = this.#deps.clock.nowMs();
    const left = this.#dueMs.filter((dueMs) => dueMs > nowMs);
    if (left.length === this.#dueMs.length) return [];
    this.#dueMs = left;
    return this.find();
  }

  /** Returns the cached allocations in use whose workload has another UID now. */
  find(): readonly string[] {
    const { caches, owners } = this.#deps;
    const found: string[] = [];
    for (const { name, spec } of caches.allocations.items.values()) {
      if (spec.state !== "Bound" || spec.workload === undefined) continue;
      const uid = owners.addresses.findUid(spec.workload);
      if (uid !== undefined && uid !== spec.workload.uid) found.push(name);
    }
    return found;
  }

  /** Reads everything from the API server, and writes the workload that all pods of the address name. */
  async follow(name: string): Promise<void> {
    const { api, owners, signal, log } = this.#deps;
    const terms = { lane: "background", signal } as const;
    const object = await readAllocation(api, name, { ...terms, patienceMs: COLLECTION_PATIENCE_MS });
    const workload = object?.spec.state === "Bound" && !object.deleting ? object.spec.workload : undefined;
    if (object === undefined || workload === undefined) return;
    const uids = await Promise.all(object.spec.holders.map((holder) => this.#readUid(workload, holder)));
    const [uid] = uids;
    if (uid === undefined || uid === workload.uid || uids.some((each) => each !== uid)) return;
    const now = { ...workload, uid };
    if ((await owners.addresses.readLiveness(workload, signal)) !== "gone") return;
    if ((await owners.addresses.readLiveness(now, signal)) !== "alive") return;
    await replaceAllocation(api, { ...object.spec, workload: now }, object, terms).catch(orElse(isOutdated, undefined));
    log.info({ address: name, workload: now }, "An address follows its workload, which was created again");
  }

  /** Returns the UID of the workload, by name and kind, that the holder's pod names; undefined if there is none. */
  async #readUid(workload: Workload, { namespace, pod: name, podUid, ifName }: Holder): Promise<string | undefined> {
    const object = await readObject(this.#deps, PODS, { namespace, name });
    const pod = object && decodePod(object, `Pod "${namespace}/${name}"`);
    if (pod?.uid !== podUid || pod.isFinished || namespace !== workload.namespace) return undefined;
    return workload.kind === "IPAMClaim"
      ? this.#uidOfClaim(workload, pod, ifName)
      : this.#uidOfController(workload, pod);
  }

  async #uidOfController(workload: Workload, pod: Pod): Promise<string | undefined> {
    const { controller: owner } = pod;
    if (owner === undefined) return undefined;
    const { kind, apiVersion, name, uid } = owner;
    if (hasNamedPods(workload.kind)) {
      const own = apiVersion === "apps/v1" ? kind : listedKind(owner);
      return own === workload.kind && name === workload.name && pod.name === workload.member ? uid : undefined;
    }
    if (workload.kind !== "VirtualMachine" || kind !== "VirtualMachineInstance" || !isKubevirt(apiVersion))
      return undefined;
    const run = await readObject(this.#deps, ADDRESS_OWNERS.VirtualMachineInstance, { namespace: pod.namespace, name });
    const found = run && decodeMachine(run, `VirtualMachineInstance "${pod.namespace}/${name}"`);
    return found?.uid === uid && found.machine?.name === workload.name ? found.machine.uid : undefined;
  }

  async #uidOfClaim({ namespace, name }: Workload, { annotations }: Pod, ifName: string): Promise<string | undefined> {
    const { caches } = this.#deps;
    const decoded = decodePodAnnotations(annotations, settingsOf(caches));
    if (claimsOf(decoded, firstNicOf(caches), ifName).get(ifName) !== name) return undefined;
    const claim = await readObject(this.#deps, ADDRESS_OWNERS.IPAMClaim, { namespace, name });
    return claim && decodeIpamClaim(claim, `IPAMClaim "${namespace}/${name}"`).uid;
  }
}
