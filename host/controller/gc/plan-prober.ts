/**
 * Which node's agent asks for an address whose own node is gone (allocation rule 12): one that attaches pods from the address's pool, as its
 * link reaches the segment.
 */

/** A node as the caches have it: a hint, for who is asked only has to be able to. */
export interface ProberCandidate {
  readonly node: string;
  readonly isReady: boolean;
  /** Bound addresses that it has of the pool. */
  readonly attached: number;
  /** Bound addresses that it has of other pools of the same subnet. */
  readonly besides: number;
  /** Addresses that it has been told to ask for. */
  readonly asked: number;
}

export interface ProberQuestion {
  readonly candidates: readonly ProberCandidate[];
  /** Not these: the node that is lost, and those that were told before and did not find it silent. */
  readonly except: ReadonlySet<string>;
}

/** Of those that attach from the pool itself, else from its subnet, the one with the least to do. Undefined when nobody can ask. */
export function chooseProber({ candidates, except }: ProberQuestion): string | undefined {
  const able = candidates.filter(
    ({ node, isReady, attached, besides }) => isReady && attached + besides > 0 && !except.has(node),
  );
  const near = able.filter(({ attached }) => attached > 0);
  const order = (a: ProberCandidate, b: ProberCandidate): number => a.asked - b.asked || (a.node < b.node ? -1 : 1);
  return (near.length > 0 ? near : able).sort(order)[0]?.node;
}
