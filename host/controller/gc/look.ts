/**
 * One look at one allocation: what the caches and lists say of it, what follows by the table, and, before anything is written, all of it once
 * more from the API server (allocation rule 16).
 * Effects: reads of the API server; one write of the object.
 */
import { formatIp } from "../../net/ip.ts";
import { AllocationObjects } from "../../registry/kubernetes/allocation-objects.ts";
import type { Holder, IpAllocation } from "../../resources/ip-allocation.ts";
import { settingsOf } from "../settings.ts";
import type { ControllerDeps } from "../types.ts";
import { collect } from "./collect.ts";
import type { Observations } from "./observations.ts";
import { lastHolder } from "./plan-change.ts";
import {
  type Action,
  type CollectionTimes,
  type CollectionVerdict,
  judgeCollection,
  type NodeSighting,
  type PodSighting,
  type Seen,
  type Standing,
  situationOf,
} from "./plan-collection.ts";
import type { Probers } from "./probers.ts";
import { bestNode, bestPod, readNode, readPod, type SightTools } from "./sightings.ts";
import { isSubstitute, Substitutes } from "./substitutes.ts";

/** How long one question of the collection is tried: milliseconds. Nobody waits for it, and the next look asks again. @limit */
export const COLLECTION_PATIENCE_MS = 3_000;

/** After a look in vain, or one for which the API server had no answer, the next one comes no sooner than this: milliseconds. @limit */
export const COLLECTION_RETRY_MS = 10_000;

export interface LookTools extends ControllerDeps {
  readonly observations: Observations;
  /** Ends with `leading`, and when the part is closed. */
  readonly signal: AbortSignal;
}

/** Where a look takes nodes and pods from. */
export interface Sources {
  node(name: string): Promise<NodeSighting>;
  pod(holder: Holder, node: NodeSighting): Promise<PodSighting>;
}

export interface Collected {
  readonly object: IpAllocation;
  readonly action: Action;
  readonly why: string;
  /** Of the pod that had the address. */
  readonly node: string;
  /** Of `ask`. */
  readonly prober: string | undefined;
}

/** For one round of looks: nodes that may ask are counted once. */
export class Look {
  readonly #tools: LookTools;
  readonly #objects: AllocationObjects;
  readonly #probers: Probers;
  readonly #substitutes: Substitutes;
  readonly #live: Sources;
  /** Who was told before, by name of the allocation; lasts as long as the controller. */
  readonly #told: Map<string, Set<string>>;
  /** Addresses for which nobody can ask. */
  readonly unasked: string[] = [];

  constructor(tools: LookTools, probers: Probers, told: Map<string, Set<string>>) {
    const { api, log, signal } = tools;
    this.#tools = tools;
    this.#objects = new AllocationObjects(api);
    this.#probers = probers;
    this.#substitutes = new Substitutes(tools.caches);
    this.#told = told;
    this.#live = liveSources({ api, log, signal });
  }

