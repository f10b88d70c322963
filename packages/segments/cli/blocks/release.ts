/** Declares a cluster gone whose addresses are silent, so that others may lease its blocks. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Call, CommandLine } from "../../../../host/cli/command-line.ts";
import { ExitCode, ProblemError } from "../../../../host/cli/exit-code.ts";
import { rangesOf, spansOf, withoutSpans } from "../../../../host/core/spans.ts";
import type { Range } from "../../../../host/net/range.ts";
import type { AddressRange } from "../../address-range.ts";
import {
  encodeLoss,
  exemptOf,
  findLost,
  hasWritten,
  type LostMember,
  rangesOfBlocks,
  refuseLoss,
} from "../../blocks/plan-release.ts";
import { listRanges, type Places, readRange, writeRange } from "./hub.ts";
import { describeMachine, probeSeconds, SegmentProber } from "./probe-segment.ts";

/** Rounds of probes. */
const ROUNDS = 3;

/** Most tries to write while others write to the range. */
const MAX_TRIES = 8;

export interface ReleaseOptions {
  /** The lost one, as the ranges' members have it. */
  readonly lost: string;
  /** Default: all in which it is a member. */
  readonly range?: string | undefined;
  /** From one round of probes to the next: milliseconds. */
  readonly intervalMs: number;
}

interface Loss {
  readonly range: AddressRange;
  readonly lost: LostMember;
  readonly addresses: readonly Range[];
  readonly prober: SegmentProber;
}

/** Rejects with ProblemError if the cluster may be alive: then nothing is written. */
export async function releaseCluster(
  cli: CommandLine,
  { out, note, signal }: Pick<Call, "out" | "note" | "signal">,
  { hub, cluster }: Places,
  { lost: name, range, intervalMs }: ReleaseOptions,
): Promise<ExitCode> {
  const ranges = range === undefined ? await listRanges(hub) : [await readRange(hub, range)];
  const losses: Loss[] = [];
  for (const each of ranges) {
    const lost = findLost(each, name);
    if (lost === undefined || (range === undefined && lost.membership?.isGone === true)) continue;
    const refusal = refuseLoss(lost, cluster);
    if (refusal !== undefined) throw refused(each, name, refusal);
    losses.push({
      range: each,
      lost,
      addresses: addressesOf(each, lost),
      prober: await SegmentProber.open(cli, each.spec),
    });
  }
  if (losses.length === 0) throw new ProblemError(`No AddressRange has a member "${name}" that could be released`);
  for (const loss of losses) note(describePlan(loss, name, intervalMs));
  for (let round = 1; round <= ROUNDS; round++) {
    const begunMs = performance.now();
    for (const { range, lost, addresses, prober } of losses) {
      const machines = await prober.probe(addresses, signal);
      if (machines.length > 0) {
        for (const machine of machines) out.text(describeMachine(machine), "red");
        throw refused(range, name, "addresses of its blocks are in use");
      }
      if (hasWritten(lost, findLost(await readRange(hub, range.name), name)))
        throw refused(range, name, "its entry or its leases were written meanwhile, so it may be alive");
    }
    note(`Round ${round} of ${ROUNDS}: silent`);
    if (round < ROUNDS) await sleep(Math.max(0, intervalMs - (performance.now() - begunMs)), undefined, { signal });
  }
  for (const loss of losses) {
    await bury(hub, loss, name);
    out.text(
      `AddressRange "${loss.range.name}": "${name}" is declared gone, ${countOf(loss.lost.leased)} of it are free`,
      "green",
    );
  }
  return ExitCode.Success;
}

function addressesOf(range: AddressRange, { blocks }: LostMember): readonly Range[] {
  return rangesOf(withoutSpans(spansOf(rangesOfBlocks(blocks)), spansOf(exemptOf(range))), range.spec.family);
}

async function bury(hub: Places["hub"], { range, lost }: Loss, name: string): Promise<void> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const now = await readRange(hub, range.name);
    if (hasWritten(lost, findLost(now, name)))
      throw refused(range, name, "its entry or its leases were written meanwhile, so it may be alive");
    if (await writeRange(hub, now, { status: encodeLoss(now, name) })) return;
  }
  throw new Error(`AddressRange "${range.name}" was changed by others ${MAX_TRIES} times; try again`);
}

function refused({ name }: AddressRange, member: string, why: string): ProblemError {
  return new ProblemError(`AddressRange "${name}": "${member}" is not declared gone: ${why}`);
}

function countOf(blocks: readonly string[]): string {
  return blocks.length === 1 ? "1 block" : `${blocks.length} blocks`;
}

function describePlan({ range, lost, addresses, prober }: Loss, name: string, intervalMs: number): string {
  const { disputed = [] } = lost.membership ?? {};
  const seconds = probeSeconds(addresses);
  return [
    `AddressRange "${range.name}": probing ${countOf(lost.blocks)} of "${name}" from ${prober.nodes.join(", ")}`,
    `${ROUNDS} rounds of ${seconds} s, ${Math.max(seconds, intervalMs / 1_000)} s apart`,
    ...(disputed.length === 0
      ? []
      : [`${disputed.length} disputed blocks are left to the clusters that have them now`]),
  ].join("; ");
}
