/** Decides about the condition Supplied of pools that are generated or lease blocks, and about Full of Subnets. */
import { addressCount, describeWanted } from "../../ipam/subnet-capacity.ts";
import { listSome } from "../../lib/describe.ts";
import { byName } from "../../lib/order.ts";
import { describePoolOwner } from "../../resources/fields/subnet-pool.ts";
import type { IpPool } from "../../resources/ip-pool.ts";
import { describeSource, type PoolSource } from "../../resources/pool-source.ts";
import type { Shortfall } from "../division.ts";
import { MAX_EXAMPLES } from "../examples.ts";
import type { ControlledPool, ControlledSubnet } from "../objects.ts";
import { REFUSED } from "../send-refusal.ts";
import { absent, type Decision } from "./plan-conditions.ts";

export interface SuppliedView {
  readonly pools: readonly ControlledPool[];
  readonly subnets: readonly ControlledSubnet[];
  /** Of the last division of the Subnets; undefined before the first one. */
  readonly shortfalls: readonly Shortfall[] | undefined;
  /** Whether `enableSubnet` is false. */
  readonly isOff?: boolean;
  /** Returns the API server's words if it refuses to write the pool or its Subnet. */
  readonly refusalOf?: (pool: string, subnet: string) => string | undefined;
}

export interface SuppliedDecisions {
  /** By name. Without pools made by hand, and those that are about to get their addresses. */
  readonly pools: ReadonlyMap<string, Decision>;
  /** By name. Without those whose pools are about to get addresses; none before the first division. */
  readonly subnets: ReadonlyMap<string, Decision>;
}

export function planSupplied({ pools, subnets, shortfalls, isOff, refusalOf }: SuppliedView): SuppliedDecisions {
  const known = new Map(pools.map(({ name, value }) => [name, value]));
  const isPending = ({ pool, isPassing }: Shortfall): boolean => {
    const value = pool && known.get(pool.name);
    // The division tells its plan before the writes: until these are made pods wait for them.
    return isPassing === true || value === undefined || addressCount(value) < (pool?.has ?? 0);
  };
  // Versions of a workload may share a pool: the current one comes first, and counts.
  const byPool = new Map(shortfalls?.toReversed().map((shortfall) => [shortfall.pool?.name, shortfall]));
  const full = [...byPool.values()].filter(({ reason }) => reason === "SubnetFull");
  const waiting = Map.groupBy(full, ({ pool }) => pool?.subnet);
  const decided = pools.flatMap(({ name, deleting, value }) => {
    if (value === undefined || deleting) return [];
    const decision =
      value.source === undefined
        ? shortfalls && decideGenerated(value, byPool.get(name), { isPending, isOff, refusalOf })
        : leased(value.source);
    return decision === undefined ? [] : [[name, decision] as const];
  });
  const fullness = subnets.flatMap(({ name }) => {
    const own = waiting.get(name);
    return own?.every(isPending) ? [] : [[name, decideFull(own)] as const];
  });
  return { pools: new Map(decided), subnets: new Map(shortfalls && fullness) };
}

interface Situation {
  readonly isPending: (shortfall: Shortfall) => boolean;
  readonly isOff: boolean | undefined;
  readonly refusalOf: SuppliedView["refusalOf"];
}

/** Returns undefined for a pool made by hand, or if nothing prevents the pool from getting its addresses. */
function decideGenerated(
  pool: IpPool,
  shortfall: Shortfall | undefined,
  { isPending, isOff, refusalOf }: Situation,
): Decision | undefined {
  const { generated } = pool.spec;
  if (generated === undefined) return undefined;
  const has = addressCount(pool);
  const isShort = has < generated.wanted;
  const what = describeWanted(has, generated);
  if (isShort && isOff) return supplied(`${what}, and gets no others while enableSubnet is false`);
  const refusal = isShort && refusalOf?.(pool.name, generated.subnet);
  if (refusal) return short(REFUSED, `${what}: the API server refuses to write it or its Subnet: ${refusal}`);
  if (shortfall?.pool === undefined) return isShort ? undefined : supplied(what);
  return isPending(shortfall) ? undefined : short(shortfall.reason, shortfall.pool.message);
}

const short = (reason: string, message: string): Decision => ({ type: "Supplied", isTrue: false, reason, message });
const supplied = (message: string): Decision => ({ ...short("Supplied", message), isTrue: true });

function leased(source: PoolSource): Decision {
  const { blocks, problem, report } = source;
  if (problem !== "") return short(report?.reason || "NoMoreBlocks", problem);
  const resting = blocks.filter(({ state }) => state === "Resting").length;
  const what = `has ${blocks.length} ${blocks.length === 1 ? "block" : "blocks"} of ${describeSource(source)}`;
  return supplied(resting === 0 ? what : `${what}, of which ${resting} cannot be used for a minute after being leased`);
}

/** `waiting`: the shortfalls of its pools. */
function decideFull(waiting: readonly Shortfall[] = []): Decision {
  const pools = waiting.flatMap(({ pool, demand }) => (pool === undefined ? [] : { ...pool, ...demand }));
  const [first] = pools;
  if (first === undefined) return absent("Full");
  const lacking = pools.reduce((sum, { wanted, has }) => sum + wanted - has, 0);
  const names = pools
    .sort(byName)
    .map(({ name, application, has, wanted }) => `"${name}" (${describePoolOwner(application)}, ${has} of ${wanted})`);
  const who = pools.length === 1 ? "1 pool waits" : `${pools.length} pools wait`;
  const message = `${first.room}; ${who} for ${lacking} more: ${listSome(names, MAX_EXAMPLES)}`;
  return { type: "Full", isTrue: true, reason: "PoolsWait", message };
}