  /** Reads the object, and takes everything else from the API server, too. */
  async again(name: string): Promise<Collected | undefined> {
    const object = await this.#read(name);
    if (object !== undefined) return this.examine(object, this.#live);
    this.#tools.observations.forget(name);
    this.#told.delete(name);
    return undefined;
  }

  /** What was written; undefined when nothing was. Rejects when the API server does not answer, or refuses. */
  async examine(object: IpAllocation, sources: Sources): Promise<Collected | undefined> {
    const { observations } = this.#tools;
    if (object.deleting) {
      observations.forget(object.name);
      return undefined;
    }
    const verdict = this.#judge(object, await this.#see(object, sources));
    if (!isEffect(verdict)) return undefined;
    if (sources === this.#live) return this.#act(object, verdict.action, verdict.why);
    const now = await this.#read(object.name);
    // Whoever has written to it knew what it is.
    if (now?.uid !== object.uid || now.resourceVersion !== object.resourceVersion) {
      observations.forget(object.name);
      return undefined;
    }
    const live = this.#judge(now, await this.#see(now, this.#live));
    return isEffect(live) ? this.#act(now, live.action, live.why) : undefined;
  }

  /** By the age of this very situation; what is to be seen for longer is noted. */
  #judge(object: IpAllocation, seen: Seen): CollectionVerdict {
    const { observations, nowMs } = this.#tools;
    const { name, uid, resourceVersion, spec } = object;
    const key = `${uid}/${resourceVersion} ${situationOf(seen)}`;
    const ageMs = observations.ageMs(name, key, nowMs());
    const verdict = judgeCollection({ ...seen, ageMs }, this.#timesOf(spec.pool));
    if (verdict.kind === "observe") {
      const node = lostNode(object);
      observations.note(name, { key, node, pauseMs: verdict.pauseMs, nowMs: nowMs() });
    } else if (verdict.action === "keep") observations.forget(name);
    return verdict;
  }

  async #see(object: IpAllocation, sources: Sources): Promise<Seen> {
    const { spec } = object;
    const standing = standingOf(object);
    const holders = standing === "Bound" ? spec.holders : standing === "NodeLost" ? [lastHolder(object)] : [];
    const known = holders.filter((holder) => holder !== undefined);
    const nodes = await Promise.all(known.map((holder) => sources.node(holder.node)));
    const node = nodes.length > 0 ? bestNode(nodes) : await sources.node(spec.node);
    const pods = await Promise.all(known.map((holder, index) => sources.pod(holder, nodes[index] ?? node)));
    const pod = bestPod(pods);
    const asked = await this.#askedOf(object, sources);
    return { standing, node, pod, asked, workload: await this.#keeperOf(object, { standing, node, pod }) };
  }

  async #askedOf(object: IpAllocation, sources: Sources): Promise<Seen["asked"]> {
    if (standingOf(object) !== "NodeLost" || object.spec.node === lostNode(object)) return "nobody";
    return (await sources.node(object.spec.node)) === "ready" ? "ready" : "away";
  }

  /** Asked for only where the table wants to know. */
  async #keeperOf(
    object: IpAllocation,
    { standing, node, pod }: Pick<Seen, "standing" | "node" | "pod">,
  ): Promise<Seen["workload"]> {
    const { workload } = object.spec;
    if (workload === undefined) return "none";
    const isEnded = pod !== "alive" && pod !== "unknown";
    const matters = standing === "Kept" || (isEnded && (standing === "NodeLost" || node === "outOfService"));
    if (!matters) return "none";
    const found = await this.#tools.workloads.look(workload, this.#tools.signal);
    return found === "lives" && standing === "NodeLost" && (await this.#hasOther(object)) ? "moved" : found;
  }

  /** As the API server has it now; the caches say where to look. */
  async #hasOther(object: IpAllocation): Promise<boolean> {
    for (const name of this.#substitutes.find(object)) {
      const other = await this.#read(name);
      if (other !== undefined && isSubstitute(object, other)) return true;
    }
    return false;
  }

  async #act(object: IpAllocation, action: Action, why: string): Promise<Collected | undefined> {
    const { observations, signal, now, nowMs, log } = this.#tools;
    const prober = action === "ask" ? this.#chooseProber(object) : undefined;
    const { name, spec } = object;
    if (action === "ask" && prober === undefined) {
      this.unasked.push(name);
      observations.postpone(name, nowMs() + COLLECTION_RETRY_MS);
      return undefined;
    }
    const terms = { signal, prober, since: now().toISOString() };
    const isDone = await collect(this.#objects, object, action, terms);
    observations.forget(name);
    if (!isDone) return undefined;
    // What follows from what it is now is observed from the next look on.
    if (action !== "free") observations.note(name, { key: "", node: lostNode(object), pauseMs: 0, nowMs: nowMs() });
    else this.#told.delete(name);
    const node = lostNode(object);
    log.info(
      { address: formatIp(spec.ip), pool: spec.pool, node, action, prober },
      `An allocation was collected: ${why}`,
    );
    return { object, action, why, node, prober };
  }

  /** When all that can ask have been told, it begins anew. */
  #chooseProber(object: IpAllocation): string | undefined {
    const { name, spec } = object;
    const told = this.#told.get(name) ?? new Set();
    const never = new Set([lostNode(object), spec.node]);
    const fresh = this.#probers.choose(spec.pool, new Set([...never, ...told]));
    const chosen = fresh ?? this.#probers.choose(spec.pool, never);
    if (fresh === undefined) told.clear();
    if (chosen !== undefined) this.#told.set(name, told.add(chosen));
    return chosen;
  }

  #read(name: string): Promise<IpAllocation | undefined> {
    const { signal } = this.#tools;
    return this.#objects.get(name, { lane: "background", patienceMs: COLLECTION_PATIENCE_MS, signal });
  }

  #timesOf(pool: string): CollectionTimes {
    const conf = settingsOf(this.#tools.caches);
    const own = this.#tools.caches.pools.items.get(pool)?.value?.spec.cooldownMs;
    return { ...conf.garbageCollection, cooldownMs: own ?? conf.allocationCooldownMs };
  }
}

function isEffect(verdict: CollectionVerdict): boolean {
  return verdict.kind === "act" && verdict.action !== "keep" && verdict.action !== "wait";
}

export function standingOf({ spec }: IpAllocation): Standing {
  if (spec.state !== "Quarantined") return spec.state;
  return spec.quarantine?.reason ?? "Conflict";
}

/** The node of the pod that has, or had, the address. */
export function lostNode(object: IpAllocation): string {
  return lastHolder(object)?.node ?? object.spec.node;
}

/** Each node once for one allocation; nothing is remembered beyond that. */
function liveSources(tools: SightTools): Sources {
  return { node: (name) => readNode(tools, name), pod: (holder, node) => readPod(tools, holder, node) };
}
