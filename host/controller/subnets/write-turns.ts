/**
 * Which of a plan's writes of pools are made now, when there are too many for all nodes to be told of them in time
 * (pool-writes.ts): those that give a pool that exists more addresses, then all others. Among each the namespaces
 * take turns, so that the roll-out of one does not keep the others waiting. Waiting writes are planned again, so the
 * plan for them is as good as new.
 */
import { spansOf, withoutSpans } from "../../core/spans.ts";
import { poolOwnerKey } from "../../resources/fields/subnet-pool.ts";
import type { PoolWrites } from "../pool-writes.ts";
import type { CurrentPool, NetworkPlan, PoolTarget, SubnetsPlan } from "./model.ts";

/** Writes for one workload, which are made together: its pods need the pools of all NICs and families. */
interface Turn {
  readonly namespace: string;
  readonly pools: Set<PoolTarget | CurrentPool>;
  writes: number;
}

interface AdmittedWrites extends Pick<SubnetsPlan, "networks" | "remove"> {
  /** Writes that wait. */
  readonly postponed: number;
  /** By the Subnet's name: new pools that wait. */
  readonly waiting: ReadonlyMap<string, number>;
}

export class WriteTurns {
  /** By namespace: when it had its last turn, of all turns since nothing waited. */
  readonly #last = new Map<string, number>();
  #count = 0;

  /** Returns what of the plan is carried out now, and has spent that of `writes`. */
  admit({ networks, remove }: Pick<SubnetsPlan, "networks" | "remove">, writes: PoolWrites): AdmittedWrites {
    const [urgent, others] = turnsOf(networks, remove);
    const wanted = [...urgent, ...others].reduce((sum, turn) => sum + turn.writes, 0);
    // A small rest is not begun: each round costs a write of the Subnets, too.
    const mayBegin = writes.waitMs(wanted) === 0;
    const held = new Set<PoolTarget | CurrentPool>();
    let postponed = 0;
    for (const turn of [...this.#inOrder(urgent), ...this.#inOrder(others)]) {
      if (mayBegin && writes.isOpen) {
        writes.spend(turn.writes);
        this.#last.set(turn.namespace, ++this.#count);
      } else {
        postponed += turn.writes;
        for (const pool of turn.pools) held.add(pool);
      }
    }
    if (postponed === 0) this.#last.clear();
    // Writes without a turn count all the same.
    const fences = networks.flatMap(({ targets }) => targets.filter(isFence)).length;
    writes.spend(fences);
    if (held.size === 0) return { networks, remove, postponed, waiting: new Map() };
    return {
      networks: networks.map((network) => without(network, held)),
      remove: remove.filter((pool) => !held.has(pool)),
      postponed,
      waiting: waitingIn(networks, held),
    };
  }

  /** The namespace whose last turn is longest ago comes first, and each again when all others have had theirs. */
  #inOrder(turns: readonly Turn[]): Turn[] {
    const queues = [...Map.groupBy(turns, ({ namespace }) => namespace)]
      .toSorted(([a], [b]) => (this.#last.get(a) ?? 0) - (this.#last.get(b) ?? 0))
      .map(([, queue]) => queue);
    const rounds = Math.max(0, ...queues.map(({ length }) => length));
    return Array.from({ length: rounds }, (_, round) => queues.flatMap((queue) => queue[round] ?? [])).flat();
  }
}

/** Returns the urgent ones, and the others. */
function turnsOf(networks: readonly NetworkPlan[], remove: readonly CurrentPool[]): readonly [Turn[], Turn[]] {
  const [urgent, others] = [new Map<string, Turn>(), new Map<string, Turn>()];
  const add = (turns: Map<string, Turn>, pool: PoolTarget | CurrentPool, writes: number): void => {
    const { application } = pool.generated;
    const key = poolOwnerKey(application);
    const turn = turns.get(key) ?? { namespace: application.namespace, pools: new Set(), writes: 0 };
    turns.set(key, turn);
    turn.pools.add(pool);
    turn.writes += writes;
  };
  for (const pool of remove) add(others, pool, 1);
  for (const target of networks.flatMap(({ targets }) => targets)) {
    // A new pool is created, and then filled if there is anything for it.
    if (target.now === undefined) add(others, target, target.isChanged ? 2 : 1);
    else if (target.isChanged && !isFence(target)) add(grows(target) ? urgent : others, target, 1);
  }
  return [[...urgent.values()], [...others.values()]];
}

function grows({ now, spans }: PoolTarget): boolean {
  return withoutSpans(spans, now === undefined ? [] : spansOf(now.spec.ranges)).length > 0;
}

/**
 * A pool with addresses that its Subnet's status does not list is written before the status lists them: an earlier
 * writer may be about to write it.
 */
function isFence({ isChanged, isUnknown }: PoolTarget): boolean {
  return isChanged && isUnknown;
}

/** Returns the plan without the writes of these pools. Addresses that their Subnets reserve for them stay reserved. */
function without({ subnets, targets }: NetworkPlan, held: ReadonlySet<PoolTarget | CurrentPool>): NetworkPlan {
  const left = targets.flatMap((target) => {
    if (!held.has(target)) return target;
    return target.now === undefined ? [] : { ...target, isChanged: false };
  });
  return { subnets, targets: left, grows: left.some((target) => target.isChanged && grows(target)) };
}

function waitingIn(
  networks: readonly NetworkPlan[],
  held: ReadonlySet<PoolTarget | CurrentPool>,
): ReadonlyMap<string, number> {
  const waiting = new Map<string, number>();
  for (const target of networks.flatMap(({ targets }) => targets)) {
    const { name } = target.subnet?.object ?? {};
    if (name === undefined || target.now !== undefined || !held.has(target)) continue;
    waiting.set(name, (waiting.get(name) ?? 0) + 1);
  }
  return waiting;
}
