/** Releases a lost cluster whose addresses are silent, so that others may lease its blocks. */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Call, CommandLine } from "../../../../host/cli/command-line.ts";
import { ExitCode, ProblemError } from "../../../../host/cli/exit-code.ts";
import { rangesOf } from "../../../../host/core/spans.ts";
import type { Range } from "../../../../host/net/range.ts";
import type { AddressRange } from "../../address-range.ts";
import { listShared, readShared } from "../../blocks/hub.ts";
import { encodeRelease, hasWritten, refuseRelease } from "../../blocks/plan-release.ts";
import { givenOf } from "../../blocks/range-leases.ts";
import type { RangeMember } from "../../range-member.ts";
import { type Places, writeMember } from "./hub.ts";
import { describeMachine, probeSeconds, SegmentProber } from "./probe-segment.ts";

/** Rounds of probes. */
const ROUNDS = 3;

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
  readonly lost: RangeMember;
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
  const ranges = range === undefined ? await listShared(hub) : [await readShared(hub, range)];
  const losses: Loss[] = [];
  for (const { range: each, members } of ranges) {
    const lost = members.find(({ spec }) => spec.member === name);
    if (lost === undefined || (range === undefined && Object.keys(lost.status.blocks).length === 0)) continue;
    const refusal = refuseRelease(lost, cluster);
    if (refusal !== undefined) throw refused(each, name, refusal);
    losses.push({
      range: each,
      lost,
      addresses: rangesOf(givenOf(each, Object.keys(lost.status.blocks)), each.spec.family),
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
      const { members } = await readShared(hub, range.name);
      const now = members.find((each) => each.name === lost.name);
      if (hasWritten(lost, now)) throw refused(range, name, WRITTEN);
    }
    note(`Round ${round} of ${ROUNDS}: silent`);
    if (round < ROUNDS) await sleep(Math.max(0, intervalMs - (performance.now() - begunMs)), undefined, { signal });
  }
  for (const loss of losses) {
    const { range, lost } = loss;
    if (!(await writeMember(hub, lost, encodeRelease(lost, randomUUID)))) throw refused(range, name, WRITTEN);
    out.text(`AddressRange "${range.name}": "${name}" is released, ${countOf(lost)} of it are free`, "green");
  }
  return ExitCode.Success;
}

const WRITTEN = "its RangeMember was written meanwhile, so it may be alive";

function refused({ name }: AddressRange, member: string, why: string): ProblemError {
  return new ProblemError(`AddressRange "${name}": "${member}" is not released: ${why}`);
}

function countOf({ status: { blocks } }: RangeMember): string {
  const { length } = Object.keys(blocks);
  return length === 1 ? "1 block" : `${length} blocks`;
}

function describePlan({ range, lost, addresses, prober }: Loss, name: string, intervalMs: number): string {
  const seconds = probeSeconds(addresses);
  return [
    `AddressRange "${range.name}": probing ${countOf(lost)} of "${name}" from ${prober.nodes.join(", ")}`,
    `${ROUNDS} rounds of ${seconds} s, ${Math.max(seconds, intervalMs / 1_000)} s apart`,
  ].join("; ");
}
