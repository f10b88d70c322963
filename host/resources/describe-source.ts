import { joinSpans, sizeOf, spansOf, withoutSpans } from "../core/spans.ts";
import { formatRange } from "../net/range.ts";
import type { IpPool } from "./ip-pool.ts";
import { poolShape } from "./ip-pool-shape.ts";
import { NO_REPORT } from "./pool-source.ts";
import type { ReservedIp } from "./reserved-ip.ts";

/** Returns undefined for a pool without one. */
export function describeSource(pool: IpPool, reserved: readonly ReservedIp[]) {
  if (pool.source === undefined) return undefined;
  const { range, blocks, problem, report = NO_REPORT } = pool.source;
  const masked = joinSpans(spansOf(poolShape(pool, reserved).masked));
  return {
    ...{ range, problem, reason: report.reason, heard: report.heard, member: report.member },
    ...(report.share === undefined ? {} : { maxBlocks: report.share }),
    blocks: blocks.map(({ block, state, range: addresses }) => ({
      ...{ block, state, total: Number(sizeOf(withoutSpans(spansOf([addresses]), masked))) },
    })),
    others: report.others.map(({ member, blocks, ranges }) => ({ member, blocks, ips: ranges.map(formatRange) })),
  };
}
