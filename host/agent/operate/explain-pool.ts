/** One pool in words: its owner, the reason for its size, its usage, and its conditions. */
import { CniError, ErrorCode } from "../../cni/error.ts";
import { isDnsSubdomain } from "../../config/fields/names.ts";
import { findInConditions } from "../../findings/conditions.ts";
import { addressCount, addresses } from "../../ipam/subnet-capacity.ts";
import { listSome } from "../../lib/describe.ts";
import { tryOr } from "../../lib/try-or.ts";
import { formatIp } from "../../net/ip.ts";
import { formatPrefix } from "../../net/prefix.ts";
import { formatRange, rangesOverlap } from "../../net/range.ts";
import { describePoolOwner } from "../../resources/fields/subnet-pool.ts";
import { decodeIpPool, type IpPool } from "../../resources/ip-pool.ts";
import { decodeIpPoolUsage } from "../../resources/ip-pool-usage.ts";
import { countBlockStates, describeSource, NO_REPORT, type PoolSource } from "../../resources/pool-source.ts";
import { conditionsOf } from "../../resources/status.ts";
import type { LiveObjects, ReadResult } from "../backend.ts";
import type { PoolInventory } from "../ipam/pool-inventory.ts";

/** Most ranges that one line of `berthctl explain pool` shows. */
const MAX_EXPLAINED_NAMES = 5;

export interface ExplainPoolDeps {
  readonly inventory: Pick<PoolInventory, "loaded" | "poolCache">;
  /** Undefined without a cluster. */
  readonly live: LiveObjects | undefined;
}

/** Returns lines for a person. Rejects with CniError 100 if there is no such pool. */
export async function explainPool(deps: ExplainPoolDeps, name: string): Promise<string[]> {
  const { inventory, live } = deps;
  const { pools, refused } = await inventory.loaded();
  const watched = pools.get(name);
  const refusal = refused.get(name);
  const object = live === undefined || !isDnsSubdomain(name) ? undefined : await live.read("ippools", name);
  const isKnown = watched !== undefined || refusal !== undefined;
  if (object?.kind === "absent" || (object?.kind !== "there" && !isKnown))
    throw new CniError(ErrorCode.NoPoolMatches, `There is no IPPool "${name}"`);
  const read = object?.kind === "there" ? tryOr(() => decodeIpPool(object.value, "API server"), undefined) : undefined;
  const pool = read ?? watched;
  return [
    ...describeOrigin(name, pool),
    ...(refusal === undefined ? [] : [`allocates nothing: it ${refusal}`]),
    ...(pool === undefined ? [] : await describeContents(pool, deps)),
    ...(object === undefined ? [] : describeConditions(object, refusal)),
  ];
}

function describeOrigin(name: string, pool: IpPool | undefined): string[] {
  const { source, spec: { generated } = {} } = pool ?? {};
  if (source !== undefined) return [`pool "${name}": leases its addresses in blocks of ${describeSource(source)}`];
  if (generated === undefined) return [`pool "${name}": created by hand; its size is fixed`];
  const { subnet, application, interface: ifName, wanted, reason, reclaim } = generated;
  const owner = describePoolOwner(application);
  const outcome = reclaim
    ? "is deleted when its last address is free (ippool-reclaim is true)"
    : `stays for the next ${owner} (ippool-reclaim is false)`;
  return [
    `pool "${name}": generated from Subnet "${subnet}" for ${owner}, UID ${application.uid}`,
    `used by: interface ${ifName} of its pods only`,
    `when ${owner} is gone: the pool ${outcome}`,
    `wants: ${addresses(wanted)} (${reason})`,
  ];
}

async function describeContents(pool: IpPool, deps: ExplainPoolDeps): Promise<string[]> {
  const { spec, source, deleting } = pool;
  const which = spec.ranges.length === 0 ? "" : `: ${some(spec.ranges.map(formatRange))}`;
  return [
    ...(deleting ? ["allocates nothing: it is being deleted; it is removed when its last address is free"] : []),
    ...(spec.disable ? ["allocates nothing: spec.disable is true"] : []),
    `has: ${addresses(addressCount(pool))} of IPv${spec.family} network ${formatPrefix(spec.subnet)}${which}`,
    await describeUse(pool.name, deps),
    ...(await describeExceptions(pool, deps)),
    ...(source === undefined ? [] : describeBlocks(source)),
  ];
}

function describeBlocks(source: PoolSource): string[] {
  const { blocks, report = NO_REPORT } = source;
  const { share, others, heard } = report;
  const each = blocks.length === 0 ? "" : `: ${some(blocks.map(({ block, state }) => `${block} ${state}`))}`;
  const most = share === undefined ? "" : `; the cluster may have ${share}`;
  return [
    `blocks: ${countBlockStates(source)}${each}${most}`,
    ...(others.length === 0
      ? []
      : [`other clusters: ${some(others.map(({ member, blocks }) => `${member} ${blocks}`))}`]),
    ...(heard === "" ? [] : [`${source.prefix === undefined ? "hub" : "IPAM of record"}: answered last at ${heard}`]),
  ];
}

async function describeUse(name: string, { inventory, live }: ExplainPoolDeps): Promise<string> {
  const object = await live?.read("ippoolusages", name);
  const usage =
    object?.kind === "there" ? tryOr(() => decodeIpPoolUsage(object.value, "").usage, undefined) : undefined;
  if (usage !== undefined) {
    const { bound, cooling, kept, quarantined, free, total } = usage;
    const states = `${bound} by pods, ${cooling} cooling, ${kept} kept, ${quarantined} in quarantine`;
    return `in use: ${states}; ${free} of ${total} are free, at the last count of the controller`;
  }
  const { total, free } = inventory.poolCache.counts(name) ?? { total: 0n, free: 0n };
  return `in use: ${total - free}; ${free} of ${total} are free, as far as this node knows`;
}

async function describeExceptions({ name, spec }: IpPool, { inventory }: ExplainPoolDeps): Promise<string[]> {
  const { reserved } = await inventory.loaded();
  const taken = reserved.flatMap((reservation) => {
    const { addressSpace, ranges } = reservation.spec;
    const inPool = ranges.filter((range) => spec.ranges.some((each) => rangesOverlap(each, range)));
    const own = addressSpace === spec.addressSpace ? inPool : [];
    return own.map((range) => `${formatRange(range)} (ReservedIP "${reservation.name}" has it)`);
  });
  const all = [...inventory.poolCache.exceptionsOf(name).map(({ ip, why }) => `${formatIp(ip)} (${why})`), ...taken];
  return all.length === 0 ? [] : [`never allocated: ${some(all)}`];
}

/** In the words of `check`; a refusal is known already. */
function describeConditions(object: ReadResult<unknown>, refusal: string | undefined): string[] {
  if (object.kind === "absent") return [];
  if (object.kind === "unseen") return [`conditions: cannot be read: ${object.why}`];
  const others = conditionsOf(object.value).filter(({ type }) => type !== "Ready" || refusal === undefined);
  return findInConditions("", others).map(({ kind, text }) => `${kind}: ${text}`);
}

function some(names: readonly string[]): string {
  return listSome(names, MAX_EXPLAINED_NAMES);
}
