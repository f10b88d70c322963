/** The steps by which pools begin to lease and end: each names the version that it is based on. */

import { ProblemError } from "../../../../host/cli/exit-code.ts";
import { CLUSTER_PATIENCE_MS } from "../../../../host/cli/read-objects.ts";
import { joinRanges, rangesOf, sharedSpans, spansOf } from "../../../../host/core/spans.ts";
import { isConflict, type KubeApi, type KubeObject } from "../../../../host/kubernetes/kube-api.ts";
import { objectPath, statusPath } from "../../../../host/kubernetes/paths.ts";
import { orElse } from "../../../../host/lib/try-or.ts";
import { formatIp } from "../../../../host/net/ip.ts";
import { formatRange, type Range } from "../../../../host/net/range.ts";
import { IP_POOLS } from "../../../../host/resources/collections.ts";
import type { IpPoolSpec } from "../../../../host/resources/ip-pool.ts";
import type { AddressRange } from "../../address-range.ts";
import { rangesOfBlocks } from "../../blocks/blocks-of-range.ts";
import { openHub, readShared } from "../../blocks/hub.ts";
import type { BlockDemand } from "../../blocks/plan-leases.ts";
import { exemptOf } from "../../blocks/range-leases.ts";
import { type Places, writeRange } from "./hub.ts";

/** Most tries to write while others write to the same object. */
const MAX_TRIES = 8;

interface Asking {
  readonly range: string;
  readonly member: string;
  /** Of the cluster's memory. */
  readonly namespace: string;
  readonly signal: AbortSignal;
}

const CLOCK = { now: () => new Date(), nowMs: () => performance.now() };

/** Asks the hub as the cluster's controller does, under its name. Rejects with ProblemError if it gets less. */
export async function demand(
  { hub, own, cluster }: Places,
  { range, member, namespace, signal }: Asking,
  wanted: Partial<BlockDemand>,
): Promise<void> {
  const source = openHub({ hub, home: own.api, namespace, member: { range, member, cluster }, clock: CLOCK });
  const view = await afterOthers(() => source.update({ lease: {}, giveBack: [], ...wanted }, signal));
  const missing = Object.keys(wanted.claim ?? {}).filter((block) => !(block in view.blocks));
  const left = (wanted.giveBack ?? []).filter((block) => block in view.blocks);
  if (missing.length + left.length === 0) return;
  const why = view.bar?.kind ?? view.short ?? "it was changed meanwhile";
  throw new ProblemError(`AddressRange "${range}": the hub did not take ${[...missing, ...left].join(", ")}: ${why}`);
}

/** Repeats the work while the controller, which leases for the same cluster, changes the objects that were read. */
async function afterOthers<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      if (!isConflict(error) || tries === MAX_TRIES) throw error;
    }
  }
}

export async function writeExcluded(
  hub: KubeApi,
  name: string,
  excludedOf: (range: AddressRange) => readonly Range[],
): Promise<void> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const { range: now } = await readShared(hub, name);
    const excludeIPs = excludedOf(now).map(formatRange);
    if (excludeIPs.join() === now.spec.excluded.map(formatRange).join()) return;
    if (await writeRange(hub, now, { excludeIPs })) return;
  }
  throw new Error(`AddressRange "${name}" was changed by others ${MAX_TRIES} times; try again`);
}

/** Returns the specification of a pool with the blocks as ranges, without addresses that the AddressRange exempts. */
export function specOfRanges(range: AddressRange, { excluded }: IpPoolSpec, blocks: readonly string[]) {
  const { family } = range.spec;
  const ranges = rangesOfBlocks(blocks);
  const exempt = rangesOf(sharedSpans(spansOf(exemptOf(range)), spansOf(ranges)), family);
  return {
    // Each from its first address to its last, as the API server compares them.
    ips: ranges.map(({ first, last }) => `${formatIp(first)}-${formatIp(last)}`),
    excludeIPs: joinRanges([...excluded, ...exempt], family).map(formatRange),
  };
}

export function readPool(api: KubeApi, name: string): Promise<KubeObject> {
  return api.call({ method: "GET", path: objectPath(IP_POOLS, { name }), patienceMs: CLUSTER_PATIENCE_MS });
}

/** Returns the object afterwards. Rejects with ProblemError if its specification was changed since it was read. */
export async function changePool(
  api: KubeApi,
  name: string,
  before: KubeObject,
  change: { readonly spec: object } | { readonly status: object },
): Promise<KubeObject> {
  const path = "spec" in change ? objectPath(IP_POOLS, { name }) : statusPath(IP_POOLS, { name });
  let object = before;
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const { uid, resourceVersion } = metadataOf(object);
    const call = { method: "PATCH", path, body: { metadata: { uid, resourceVersion }, ...change } } as const;
    const changed = await api.call(call).catch(orElse(isConflict, undefined));
    if (changed !== undefined) return changed;
    // The controller writes the status all the time.
    object = await readPool(api, name);
    if (metadataOf(object).generation !== metadataOf(before).generation) break;
  }
  throw new ProblemError(`Pool "${name}" was changed by others meanwhile; try again`);
}

function metadataOf({ metadata }: KubeObject): Readonly<Record<string, unknown>> {
  return metadata as Readonly<Record<string, unknown>>;
}
