/**
 * Turns hand-cut pools into blocks. After each step, every address that a pool gives is leased, or was its own before;
 * the command can be repeated if it breaks off.
 */

import type { Call, CommandLine } from "../../../../host/cli/command-line.ts";
import { ExitCode, ProblemError } from "../../../../host/cli/exit-code.ts";
import { joinRanges } from "../../../../host/core/spans.ts";
import { isSameList } from "../../../../host/lib/same-list.ts";
import { equalRange } from "../../../../host/net/range.ts";
import { decodeIpPool, type IpPool } from "../../../../host/resources/ip-pool.ts";
import { encodeSourceStatus } from "../../../../host/resources/pool-source.ts";
import type { AddressRange } from "../../address-range.ts";
import { compareBlocks } from "../../blocks/blocks-of-range.ts";
import { readShared } from "../../blocks/hub.ts";
import { type Adoption, type ClusterAddresses, planAdoption } from "../../blocks/plan-adoption.ts";
import { exemptOf } from "../../blocks/range-leases.ts";
import { addressesIn, readEpoch } from "./cluster-addresses.ts";
import { findMemory, memberOf, type Places } from "./hub.ts";
import { describeMachine, SegmentProber } from "./probe-segment.ts";
import { changePool, demand, readPool, specOfRanges, writeExcluded } from "./steps.ts";

export interface AdoptOptions {
  readonly range: string;
  readonly member?: string | undefined;
  readonly pool: readonly string[];
  /** Kubeconfigs of the other clusters of the segment. */
  readonly other: readonly string[];
  readonly dryRun?: boolean;
}

type Talk = Pick<Call, "out" | "note" | "signal">;

/** Rejects with ProblemError, before anything is written, if the pools cannot have blocks. */
export async function adoptPools(
  cli: CommandLine,
  { out, note, signal }: Talk,
  places: Places,
  { range: name, member: given, pool: pools, other: others, dryRun = false }: AdoptOptions,
): Promise<ExitCode> {
  const { hub, own, cluster } = places;
  const shared = await readShared(hub, name);
  const { range } = shared;
  const found = memberOf(shared, cluster, given);
  const { member } = found.spec;
  const namespace = await findMemory(own);
  const epoch = await readEpoch(own.api);
  const facts = {
    ...{ ...shared, member: found, adopted: pools },
    own: await addressesIn(own.api, range.spec, member),
    others: await Promise.all(others.map((path) => readOther(cli, path, range))),
  };
  const plan = planAdoption(facts);
  const problems = [...plan.problems, ...(plan.problems.length > 0 ? [] : await probeGained(cli, range, plan, signal))];
  for (const problem of problems) out.text(problem, "red");
  if (problems.length > 0)
    throw new ProblemError(`AddressRange "${name}": ${problems.length} things are in the way, and nothing was changed`);
  for (const [block, pool] of Object.entries(plan.blocks)) out.text(`${block}: pool "${pool}"`);
  if (dryRun) return ExitCode.Success;
  await demand(places, { range: name, member, namespace, signal }, { claim: plan.blocks });
  await writeExcluded(hub, name, (now) => planAdoption({ ...facts, range: now }).excluded);
  for (const pool of facts.own.pools.filter((each) => pools.includes(each.name)))
    await beginSource(places, { range: (await readShared(hub, name)).range, pool, plan, epoch });
  note("Free blocks are leased by any member: what other clusters still cut by hand must be in spec.excludeIPs");
  out.text(`AddressRange "${name}": ${Object.keys(plan.blocks).length} blocks of "${member}" are active`, "green");
  return ExitCode.Success;
}

async function readOther(cli: CommandLine, path: string, { spec }: AddressRange): Promise<ClusterAddresses> {
  const source = await cli.openCluster(path);
  try {
    return await addressesIn(source.api, spec, path);
  } finally {
    await source.close();
  }
}

/** Addresses that the pools did not have are unknown: machines may use them. */
async function probeGained(
  cli: CommandLine,
  range: AddressRange,
  { gained }: Adoption,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (gained.length === 0) return [];
  const prober = await SegmentProber.open(cli, range.spec);
  const machines = await prober.probe(gained, signal);
  return machines.map(
    (machine) => `${describeMachine(machine)}, and no pool here has it: exclude it (spec.excludeIPs)`,
  );
}

interface BeginningSource {
  readonly range: AddressRange;
  /** As it was planned with. */
  readonly pool: IpPool;
  readonly plan: Adoption;
  /** The registry's. */
  readonly epoch: string;
}

/**
 * First the pool has all addresses of its blocks, without those that the range excludes; then its status has the
 * blocks; then they take the place of the ranges.
 */
async function beginSource(
  { own: { api } }: Places,
  { range, pool: known, plan, epoch }: BeginningSource,
): Promise<void> {
  const { name: pool } = known;
  const before = await readPool(api, pool);
  const { spec } = decodeIpPool(before, `IPPool "${pool}"`);
  if (!isSameList(spec.ranges, known.spec.ranges, equalRange))
    throw new ProblemError(`Pool "${pool}" was changed by others meanwhile; try again`);
  const blocks = Object.keys(plan.blocks)
    .filter((block) => plan.blocks[block] === pool)
    .sort(compareBlocks);
  const widened = await changePool(api, pool, before, { spec: specOfRanges(range, spec, blocks) });
  const source = encodeSourceStatus({
    epoch,
    asOf: new Date().toISOString(),
    blocks: blocks.map((block) => ({ block, state: "Active" })),
    excluded: joinRanges(exemptOf(range), range.spec.family),
  });
  const listed = await changePool(api, pool, widened, { status: { source } });
  const { excludeIPs = null } = before.spec as { readonly excludeIPs?: unknown };
  await changePool(api, pool, listed, { spec: { ips: null, excludeIPs, source: { range: range.name } } });
}
