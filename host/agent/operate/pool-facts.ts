/**
 * The facts behind `berthctl explain pool`: this node's about a pool and, in a cluster, the API server's about it and
 * its Subnet.
 */

import * as z from "zod";
import { CniError, ErrorCode } from "../../cni/error.ts";
import { isDnsSubdomain } from "../../config/fields/names.ts";
import { wrongIn } from "../../findings/conditions.ts";
import { messageOf } from "../../lib/describe.ts";
import { tryOr } from "../../lib/try-or.ts";
import { decodeIpPool } from "../../resources/ip-pool.ts";
import { decodeIpPoolUsage } from "../../resources/ip-pool-usage.ts";
import { conditionsOf } from "../../resources/status.ts";
import { decodeAssignments } from "../../resources/subnet.ts";
import type { LiveObjects, ReadResult } from "../backend.ts";
import type { PoolInventory } from "../ipam/pool-inventory.ts";

/** `pool` is undefined if it cannot be read, `live` in the embedded mode. */
export type PoolFacts = Awaited<ReturnType<typeof gatherPoolFacts>>;

export type LiveFacts = Awaited<ReturnType<typeof readLive>>;

export interface PoolFactsDeps {
  readonly inventory: PoolInventory;
  readonly live: LiveObjects | undefined;
}

/** Rejects with CniError 100 when there is no such pool. */
export async function gatherPoolFacts({ inventory, live }: PoolFactsDeps, name: string) {
  const { pools, refused, reserved } = await inventory.loaded();
  const watched = pools.get(name);
  const refusal = refused.get(name);
  const object = live === undefined || !isDnsSubdomain(name) ? undefined : await live.read("ippools", name);
  const read = object?.kind === "there" ? tryOr(() => decodeIpPool(object.value, "API server"), undefined) : undefined;
  const pool = read ?? watched;
  const isKnown = watched !== undefined || refusal !== undefined;
  if (object?.kind === "there" ? false : object?.kind === "absent" || !isKnown) {
    throw new CniError(ErrorCode.NoPoolMatches, `There is no IPPool "${name}"`);
  }
  const from = pool?.spec.generated?.subnet;
  const found = live && object && (await readLive(live, name, object, from));
  const { poolCache } = inventory;
  const known = { counts: poolCache.counts(name), exceptions: poolCache.exceptionsOf(name), reserved };
  return { name, pool, refusal, ...known, live: found };
}

/** `from`: the Subnet of a generated pool. */
async function readLive(live: LiveObjects, name: string, pool: ReadResult<unknown>, from: string | undefined) {
  const [usage, subnet] = await Promise.all([
    live.read("ippoolusages", name),
    from === undefined ? undefined : live.read("subnets", from),
  ]);
  return {
    usage: decoded(usage, (value) => decodeIpPoolUsage(value, `IPPoolUsage "${name}"`).usage),
    troubles: decoded(pool, (value) => wrongIn(conditionsOf(value))),
    subnet: subnet && decoded(subnet, (value) => subnetFactsOf(value, `Subnet "${from}"`)),
  };
}

function decoded<T>(read: ReadResult<unknown>, decode: (value: unknown) => T): ReadResult<T> {
  if (read.kind !== "there") return read;
  try {
    return { kind: "there", value: decode(read.value) };
  } catch (error) {
    return { kind: "unseen", why: messageOf(error) };
  }
}

const subnetObject = z.object({
  metadata: z.object({ deletionTimestamp: z.string().nullish() }),
  status: z.unknown(),
});

function subnetFactsOf(value: unknown, source: string) {
  const { metadata, status } = subnetObject.parse(value);
  return { ...decodeAssignments(status, source), deleting: metadata.deletionTimestamp != null };
}
