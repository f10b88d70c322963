/**
 * Gives a pool the addresses of its blocks as ranges. On the hub these are excluded before they are free, so that no
 * cluster leases them.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Call } from "../../../../host/cli/command-line.ts";
import { ExitCode, ProblemError } from "../../../../host/cli/exit-code.ts";
import { joinRanges, rangesOf, spansOf, withoutSpans } from "../../../../host/core/spans.ts";
import { ApiError } from "../../../../host/kubernetes/kube-api.ts";
import { decodeIpPool } from "../../../../host/resources/ip-pool.ts";
import { describeSource, encodeSourceStatus } from "../../../../host/resources/pool-source.ts";
import { rangesOfBlocks } from "../../blocks/blocks-of-range.ts";
import { listShared, readShared, type SharedRange } from "../../blocks/hub.ts";
import { leasedFor, planLeaving } from "../../blocks/plan-leaving.ts";
import { addressesIn } from "./cluster-addresses.ts";
import { findMemory, memberOf, type Places } from "./hub.ts";
import { changePool, demand, readPool, specOfRanges, writeExcluded } from "./steps.ts";

/** Time in which a controller sees that the pool leases no more: milliseconds. */
const LOOK_AGAIN_MS = 1_000;
const MAX_LOOKS = 8;

/** Rejects with ProblemError if the pool has no blocks that it could have as ranges. */
export async function leaveRange(
  { out, signal }: Pick<Call, "out" | "signal">,
  places: Places,
  { pool: name }: { readonly pool: string },
): Promise<ExitCode> {
  const { hub, own, cluster } = places;
  const object = await readPool(own.api, name);
  const { source } = decodeIpPool(object, `IPPool "${name}"`);
  // Without the range's present exclusions.
  const { spec } = decodeIpPool({ ...object, status: undefined }, `IPPool "${name}"`);
  if (source?.prefix !== undefined)
    throw new ProblemError(
      `Pool "${name}" leases blocks of ${describeSource(source)}; only a range of a hub can be left`,
    );
  const shared = source === undefined ? await findRange(places, name) : await readShared(hub, source.range);
  if (shared === undefined) throw new ProblemError(`Pool "${name}" leases no blocks`);
  const { range } = shared;
  const told = source?.report?.member || undefined;
  const member = memberOf(shared, cluster, told);
  const { used } = await addressesIn(own.api, range.spec, member.spec.member);
  const plan = planLeaving(range, member, { name, source, used: used.map(({ ip }) => ip) });
  if ("refusal" in plan)
    throw new ProblemError(`Pool "${name}" does not leave AddressRange "${range.name}": ${plan.refusal}`);
  const { served } = plan;
  const { family } = range.spec;
  const whole = spansOf(rangesOfBlocks(served));
  await writeExcluded(hub, range.name, (now) => joinRanges([...now.spec.excluded, ...rangesOfBlocks(served)], family));
  if (source !== undefined) {
    try {
      // Nothing is given of the others, and no pod has an address of them.
      const serving = source.blocks.filter(({ block }) => served.includes(block));
      const listed = await changePool(own.api, name, object, {
        status: { source: encodeSourceStatus({ ...source, blocks: serving }) },
      });
      await changePool(own.api, name, listed, { spec: { source: null, ...specOfRanges(range, spec, served) } });
    } catch (error) {
      // The change may have been carried out although its answer was lost: then the blocks stay excluded.
      const { source: now } = decodeIpPool(await readPool(own.api, name), `IPPool "${name}"`);
      if (now === undefined) throw error;
      await writeExcluded(hub, range.name, (now) => {
        const others = withoutSpans(spansOf(now.spec.excluded), whole);
        return joinRanges([...rangesOf(others, family), ...range.spec.excluded], family);
      });
      const isRefused = error instanceof ApiError && error.status === 422;
      throw isRefused ? new ProblemError(`Pool "${name}" has other blocks by now; try again`) : error;
    }
  }
  const namespace = await findMemory(own);
  // Includes blocks that a controller leased since, before it saw the change: pods have none of their addresses.
  for (let looks = 0; looks < MAX_LOOKS; looks++) {
    const giveBack = leasedFor(memberOf(await readShared(hub, range.name), cluster, told), name);
    if (giveBack.length === 0) break;
    await demand(places, { range: range.name, member: member.spec.member, namespace, signal }, { giveBack });
    await sleep(LOOK_AGAIN_MS, undefined, { signal });
  }
  await changePool(own.api, name, await readPool(own.api, name), { status: { source: null } });
  out.text(
    `Pool "${name}" has its ${served.length} blocks as ranges; AddressRange "${range.name}" excludes them`,
    "green",
  );
  return ExitCode.Success;
}

/** The range of which the cluster has leased blocks for a pool that no longer leases. */
async function findRange({ hub, cluster }: Places, pool: string): Promise<SharedRange | undefined> {
  const ranges = await listShared(hub);
  return ranges.find(({ members }) =>
    members.some((each) => each.status.cluster === cluster && leasedFor(each, pool).length > 0),
  );
}
