/** A pool as berthctl shows it, without what is counted. */
import { joinSpans, sizeOf, spansOf, withoutSpans } from "../core/spans.ts";
import { formatIp } from "../net/ip.ts";
import { formatPrefix } from "../net/prefix.ts";
import { formatRange } from "../net/range.ts";
import { describePoolOwner } from "./fields/subnet-pool.ts";
import type { IpPool } from "./ip-pool.ts";
import { poolShape } from "./ip-pool-shape.ts";
import { NO_REPORT } from "./pool-source.ts";
import type { ReservedIp } from "./reserved-ip.ts";

export function describePool(pool: IpPool, reserved: readonly ReservedIp[]) {
  const { name, spec } = pool;
  const { subnet, addressSpace, gateway, generated } = spec;
  return {
    name: name as string,
    subnet: formatPrefix(subnet),
    addressSpace,
    gateway: gateway && formatIp(gateway),
    generatedFrom: generated?.subnet,
    generatedFor: generated && describePoolOwner(generated.application),
    default: spec.default,
    disabled: spec.disable,
    source: describeSource(pool, reserved),
  };
}

/** Returns undefined for a pool without one. */
function describeSource(pool: IpPool, reserved: readonly ReservedIp[]) {
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
