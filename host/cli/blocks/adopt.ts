/**
 * Turns hand-cut pools into blocks. After each step, what a pool gives is leased, or was its own before; it can be
 * repeated if it breaks off.
 */
import { compareBlocks } from "../../blocks/blocks-of-range.ts";
import { type Adoption, type ClusterAddresses, planAdoption } from "../../blocks/plan-adoption.ts";
import { exemptOf, rangesOfBlocks } from "../../blocks/plan-release.ts";
import { joinRanges, rangesOf, sharedSpans, spansOf } from "../../core/spans.ts";
import type { KubeApi } from "../../kubernetes/kube-api.ts";
import { listPages } from "../../kubernetes/list.ts";
import { CONFIG_MAPS, collectionPath } from "../../kubernetes/paths.ts";
import { formatRange } from "../../net/range.ts";
import type { AddressRange } from "../../resources/address-range.ts";
import { decodeIpPool } from "../../resources/ip-pool.ts";
import { encodeSourceStatus } from "../../resources/pool-source.ts";
import { decodeEpochRecord, EPOCH_MAP } from "../../resources/registry-epoch.ts";
import { CLUSTER_PATIENCE_MS, openClusterSource } from "../cluster-source.ts";
import type { Call, CommandLine } from "../command-line.ts";
import { ExitCode, ProblemError } from "../exit-code.ts";
import { addressesIn } from "./cluster-addresses.ts";
import { memberOf, openOwnRanges, type Places, readRange } from "./hub.ts";
import { describeMachine, SegmentProber } from "./probe-segment.ts";
import { changePool, demand, rangeTexts, readPool, writeExcluded } from "./steps.ts";

export interface AdoptOptions {
  readonly range: string;
  readonly member?: string | undefined;
  readonly pools: readonly string[];
  /** Kubeconfigs of the other clusters of the segment. */
  readonly others: readonly string[];
  readonly isDryRun: boolean;
}

type Talk = Pick<Call, "out" | "note" | "signal">;

/** Rejects with ProblemError, before anything is written, if the pools cannot have blocks. */
export async function adoptPools(
  cli: CommandLine,
  { out, note, signal }: Talk,
  places: Places,
  { range: name, member: given, pools, others, isDryRun }: AdoptOptions,
): Promise<ExitCode> {
  const { hub, own, cluster } = places;
  const range = await readRange(hub, name);
  const member = memberOf(range, cluster, given);
  const memory = await openOwnRanges(own);
  const facts = {
    ...{ range, member, adopted: pools },
    own: await addressesIn(own.api, range.spec, member),
    others: await Promise.all(others.map((path) => readOther(cli, path, range))),
  };
  const plan = planAdoption(facts);
  const problems = [...plan.problems, ...(plan.problems.length > 0 ? [] : await probeGained(cli, range, plan, signal))];
  for (const problem of problems) out.text(problem, "red");
  if (problems.length > 0)
    throw new ProblemError(`AddressRange "${name}": ${problems.length} things are in the way, and nothing was changed`);
  for (const [block, pool] of Object.entries(plan.blocks)) out.text(`${block}: pool "${pool}"`);
  if (isDryRun) return ExitCode.Success;
  await demand(places, { range: name, member, memory, signal }, { claim: plan.blocks });
  await writeExcluded(hub, name, (now) => planAdoption({ ...facts, range: now }).excluded);
  for (const pool of pools) await beginSource(places, { range: await readRange(hub, name), pool, plan });
  note("Free blocks are leased by any member: what other clusters still cut by hand must be in spec.excludeIPs");
  out.text(`AddressRange "${name}": ${Object.keys(plan.blocks).length} blocks of "${member}" are active`, "green");
  return ExitCode.Success;
}

async function readOther(cli: CommandLine, path: string, { spec }: AddressRange): Promise<ClusterAddresses> {
  const kubeconfig = { kubeconfig: [path], context: undefined, userAgent: `berthctl/${cli.version}` };
  const source = await openClusterSource(kubeconfig);
  try {
    return await addressesIn(source.api, spec, path);
  } finally {
    await source.close();
  }
}

/** Nobody has said what the pools did not have: machines may use it. */
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

/**
 * First the pool has all addresses of its blocks, without those that the range excludes; then its status has the
 * blocks; then they take the place of the ranges.
 */
async function beginSource(
  { own: { api } }: Places,
  { range, pool, plan }: { readonly range: AddressRange; readonly pool: string; readonly plan: Adoption },
): Promise<void> {
  const before = await readPool(api, pool);
  const { spec } = decodeIpPool(before, `IPPool "${pool}"`);
  const blocks = Object.keys(plan.blocks)
    .filter((block) => plan.blocks[block] === pool)
    .sort(compareBlocks);
  const exempt = rangesOf(sharedSpans(spansOf(exemptOf(range)), spansOf(rangesOfBlocks(blocks))), range.spec.family);
  const excluded = joinRanges([...spec.excluded, ...exempt], range.spec.family);
  const hidden = { excludeIPs: excluded.map(formatRange) };
  const widened = await changePool(api, pool, before, { spec: { ips: rangeTexts(blocks), ...hidden } });
  const source = encodeSourceStatus({
    epoch: await readEpoch(api),
    asOf: new Date().toISOString(),
    blocks: blocks.map((block) => ({ block, state: "Active" })),
    excluded: joinRanges(exemptOf(range), range.spec.family),
  });
  const listed = await changePool(api, pool, widened, { status: { source } });
  const { excludeIPs = null } = before.spec as { readonly excludeIPs?: unknown };
  await changePool(api, pool, listed, { spec: { ips: null, excludeIPs, source: { range: range.name } } });
}

async function readEpoch(api: KubeApi): Promise<string> {
  const query = { fieldSelector: `metadata.name=${EPOCH_MAP}` };
  for await (const { items } of listPages(api, {
    ...{ path: collectionPath(CONFIG_MAPS), query, patienceMs: CLUSTER_PATIENCE_MS },
  })) {
    const { epoch } = items[0] === undefined ? { epoch: "" } : decodeEpochRecord(items[0], EPOCH_MAP);
    if (epoch !== "") return epoch;
  }
  throw new ProblemError(`The cluster has no ConfigMap ${EPOCH_MAP}: its controller has not led yet`);
}
