/**
 * Decides which of a plan's writes of pools are made now: each is sent to all nodes (pool-writes.ts). Without turns
 * 1,000 new workloads on 5,000 nodes delay the events of all pools by 5 s, as long as an ADD waits for one, instead of
 * 0.2 s (docs/develop/scale.md); 100 on 1,000 nodes do not need them. Existing pools that need more addresses come
 * first, and the namespaces take turns. Waiting writes are planned again.
 */
import { poolOwnerKey } from "../../resources/fields/subnet-pool.ts";
import type { PoolWrites } from "../pool-writes.ts";
import type { CurrentPool, NetworkPlan, PoolTarget, SubnetsPlan } from "./model.ts";
import { grows } from "./plan/planned-pool.ts";

type Pool = PoolTarget | CurrentPool;

/**
 * Returns the part of the plan to carry out now, and spends its writes. `served`: the namespaces that have had a turn
 * since nothing waited, in the order of their last turns; updated here. `held`: pools whose writes wait; `postponed`:
 * the number of these writes.
 */
export function admitWrites(
  { networks, remove }: Pick<SubnetsPlan, "networks" | "remove">,
  writes: PoolWrites,
  served: Set<string>,
) {
  const targets = networks.flatMap((network) => network.targets.filter(isWritten));
  // A pool with addresses that its Subnet's status does not list is written before the status lists them.
  const [fences = [], urgent = [], others = []] = [0, 1, 2].map((rank) =>
    targets.filter((each) => rankOf(each) === rank),
  );
  writes.spend(fences.length);
  // A batch does not start with few writes left: each round costs a write of the Subnets, too.
  const mayBegin = writes.waitMs(writesOf([...urgent, ...others, ...remove])) === 0;
  const held = new Set<Pool>();
  for (const { namespace, pools } of [...inTurns(urgent, served), ...inTurns([...others, ...remove], served)]) {
    if (mayBegin && writes.isOpen) {
      writes.spend(writesOf(pools));
      served.delete(namespace);
      served.add(namespace);
    } else for (const pool of pools) held.add(pool);
  }
  if (held.size === 0) served.clear();
  return {
    networks: networks.map((network) => withoutWrites(network, held)),
    remove: remove.filter((pool) => !held.has(pool)),
    held,
    postponed: writesOf([...held]),
  };
}

function isWritten({ now, isChanged }: PoolTarget): boolean {
  return now === undefined || isChanged;
}

function rankOf(target: PoolTarget): 0 | 1 | 2 {
  return target.isUnknown ? 0 : target.now !== undefined && grows(target) ? 1 : 2;
}

/** A new pool is created, and then filled if it has addresses. */
function writesOf(pools: readonly Pool[]): number {
  return pools.reduce((sum, pool) => sum + ("isChanged" in pool && !pool.now && pool.isChanged ? 2 : 1), 0);
}

/**
 * Returns the pools of each workload, which its pods need together: one workload of each namespace at a time, starting
 * with the namespace whose last turn is the longest ago.
 */
function inTurns(all: readonly Pool[], served: ReadonlySet<string>) {
  const lastTurns = new Map([...served].map((namespace, at) => [namespace, at]));
  const ranks = new Map<string, number>();
  const workloads = [...Map.groupBy(all, ({ generated }) => poolOwnerKey(generated.application)).values()];
  const turns = workloads.map((pools) => {
    const { namespace = "" } = pools[0]?.generated.application ?? {};
    const rank = ranks.get(namespace) ?? 0;
    ranks.set(namespace, rank + 1);
    return { namespace, pools, rank, last: lastTurns.get(namespace) ?? -1 };
  });
  return turns.toSorted((a, b) => a.rank - b.rank || a.last - b.last);
}

/** Returns the plan without the writes of these pools. Addresses reserved for them in their Subnets stay reserved. */
export function withoutWrites({ subnets, targets }: NetworkPlan, held: ReadonlySet<Pool>): NetworkPlan {
  const left = targets.flatMap((target) => {
    if (!held.has(target)) return target;
    return target.now === undefined ? [] : { ...target, isChanged: false };
  });
  return { subnets, targets: left, grows: left.some((target) => isWritten(target) && grows(target)) };
}
