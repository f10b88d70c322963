/** Which addresses of pools the machines of the cluster have: those that the agents are told of. */
import { joinRanges, rangesContain } from "../../core/spans.ts";
import { compareIp, FAMILIES, formatIp, type Ip, parseIp } from "../../net/ip.ts";
import type { Range } from "../../net/range.ts";
import { MAX_OCCUPIED } from "../../resources/status.ts";

/** Addresses as text, by what has them; other text is ignored. */
export interface MachineAddresses {
  readonly nodes: Iterable<string>;
  readonly apiServer: Iterable<string>;
  readonly services: Iterable<string>;
}

export type OccupiedStatus = Readonly<Record<keyof MachineAddresses, readonly string[]>>;

interface OccupiedPlan {
  readonly occupied: OccupiedStatus;
  /** Number of addresses left out. */
  readonly leftOut: number;
}

/** `ranges` are those of all pools and Subnets. Lists are ascending; an address is in the first list that has it. */
export function planOccupied(machines: MachineAddresses, ranges: readonly Range[]): OccupiedPlan {
  const byFamily = FAMILIES.map((family) => {
    const own = ranges.filter(({ first }) => first.family === family);
    return [family, joinRanges(own, family)] as const;
  });
  const joined = new Map(byFamily);
  const isInPool = (ip: Ip): boolean => rangesContain(joined.get(ip.family) ?? [], ip);
  const seen = new Set<string>();
  let leftOut = 0;
  const listOf = (addresses: Iterable<string>): readonly string[] => {
    const found = [...addresses].flatMap((text) => parseIp(text) ?? []).filter(isInPool);
    const list = [...new Set(found.toSorted(compareIp).map(formatIp))].filter((text) => !seen.has(text));
    for (const text of list) seen.add(text);
    leftOut += Math.max(0, list.length - MAX_OCCUPIED);
    return list.slice(0, MAX_OCCUPIED);
  };
  const { nodes, apiServer, services } = machines;
  const occupied = { nodes: listOf(nodes), apiServer: listOf(apiServer), services: listOf(services) };
  return { occupied, leftOut };
}
