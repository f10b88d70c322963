/** One check of one allocation: decides from caches and lists and, before a write, again from the API server (leak). */

import { isOutdated, type KubeApi } from "../../kubernetes/kube-api.ts";
import { NODES, SERVICES } from "../../kubernetes/paths.ts";
import { orElse } from "../../lib/try-or.ts";
import { formatIp } from "../../net/ip.ts";
import type { AuditLine, AuditName } from "../../records/audit-line.ts";
import { deleteAllocation, readAllocation, replaceAllocation } from "../../registry/kubernetes/allocation-objects.ts";
import { cooldownOf } from "../../registry/registry.ts";
import { type Holder, type IpAllocation, isMachines, NO_NODE } from "../../resources/ip-allocation.ts";
import type { Workload } from "../../resources/member.ts";
import { decodeNode } from "../../resources/node.ts";
import type { CachedAllocation } from "../cached-allocation.ts";
import { settingsOf } from "../caches.ts";
import { decideRecord, readService } from "../claimants.ts";
import { isOffered, openOffers } from "../fixed-addresses.ts";
import type { NamespaceShares } from "../namespace-shares.ts";
import { sendNotice } from "../send-notice.ts";
import type { Claimant, ControllerDeps, NamingWorkload } from "../types.ts";
import type { CheckHistory } from "./check-history.ts";
import type { Observations } from "./observations.ts";
import {
  type Action,
  type ChangeTerms,
  type CollectionDecision,
  type CollectionState,
  type CollectionTimes,
  changedSpec,
  decideCollection,
  lastHolder,
  type NodeStatus,
  type ObservedState,
  type PodStatus,
  situationOf,
} from "./plan-collection.ts";
import type { Probers } from "./probers.ts";
import { COLLECTION_PATIENCE_MS, podsStatus, readNode, readObject, readPod } from "./read-status.ts";
import { isReplacement, Replacements } from "./replacements.ts";
import type { UnseenHolders } from "./unseen-holders.ts";
import { isUnused } from "./unused-nics.ts";

/** Shortest time until the next check after one that changed nothing or had no answer: milliseconds. */
export const COLLECTION_RETRY_MS = 10_000;

interface CheckerDeps extends Pick<ControllerDeps, "api" | "caches" | "owners" | "promised" | "clock" | "log"> {
  readonly observations: Observations;
  readonly unseen: UnseenHolders;
  readonly shares: NamespaceShares;
  /** Aborted when this process stops leading, and when the controller is closed. */
  readonly signal: AbortSignal;
}

export interface StatusReader {
  /** `machine`: as for {@link nodeStatus}. */
  node(name: string, machine?: string): Promise<NodeStatus>;
  pod(holder: Holder, node: NodeStatus): Promise<PodStatus>;
}

export interface Collected {
  readonly object: IpAllocation;
  readonly action: Action;
  readonly why: string;
  /** Node of the pod that had the address. */
  readonly node: string;
  /** Set with `ask`: the node chosen to probe. */
  readonly prober: string | undefined;
}

/** Checks of one pass, which share the counts of possible probers. */
export class AllocationChecker {
  readonly #deps: CheckerDeps;
  readonly #probers: Probers;
  readonly #replacements: Replacements;
  #offersOf: ReturnType<typeof openOffers> | undefined;
  readonly #live: StatusReader;
  /** Lives as long as the controller. */
  readonly #history: CheckHistory;

