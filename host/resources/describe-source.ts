/** The source of a pool as berthctl shows it. */
import { joinSpans, sizeOf, spansOf, withoutSpans } from "../core/spans.ts";
import { formatRange } from "../net/range.ts";
import type { IpPool } from "./ip-pool.ts";
import { poolShape } from "./ip-pool-shape.ts";
import { NO_NEWS } from "./pool-source.ts";
import type { ReservedIp } from "./reserved-ip.ts";

/** Returns undefined for a pool without one. */
export function describeSource(pool: IpPool, reserved: readonly ReservedIp[]) {
  if (pool.source === undefined) return undefined;
  const { range, blocks, problem, news = NO_NEWS } = pool.source;
  const masked = joinSpans(spansOf(poolShape(pool, reserved).masked));
  return {
    ...{ range, problem, reason: news.reason, heard: news.heard, member: news.member },
    ...(news.share === undefined ? {} : { maxBlocks: news.share }),
    blocks: blocks.map(({ block, state, range: addresses }) => ({
      ...{ block, state, total: Number(sizeOf(withoutSpans(spansOf([addresses]), masked))) },
    })),
    others: news.others.map(({ member, blocks, ranges }) => ({ member, blocks, ips: ranges.map(formatRange) })),
  };
}
