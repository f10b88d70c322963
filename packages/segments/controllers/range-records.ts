/** A leading controller's observations of its ranges: for metrics, and for the time since which a hub is away. */

import { joinRanges } from "../../../host/core/spans.ts";
import { compareText } from "../../../host/lib/order.ts";
import { parsePrefix } from "../../../host/net/prefix.ts";
import { rangeOfPrefix } from "../../../host/net/range.ts";
import type { OtherMember, SourceReason } from "../../../host/resources/pool-source.ts";
import type { SourceView } from "../blocks/block-source.ts";

/** One range. */
class RangeRecord {
  /** When the source answered last; undefined if it has not yet. */
  answered: Date | undefined;
  reason: SourceReason | undefined;
  share: number | undefined;
  /** The blocks that this cluster has; undefined before the first answer. */
  held: ReadonlySet<string> | undefined;
  leased = 0;
  returned = 0;
}

export class RangeRecords {
  readonly #records = new Map<string, RangeRecord>();

  get all(): ReadonlyMap<string, RangeRecord> {
    return this.#records;
  }

  /** Forgets all other ranges. */
  keep(names: ReadonlySet<string>): void {
    for (const name of this.#records.keys()) if (!names.has(name)) this.#records.delete(name);
  }

  /** Takes an answer. Changes of owners before the first one are not counted. */
  answered(name: string, view: SourceView, now: Date): void {
    const record = this.#of(name);
    const held = new Set([...Object.keys(view.blocks), ...Object.keys(view.disputed)]);
    if (record.held !== undefined) {
      record.leased += held.difference(record.held).size;
      record.returned += record.held.difference(held).size;
    }
    Object.assign(record, { answered: now, share: view.share, held });
  }

  /** Returns when the source answered last, RFC 3339; "" if it has not. */
  heard(name: string): string {
    return this.#of(name).answered?.toISOString() ?? "";
  }

  /** `reason`: why it gives no further blocks; undefined if nothing is in the way. */
  ended(name: string, reason: SourceReason | undefined): void {
    this.#of(name).reason = reason;
  }

  #of(name: string): RangeRecord {
    return this.#records.getOrInsertComputed(name, () => new RangeRecord());
  }
}

/** Returns the other clusters of the range, by name, with their blocks. */
export function otherMembers({ others, subnet }: SourceView): readonly OtherMember[] {
  const blocks = Object.entries(others);
  const byMember = [...Map.groupBy(blocks, ([, member]) => member)].sort(([a], [b]) => compareText(a, b));
  return byMember.map(([member, own]) => {
    const ranges = own.flatMap(([block]) => parsePrefix(block) ?? []).map(rangeOfPrefix);
    return { member, blocks: own.length, ranges: joinRanges(ranges, subnet.ip.family) };
  });
}