  constructor(deps: CheckerDeps, probers: Probers, history: CheckHistory) {
    this.#deps = deps;
    this.#probers = probers;
    this.#replacements = new Replacements(deps.caches);
    this.#history = history;
    this.#live = {
      node: (name, machine) => readNode(deps, name, machine),
      pod: (holder, node) => readPod(deps, holder, node),
    };
  }

  /** Reads the object and everything else from the API server. */
  async recheck(name: string): Promise<Collected | undefined> {
    const object = await this.#read(name);
    if (object !== undefined) return this.check(object, this.#live);
    this.#deps.observations.forget(name);
    this.#history.forget(name);
    return undefined;
  }

  /** Returns the written action; undefined if there was none. Rejects if the API server does not answer, or refuses. */
  async check(object: IpAllocation, sources: StatusReader): Promise<Collected | undefined> {
    const { observations } = this.#deps;
    if (object.deleting) {
      observations.forget(object.name);
      return undefined;
    }
    const decision = this.#decide(object, await this.#observe(object, sources));
    if (decision.kind !== "act" || decision.action === "keep" || decision.action === "wait") return undefined;
    if (sources === this.#live) return this.#act(object, decision.action, decision.why);
    const now = await this.#read(object.name);
    if (now !== undefined && versionOf(now) === versionOf(object)) return this.check(now, this.#live);
    // The writer of the change knew the state.
    observations.forget(object.name);
    return undefined;
  }

  /** Decides by how long exactly this state has been observed, and notes states that must last longer. */
  #decide(object: IpAllocation, seen: ObservedState): CollectionDecision {
    const { observations, clock } = this.#deps;
    const { name, spec } = object;
    const key = `${versionOf(object)} ${situationOf(seen)}`;
    const ageMs = observations.ageMs(name, key, clock.nowMs());
    const decision = decideCollection({ ...seen, ageMs }, this.#timesOf(spec.pool));
    if (decision.kind === "observe" || decision.action !== "ask") this.#history.withoutProber.delete(name);
    if (seen.owner === "unknown") this.#history.unknownOwner.set(name, spec.workload?.kind ?? "");
    else this.#history.unknownOwner.delete(name);
    if (decision.kind === "observe") {
      const node = lostNode(object);
      observations.note(name, { key, node, pauseMs: decision.pauseMs, nowMs: clock.nowMs() });
    } else if (decision.action === "keep") observations.forget(name);
    return decision;
  }

  async #observe(object: IpAllocation, sources: StatusReader): Promise<ObservedState> {
    const { spec } = object;
    const state = stateOf(object);
    const holders = state === "Bound" ? spec.holders : state === "NodeLost" ? [lastHolder(object)] : [];
    const known = holders.filter((holder) => holder !== undefined);
    const nodes = await Promise.all(known.map((holder) => sources.node(holder.node, holder.machine)));
    // The taint of one node confirms nothing for the other.
    const node = nodes.find((each) => each !== "outOfService") ?? nodes[0] ?? (await sources.node(spec.node));
    const pods = await Promise.all(known.map((holder, index) => sources.pod(holder, nodes[index] ?? node)));
    const pod = podsStatus(pods, nodes);
    const prober = await this.#proberStatus(object, sources);
    const isTold = this.#history.told.get(object.name) === versionOf(object);
    return { state, node, pod, prober, isTold, owner: await this.#ownerStatus(object, { state, node, pod }) };
  }

  async #proberStatus(object: IpAllocation, sources: StatusReader): Promise<ObservedState["prober"]> {
    const { node, quarantine: { reason, mac, parent } = {} } = object.spec;
    // The agent that met a conflict knows the link.
    const isChosen = reason === "Conflict" ? mac !== "" && parent === "" : node !== lostNode(object);
    if (object.spec.state !== "Quarantined" || !isChosen) return "none";
    return (await sources.node(node)) === "ready" ? "ready" : "away";
  }

  /** Read only where the decision depends on it. */
  async #ownerStatus(
    object: IpAllocation,
    { state, node, pod }: Pick<ObservedState, "state" | "node" | "pod">,
  ): Promise<ObservedState["owner"]> {
    const { workload } = object.spec;
    if (workload === undefined) return "none";
    const isEnded = pod !== "alive" && pod !== "outliving" && pod !== "unknown";
    const matters = state === "Kept" || (isEnded && (state === "NodeLost" || node === "outOfService"));
    if (!matters) return "none";
    if (this.#deps.promised.has(object.name)) return "alive";
    // No pod has had it: it is retained for as long as its owner names it, and its pool gives it.
    const isNew = object.spec.node === NO_NODE;
    const pool = this.#deps.caches.pools.items.get(object.spec.pool);
    if (isNew && pool?.fault !== undefined && !pool.deleting) return "unknown";
    if (isMachines(object.spec)) return decideRecord(this.#deps.caches, object.spec, await this.#readMachine(workload));
    const isNamed = (of?: NamingWorkload): boolean => {
      this.#offersOf ??= openOffers(this.#deps.caches);
      return of !== undefined && isOffered(this.#offersOf(of, object.spec.ip), object.spec);
    };
    const { addresses } = this.#deps.owners;
    const found = await addresses.readLiveness(workload, this.#deps.signal, isNew ? isNamed : undefined);
    if (isNew) return found === "alive" && this.#deps.shares.isExcess(object) ? "excess" : found;
    if (found === "alive" && this.#deps.unseen.isUnseen(object)) return "unseen";
    const mayBeMoved = found === "alive" && (state === "NodeLost" || state === "Kept");
    if (mayBeMoved && (await this.#hasReplacement(object))) return "moved";
    if (found !== "alive" || state !== "Kept") return found;
    if (this.#deps.shares.isExcess(object)) return "excess";
    return (await this.#isUnused(object)) ? "unused" : found;
  }

  /** Undefined if no such object claims an address. */
  async #readMachine({ kind, namespace, name }: Workload): Promise<Claimant | undefined> {
    const isNode = kind === "Node";
    const object = await readObject(this.#deps, isNode ? NODES : SERVICES, isNode ? { name } : { namespace, name });
    if (object === undefined || !isNode) return object && readService(object);
    return { ...decodeNode(object, `Node "${name}"`), namespace };
  }

  async #isUnused(object: IpAllocation): Promise<boolean> {
    const others = await Promise.all(this.#replacements.findOthers(object).map((name) => this.#read(name)));
    const known = others.flatMap((other) => other ?? []);
    return isUnused(this.#deps, object, known);
  }

  /** Reads the API server; the cache only tells which objects to read. */
  async #hasReplacement(object: IpAllocation): Promise<boolean> {
    for (const name of this.#replacements.find(object)) {
      const other = await this.#read(name);
      if (other !== undefined && isReplacement(object, other)) return true;
    }
    return false;
  }

  async #act(object: IpAllocation, action: Action, why: string): Promise<Collected | undefined> {
    const { observations, signal, clock, log } = this.#deps;
    const prober = action === "ask" ? this.#chooseProber(object) : undefined;
    const { name } = object;
    if (action === "ask" && prober === undefined) {
      if (!this.#isReplaced(object) && (await this.#proberStatus(object, this.#live)) !== "ready")
        this.#history.withoutProber.add(name);
      observations.postpone(name, clock.nowMs() + COLLECTION_RETRY_MS);
      return undefined;
    }
    const terms = { signal, prober, since: clock.now().toISOString() };
    const isDone = action === "tell" ? await this.#tell(object) : await collect(this.#deps.api, object, action, terms);
    observations.forget(name);
    if (!isDone) return undefined;
    // The next check observes the state after the write.
    if (action !== "free")
      observations.note(name, { key: "", node: lostNode(object), pauseMs: 0, nowMs: clock.nowMs() });
    else this.#history.asked.delete(name);
    const node = lostNode(object);
    log[action === "quarantine" ? "warn" : "info"](
      { ...auditOf(object, action, why), action, prober },
      `An allocation was collected: ${why}`,
    );
    return { object, action, why, node, prober };
  }

  /** Returns whether an agent was told. */
  async #tell(object: IpAllocation): Promise<boolean> {
    const { name, spec } = object;
    const told: boolean[] = [];
    for (const node of new Set(spec.holders.map((holder) => holder.node)))
      told.push(await sendNotice(this.#deps, node, [name]));
    this.#history.told.set(name, versionOf(object));
    return told.includes(true);
  }

  /** Whether the agent of the node, on another machine than the lost one, probes the address itself. */
  #isReplaced(object: IpAllocation): boolean {
    const lost = placeOf(object);
    return object.spec.node === lost.node && this.#probers.isReplaced(lost);
  }

  /** Starts over once every possible prober has been chosen. */
  #chooseProber(object: IpAllocation): string | undefined {
    const { name, spec } = object;
    const former = this.#history.asked.get(name) ?? new Set();
    const choose = (except: readonly string[]): string | undefined =>
      this.#probers.choose({ pool: spec.pool, lost: placeOf(object), except: new Set(except) });
    const fresh = choose([spec.node, ...former]);
    const chosen = fresh ?? choose([spec.node]) ?? this.#chooseReplacement(object);
    if (fresh === undefined) former.clear();
    if (chosen !== undefined) this.#history.asked.set(name, former.add(chosen));
    return chosen;
  }

  /** The machine with the lost one's name probes retained addresses only after it is chosen. */
  #chooseReplacement(object: IpAllocation): string | undefined {
    return object.spec.workload !== undefined && this.#isReplaced(object) ? object.spec.node : undefined;
  }

  #read(name: string): Promise<IpAllocation | undefined> {
    const { signal } = this.#deps;
    return readAllocation(this.#deps.api, name, { lane: "background", patienceMs: COLLECTION_PATIENCE_MS, signal });
  }

  #timesOf(pool: string): CollectionTimes {
    const conf = settingsOf(this.#deps.caches);
    const { items } = this.#deps.caches.pools;
    const byPool = { get: (name: string) => items.get(name)?.value?.spec.cooldownMs };
    return {
      ...conf.garbageCollection,
      cooldownMs: cooldownOf(pool, { defaultMs: conf.allocationCooldownMs, byPool }),
    };
  }
}

/** The audit events of actions; actions that release no address have none. */
const AUDITED: Partial<Readonly<Record<Action, AuditName>>> = {
  quarantine: "QUARANTINE",
  free: "RELEASE",
  preserve: "RELEASE",
  cool: "RELEASE",
};

/** The keys of a line of the audit log (docs/audit-log.md), for the controller's own log. */
function auditOf(object: IpAllocation, action: Action, why: string): Partial<AuditLine> {
  const { spec } = object;
  const holder = lastHolder(object);
  return {
    ...(AUDITED[action] === undefined ? {} : { audit: AUDITED[action] }),
    plugin: "controller",
    node: lostNode(object),
    namespace: holder?.namespace ?? "",
    pod: holder?.pod ?? "",
    uid: holder?.podUid ?? "",
    interface: holder?.ifName ?? "",
    network: "",
    addresses: [formatIp(spec.ip)],
    pools: [spec.pool],
    sources: [],
    rule: why,
    container: "",
    code: 0,
    ms: 0,
  };
}

function versionOf({ uid, resourceVersion }: IpAllocation): string {
  return `${uid}/${resourceVersion}`;
}

export function stateOf({ spec }: IpAllocation): CollectionState {
  if (spec.state !== "Quarantined") return spec.state;
  return spec.quarantine?.reason ?? "Conflict";
}

/** Returns the node of the pod that has, or had, the address. */
export function lostNode(object: CachedAllocation): string {
  return placeOf(object).node;
}

/** As {@link lostNode}, with its machine. */
export function placeOf(object: CachedAllocation): Pick<Holder, "node" | "machine"> {
  return lastHolder(object) ?? { node: object.spec.node };
}

/** Returns false if the object has changed, or needed no write. Rejects if the API server is silent, or refuses. */
async function collect(
  api: KubeApi,
  object: IpAllocation,
  action: Action,
  { signal, ...change }: ChangeTerms & { readonly signal: AbortSignal },
): Promise<boolean> {
  const terms = { lane: "background", signal } as const;
  const spec = changedSpec(object, action, change);
  if (spec === undefined && action !== "free") return false;
  const writing =
    spec === undefined
      ? deleteAllocation(api, object.name, object, terms)
      : replaceAllocation(api, spec, object, terms);
  return writing.then(() => true, orElse(isOutdated, false));
}
