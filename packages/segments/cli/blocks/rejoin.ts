/** Lets a cluster go on that was restored, copied, or released. */
import { randomUUID } from "node:crypto";
import type { Call, CommandLine } from "../../../../host/cli/command-line.ts";
import { ExitCode, ProblemError } from "../../../../host/cli/exit-code.ts";
import { rangesOf, spansOf, withoutSpans } from "../../../../host/core/spans.ts";
import { readShared } from "../../blocks/hub.ts";
import { OwnRanges } from "../../blocks/own-ranges.ts";
import { planRejoin } from "../../blocks/plan-rejoin.ts";
import { givenOf } from "../../blocks/range-leases.ts";
import { addressesIn, readEpoch } from "./cluster-addresses.ts";
import { findMemory, memberOf, type Places, writeMember } from "./hub.ts";
import { describeMachine, SegmentProber } from "./probe-segment.ts";

export interface RejoinOptions {
  readonly range: string;
  readonly member?: string | undefined;
}

/** Rejects with ProblemError if nothing is to be done, or another cluster uses the blocks. */
export async function rejoinRange(
  cli: CommandLine,
  { out, note, signal }: Pick<Call, "out" | "note" | "signal">,
  { hub, own, cluster }: Places,
  { range: name, member: given }: RejoinOptions,
): Promise<ExitCode> {
  const shared = await readShared(hub, name);
  const { spec } = shared.range;
  const member = memberOf(shared, cluster, given);
  const memory = new OwnRanges(own.api, await findMemory(own));
  const known = await memory.read(name, signal);
  await readEpoch(own.api);
  const { pools, used } = await addressesIn(own.api, spec, "this cluster");
  const leasing = pools.filter(({ source }) => source?.range === name);
  const inUse = used.filter(({ pool }) => leasing.some((each) => each.name === pool));
  const plan = planRejoin({ member, own: known.own, cluster, used: inUse, newId: randomUUID });
  const about = `AddressRange "${name}"`;
  if ("refusal" in plan) throw new ProblemError(`${about}: "${member.spec.member}" does not rejoin: ${plan.refusal}`);
  if (plan.blocks.length > 0) {
    const prober = await SegmentProber.open(cli, spec);
    const own = spansOf(used.map(({ ip }) => ({ first: ip, last: ip })));
    const foreign = withoutSpans(givenOf(shared.range, plan.blocks), own);
    note(`Probing addresses of ${plan.blocks.length} blocks that no pod of this cluster has`);
    const machines = await prober.probe(rangesOf(foreign, spec.family), signal);
    for (const machine of machines) out.text(describeMachine(machine), "red");
    if (machines.length > 0)
      throw new ProblemError(`${about}: another cluster uses blocks of "${member.spec.member}"; turn it off first`);
  }
  await memory.write(name, { ...known, own: plan.own }, signal);
  if (!(await writeMember(hub, member, plan.status)))
    throw new Error(`RangeMember "${member.name}" was changed by others meanwhile; try again`);
  out.text(`${about}: this cluster goes on as "${member.spec.member}", with ${plan.blocks.length} blocks`, "green");
  return ExitCode.Success;
}
