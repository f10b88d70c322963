/**
 * Decides whether generated pools have the addresses that their workloads need, and names the obstacle if not: a full
 * or missing Subnet, or a limit.
 */

import type { VendorConf } from "../../config/vendor-conf.ts";
import { listSome } from "../../lib/describe.ts";
import { byName } from "../../lib/order.ts";
import { describePoolOwner, type SubnetPoolSpec } from "../../resources/fields/subnet-pool.ts";
import { describeSource, type PoolSource } from "../../resources/pool-source.ts";
import { MAX_POOLS_OF_SUBNET } from "../../resources/status.ts";
import { addresses, MAX_EXAMPLES } from "../examples.ts";
import type { ControlledSubnet } from "../objects.ts";
import { REFUSED } from "../send-refusal.ts";
import { readAssignments } from "../subnets/read-assignments.ts";
import { absent, type Decision } from "./plan-conditions.ts";
import { type SubnetNumbers, SubnetUse, type SubnetUseView } from "./subnet-use.ts";

export interface SuppliedView extends SubnetUseView {
  readonly settings: Pick<VendorConf, "maxGeneratedPoolSize" | "maxGeneratedAddressesPerNamespace">;
  /** Returns the API server's words if it refuses to write the pool. */
  readonly refusalOf?: (pool: string) => string | undefined;
}

export interface SuppliedDecisions {
  /** By name. Without pools made by hand, and those that are about to get their addresses. */
  readonly pools: ReadonlyMap<string, Decision>;
  /** All Subnets by name. */
  readonly subnets: ReadonlyMap<string, Decision>;
}

/** A generated pool and how many addresses it has. */
interface SizedPool {
  readonly name: string;
  readonly generated: SubnetPoolSpec;
  readonly has: number;
  readonly deleting: boolean;
}

interface Supply extends SuppliedView {
  readonly use: SubnetUse;
  /** Addresses of generated pools. */
  readonly byNamespace: ReadonlyMap<string, number>;
}

export function planSupplied(view: SuppliedView): SuppliedDecisions {
  const use = new SubnetUse(view);
  const all = use.pools.flatMap((pool): SizedPool[] => {
    const { name, deleting, spec } = pool;
    return spec.generated === undefined ? [] : [{ name, deleting, generated: spec.generated, has: use.sizeOf(pool) }];
  });
  const supply = { ...view, use, byNamespace: sumByNamespace(all) };
  const generated = all
    .filter(({ deleting }) => !deleting)
    .map((pool) => [pool, pool.has < pool.generated.wanted ? notSupplied(pool, supply) : supplied(pool)] as const);
  const short = generated.filter(([, decision]) => decision?.reason === "SubnetFull").map(([pool]) => pool);
  const waiting = Map.groupBy(short, (pool) => pool.generated.subnet);
  const leasing = use.pools.flatMap(({ name, deleting, source }) =>
    source === undefined || deleting ? [] : [[name, leased(source)] as const],
  );
  const decided = generated.flatMap(([{ name }, decision]) => (decision ? [[name, decision] as const] : []));
  return {
    pools: new Map([...decided, ...leasing]),
    subnets: new Map(view.subnets.map((subnet) => [subnet.name, fullness(subnet, use, waiting.get(subnet.name))])),
  };
}

function sumByNamespace(pools: readonly SizedPool[]): Map<string, number> {
  const sums = new Map<string, number>();
  for (const { generated, has } of pools) {
    const { namespace } = generated.application;
    sums.set(namespace, (sums.get(namespace) ?? 0) + has);
  }
  return sums;
}

function supplied({ generated: { wanted, reason }, has }: SizedPool): Decision {
  const what = has === wanted ? `has the ${addresses(wanted)} wanted` : `has ${addresses(has)}, ${wanted} wanted`;
  return { type: "Supplied", isTrue: true, reason: "Supplied", message: `${what} (${reason})` };
}

function leased(source: PoolSource): Decision {
  const { blocks, problem, report } = source;
  const reason = report?.reason || "NoMoreBlocks";
  if (problem !== "") return { type: "Supplied", isTrue: false, reason, message: problem };
  const resting = blocks.filter(({ state }) => state === "Resting").length;
  const what = `has ${blocks.length} ${blocks.length === 1 ? "block" : "blocks"} of ${describeSource(source)}`;
  const message = resting === 0 ? what : `${what}, of which ${resting} cannot be used for a minute after being leased`;
  return { type: "Supplied", isTrue: true, reason: "Supplied", message };
}

