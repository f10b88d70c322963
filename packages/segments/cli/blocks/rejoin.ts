/** Lets a cluster go on that was restored, was copied, or was declared gone. */

import type { Call, CommandLine } from "../../../../host/cli/command-line.ts";
import { ExitCode, ProblemError } from "../../../../host/cli/exit-code.ts";
import { rangesOf, spansOf, withoutSpans } from "../../../../host/core/spans.ts";
import { formatIp } from "../../../../host/net/ip.ts";
import { planRejoin } from "../../blocks/plan-rejoin.ts";
import { exemptOf, rangesOfBlocks } from "../../blocks/plan-release.ts";
import { addressesIn, readEpoch } from "./cluster-addresses.ts";
import { memberOf, openOwnRanges, type Places, readRange, writeRange } from "./hub.ts";
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
  const range = await readRange(hub, name);
  const member = memberOf(range, cluster, given);
  const memory = await openOwnRanges(own);
  const known = await memory.read(name, signal);
  await readEpoch(own.api);
  const { pools, used } = await addressesIn(own.api, range.spec, "this cluster");
  const leasing = pools.filter(({ source }) => source?.range === name);
  const inUse = used.filter(({ pool }) => leasing.some((each) => each.name === pool));
  const plan = planRejoin({
    ...{ range, own: known.own, member, cluster },
    listed: leasing.flatMap(({ source }) => source?.blocks ?? []).map(({ block }) => block),
    used: inUse.map(({ ip, holder }) => `${formatIp(ip)} of ${holder}`),
  });
  if (plan.kind === "refused")
    throw new ProblemError(`AddressRange "${name}": "${member}" does not rejoin: ${plan.why}`);
  if (plan.kind === "goesOn") {
    const prober = await SegmentProber.open(cli, range.spec);
    const foreign = withoutSpans(
      withoutSpans(spansOf(rangesOfBlocks(plan.blocks)), spansOf(exemptOf(range))),
      spansOf(used.map(({ ip }) => ({ first: ip, last: ip }))),
    );
    note(`Probing what no pod of this cluster has of ${plan.blocks.length} blocks`);
    const machines = await prober.probe(rangesOf(foreign, range.spec.family), signal);
    for (const machine of machines) out.text(describeMachine(machine), "red");
    if (machines.length > 0)
      throw new ProblemError(`AddressRange "${name}": another cluster uses blocks of "${member}"; turn it off first`);
    await memory.write(name, { ...known, own: plan.own }, signal);
    out.text(
      `AddressRange "${name}": this cluster goes on as "${member}" when its controller asks the hub next`,
      "green",
    );
    return ExitCode.Success;
  }
  await memory.write(name, { ...known, own: plan.own }, signal);
  const status = { sequence: range.status.sequence + 1, members: { [member]: null } };
  if (!(await writeRange(hub, range, { status })))
    throw new Error(`AddressRange "${name}" was changed by others meanwhile; try again`);
  out.text(`AddressRange "${name}": "${member}" begins anew, without blocks`, "green");
  return ExitCode.Success;
}
