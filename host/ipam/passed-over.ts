/**
 * Candidate pools and why they were passed over, as phrases whose number does not grow with the number of pools. The
 * pod's owner reads why named pools were rejected, and how many a pattern found; only the node's administrator reads
 * names of other namespaces' objects.
 */
import type { Candidate } from "./model.ts";

/** Most candidate pools that a refusal names to the pod. */
const MAX_NAMED_POOLS = 8;

/** Most candidate pools that the node's log names for a refusal. `berthctl explain` names all. */
const MAX_LOGGED_POOLS = 32;

/** Most different reasons that a refusal counts; pools with others are counted together. */
const MAX_COUNTED_REASONS = 8;

/** The pod's owner, or the administrator of its node. */
export type Reader = "owner" | "administrator";

/** Texts for candidates that no filter rejects. */
interface PassedOverTexts {
  readonly reasonOf: (candidate: Candidate) => string;
  /** The reason without details of one pool, so that equal reasons can be counted. */
  readonly shortReasonOf: (candidate: Candidate) => string;
  /** Between a pool's name and its reason. */
  readonly separator: string;
  /** Text after the reason of a named pool. */
  readonly more?: (candidate: Candidate) => string;
}

/**
 * Returns `pool "blue" is disabled (spec.disable)`, and for pools that are not named `600 pools: has no free address`.
 */
export function describePassedOver(candidates: readonly Candidate[], reader: Reader, texts: PassedOverTexts): string[] {
  const isOwner = reader === "owner";
  const nameable = isOwner ? candidates.filter(({ isMatched }) => isMatched !== true) : candidates;
  const named = nameable.slice(0, isOwner ? MAX_NAMED_POOLS : MAX_LOGGED_POOLS);
  const told = named.map((candidate) => {
    const { name, refusal = texts.reasonOf(candidate) } = candidate;
    return `pool "${name}"${texts.separator}${isOwner ? (candidate.brief ?? refusal) : refusal}${texts.more?.(candidate) ?? ""}`;
  });
  const others = candidates.length === named.length ? [] : candidates.filter((each) => !named.includes(each));
  return [...told, ...countReasons(others, texts.shortReasonOf, told.length > 0 ? "more " : "")];
}

function countReasons(candidates: readonly Candidate[], reasonOf: PassedOverTexts["reasonOf"], more: string): string[] {
  const groups = Map.groupBy(candidates, (each) => each.brief ?? each.refusal ?? reasonOf(each));
  const counts = [...groups].map(([reason, { length }]) => ({ reason, length })).sort((a, b) => b.length - a.length);
  const shown = counts.slice(0, MAX_COUNTED_REASONS).map(({ reason, length }) => `${pools(length, more)}: ${reason}`);
  const rest = counts.slice(MAX_COUNTED_REASONS).reduce((sum, { length }) => sum + length, 0);
  return rest === 0 ? shown : [...shown, `${pools(rest, more)}: other reasons`];
}

function pools(count: number, more: string): string {
  return `${count} ${more}${count === 1 ? "pool" : "pools"}`;
}
