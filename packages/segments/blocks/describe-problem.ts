/** Why a range gives a cluster no further blocks: a word for programs, and a sentence without its full stop. */
import { compareText } from "../../../host/lib/order.ts";
import { isPrefix, nameServer, type SourceReason, type SourceSpec } from "../../../host/resources/pool-source.ts";
import type { SourceView } from "./block-source.ts";

interface SourceProblem {
  readonly reason: SourceReason;
  readonly text: string;
}

/** Returns undefined if nothing is in the way. */
export function problemOf({
  bar,
  short,
  blocks,
  others,
}: Pick<SourceView, "bar" | "short" | "blocks" | "others">): SourceProblem | undefined {
  if (bar?.kind === "contested") return { reason: "Contested", text: CONTESTED };
  if (bar !== undefined)
    return {
      reason: "OtherCluster",
      text: `another cluster, ${bar.cluster}, is the member of this name; want another name (--hub-member)`,
    };
  if (short === undefined) return undefined;
  if (short === "share")
    return { reason: "ShareUsedUp", text: "this cluster has as many blocks as it may have (maxBlocks)" };
  const byMember = Map.groupBy(Object.values(others), (member) => member);
  const held = [...byMember].sort(([a], [b]) => compareText(a, b)).map(([member, { length }]) => `${member} ${length}`);
  const text = `no block is free: this cluster has ${[Object.keys(blocks).length, ...held].join(", ")}`;
  return { reason: "RangeUsedUp", text };
}

const CONTESTED =
  "two clusters act in this one's name, or this one was restored or released; it neither leases nor returns until an administrator says that it goes on";

/** After the name of the server. */
const FAILURES: Partial<Readonly<Record<SourceReason, string>>> = {
  HubNotTrusted: "'s certificate is not trusted",
  TokenRefused: " refuses this cluster's token",
  Forbidden: " does not let this cluster's account do that",
  NotMember: " has no RangeMember of this cluster",
  OtherVersion: " has AddressRanges of another version, or none",
};

/** Returns the problem when the source gave no answer. */
export function describeOutage(reason: SourceReason, source: Pick<SourceSpec, "range">): string {
  const missing = reason === "NoRange" && ` has no such ${isPrefix(source) ? "prefix" : "range"}`;
  return `${nameServer(source)}${missing || (FAILURES[reason] ?? " cannot be asked")}, pods get what is leased already`;
}