/** Returns undefined if nothing prevents the pool from getting its addresses. */
function notSupplied(pool: SizedPool, supply: Supply): Decision | undefined {
  const found = obstacle(pool, supply);
  if (found === undefined) return undefined;
  const { wanted, reason } = pool.generated;
  const message = `has ${pool.has} of ${addresses(wanted)} wanted (${reason}): ${found.why}`;
  return { type: "Supplied", isTrue: false, reason: found.reason, message };
}

interface Obstacle {
  /** One word for programs. */
  readonly reason: string;
  readonly why: string;
}

function obstacle(pool: SizedPool, supply: Supply): Obstacle | undefined {
  const refusal = supply.refusalOf?.(pool.name);
  if (refusal !== undefined) return { reason: REFUSED, why: `the API server refuses to write it: ${refusal}` };
  const name = pool.generated.subnet;
  const subnet = supply.use.subnet(name);
  if (subnet === undefined) return { reason: "SubnetGone", why: `there is no Subnet "${name}"` };
  if (subnet.deleting) return { reason: "SubnetTerminating", why: `Subnet "${name}" is being deleted` };
  const fault = subnet.value === undefined ? (subnet.fault ?? "it cannot be read") : supply.use.faultOf(subnet);
  if (fault !== undefined) return { reason: "SubnetInvalid", why: `Subnet "${name}" cannot be used: ${fault}` };
  return limit(pool, supply) ?? exhaustion(pool, subnet, supply.use);
}

function limit({ has, generated }: SizedPool, { settings, byNamespace }: Supply): Obstacle | undefined {
  const { maxGeneratedPoolSize: most, maxGeneratedAddressesPerNamespace: mostInAll } = settings;
  if (has >= most) return { reason: "PoolTooLarge", why: `maxGeneratedPoolSize of vendor-conf is ${most}` };
  const { namespace } = generated.application;
  const inAll = byNamespace.get(namespace) ?? 0;
  if (mostInAll === 0 || inAll < mostInAll) return undefined;
  const why = `generated pools of namespace "${namespace}" have ${addresses(inAll)}, maxGeneratedAddressesPerNamespace of vendor-conf is ${mostInAll}`;
  return { reason: "NamespaceLimit", why };
}

/** Returns undefined if the Subnet has room, or the pool's addresses are assigned already. */
function exhaustion({ name, has }: SizedPool, subnet: ControlledSubnet, use: SubnetUse): Obstacle | undefined {
  const assigned = use.assignedTo(name, subnet);
  if ((assigned ?? 0) > has) return undefined;
  const pools = readAssignments(subnet).pools.length;
  if (assigned === undefined && pools >= MAX_POOLS_OF_SUBNET)
    return { reason: "SubnetFull", why: `Subnet "${subnet.name}" has ${pools} pools, as many as it can have` };
  const numbers = use.numbersOf(subnet);
  if (numbers === undefined || numbers.free > 0) return undefined;
  return { reason: "SubnetFull", why: `Subnet "${subnet.name}" ${describeNumbers(numbers)}` };
}

/** `has 0 free of 254, 254 assigned to 12 pools` */
function describeNumbers({ total, free, assigned, pools, withheld }: SubnetNumbers): string {
  const others = withheld === 0 ? "" : `, ${withheld} reserved or in pools made by hand`;
  return `has ${free} free of ${total}, ${assigned} assigned to ${pools} ${pools === 1 ? "pool" : "pools"}${others}`;
}

function fullness(subnet: ControlledSubnet, use: SubnetUse, waiting: readonly SizedPool[] = []): Decision {
  const numbers = waiting.length === 0 ? undefined : use.numbersOf(subnet);
  if (numbers === undefined) return absent("Full");
  const lacking = waiting.reduce((sum, { generated, has }) => sum + generated.wanted - has, 0);
  const names = waiting.toSorted(byName).map(({ name, generated, has }) => {
    return `"${name}" (${describePoolOwner(generated.application)}, ${has} of ${generated.wanted})`;
  });
  const who = `${waiting.length} ${waiting.length === 1 ? "pool waits" : "pools wait"}`;
  const message = `${describeNumbers(numbers)}; ${who} for ${lacking} more: ${listSome(names, MAX_EXAMPLES)}`;
  return { type: "Full", isTrue: true, reason: "PoolsWait", message };
}
