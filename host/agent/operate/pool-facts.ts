/**
 * The facts behind `berthctl explain pool`: what this node knows of a pool and, in a cluster, what the API server has
 * of it and of its Subnet.
 */

import * as z from "zod";
import { CniError, ErrorCode } from "../../cni/error.ts";
import { messageOf } from "../../lib/describe.ts";
import { tryOr } from "../../lib/try-or.ts";
import { decodeIpPool, type IpPool } from "../../resources/ip-pool.ts";
import { decodeIpPoolUsage, type PoolUsage } from "../../resources/ip-pool-usage.ts";
import type { OccupiedIp } from "../../resources/occupied-ips.ts";
import type { ReservedIp } from "../../resources/reserved-ip.ts";
import { type Assignments, decodeAssignments } from "../../resources/subnet.ts";
import type { LiveObjects, ReadResult } from "../backend.ts";
import type { PoolInventory } from "../ipam/pool-inventory.ts";

/** A condition of a pool that is not as it should be: `Overlap`, and a sentence. */
interface Trouble {
  readonly type: string;
  readonly message: string;
}

export interface SubnetFacts {
  /** Undefined before the first count. */
  readonly total: number | undefined;
  readonly assigned: number | undefined;
  readonly deleting: boolean;
  readonly pools: Assignments["pools"];
}

export interface LiveFacts {
  readonly usage: ReadResult<PoolUsage>;
  readonly troubles: ReadResult<readonly Trouble[]>;
  /** The Subnet of a generated pool. */
  readonly subnet: ReadResult<SubnetFacts> | undefined;
}

export interface PoolFacts {
  readonly name: string;
  /** Undefined if it cannot be read. */
  readonly pool: IpPool | undefined;
  /** Why it gives out nothing here: `is refused: …` */
  readonly refusal: string | undefined;
  /** As far as this node knows. */
  readonly counts: { readonly total: bigint; readonly free: bigint } | undefined;
  /** Addresses of its ranges that are routers' or other machines', as far as this node knows. */
  readonly exceptions: readonly OccupiedIp[];
  readonly reserved: readonly ReservedIp[];
  /** Undefined in the embedded mode. */
  readonly live: LiveFacts | undefined;
}

export interface PoolFactsDeps {
  readonly inventory: PoolInventory;
  readonly live: LiveObjects | undefined;
}

/** Names of objects; other names are not read. */
const OBJECT_NAME = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/;

/** Rejects with CniError 100 when there is no such pool. */
export async function gatherPoolFacts({ inventory, live }: PoolFactsDeps, name: string): Promise<PoolFacts> {
  const { pools, refused, reserved } = await inventory.loaded();
  const watched = pools.get(name);
  const refusal = refused.get(name);
  const object = live === undefined || !OBJECT_NAME.test(name) ? undefined : await live.read("ippools", name);
  const pool = (object?.kind === "there" ? poolOf(object.value) : undefined) ?? watched;
  const isKnown = watched !== undefined || refusal !== undefined;
  if (object?.kind === "there" ? false : object?.kind === "absent" || !isKnown) {
    throw new CniError(ErrorCode.NoPoolMatches, `There is no IPPool "${name}"`);
  }
  const counts = inventory.poolCache.counts(name);
  const facts = { name, pool, refusal, counts, exceptions: inventory.poolCache.exceptionsOf(name), reserved };
  if (live === undefined || object === undefined) return { ...facts, live: undefined };
  const from = pool?.spec.generated?.subnet;
  const [usage, subnet] = await Promise.all([
    live.read("ippoolusages", name),
    from === undefined ? undefined : live.read("subnets", from),
  ]);
  return {
    ...facts,
    live: {
      usage: decoded(usage, (value) => decodeIpPoolUsage(value, `IPPoolUsage "${name}"`).usage),
      troubles: decoded(object, troublesOf),
      subnet: subnet && decoded(subnet, (value) => subnetFactsOf(value, `Subnet "${from}"`)),
    },
  };
}

function poolOf(value: unknown): IpPool | undefined {
  return tryOr(() => decodeIpPool(value, "API server"), undefined);
}

function decoded<T>(read: ReadResult<unknown>, decode: (value: unknown) => T): ReadResult<T> {
  if (read.kind !== "there") return read;
  try {
    return { kind: "there", value: decode(read.value) };
  } catch (error) {
    return { kind: "unseen", why: messageOf(error) };
  }
}

const condition = z.object({ type: z.string(), status: z.string(), message: z.string() });

const conditioned = z.object({
  status: z.object({ conditions: z.array(condition).catch([]) }).catch({ conditions: [] }),
});

/** Conditions that are good when they hold. */
const GOOD: readonly string[] = ["Ready", "Supplied"];

function troublesOf(value: unknown): Trouble[] {
  const { conditions } = conditioned.parse(value).status;
  // `Stalled` repeats what `Ready` says.
  return conditions.filter(({ type, status }) => type !== "Stalled" && (status === "True") !== GOOD.includes(type));
}

const counted = z.object({
  metadata: z.object({ deletionTimestamp: z.string().nullish() }),
  status: z
    .object({ total: z.number().optional().catch(undefined), assigned: z.number().optional().catch(undefined) })
    .nullish(),
});

function subnetFactsOf(value: unknown, source: string): SubnetFacts {
  const { metadata, status } = counted.parse(value);
  const { pools } = decodeAssignments((value as { status?: unknown }).status, source);
  const deleting = (metadata.deletionTimestamp ?? undefined) !== undefined;
  return { total: status?.total, assigned: status?.assigned, deleting, pools };
}
