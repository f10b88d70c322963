/**
 * The node's link under any NIC that has an address of a pool: through it the pool's segment can be asked for an address of which no link is
 * known here, as its own node is lost (conflict).
 * Handed to probe-quarantined.ts by open-detection.ts.
 * Effects: reads the registry; netlink sockets for the time of a call.
 */

import type { ProbeLink } from "../../coordinator/probe.ts";
import { NetnsError } from "../../kernel/netns.ts";
import { firstIp } from "../../net/prefix.ts";
import { listRows } from "../../registry/list-rows.ts";
import type { Allocation, Registry } from "../../registry/registry.ts";
import { SWEEP_PAGE } from "../gc/collector.ts";

export interface PoolLinkTools {
  readonly registry: Pick<Registry, "list">;
  /** "" when there is none on the node. Throws NetnsError when the namespace is gone. */
  readonly findParentName: (netns: string, ifName: string) => string;
  readonly findNodeLink: (name: string) => ProbeLink | undefined;
}

/** Of the pool, else of another one of the same prefix and space. Undefined when no NIC here has such an address, or none hangs on a link that is on. */
export async function findPoolLink(tools: PoolLinkTools, wanted: Allocation): Promise<ProbeLink | undefined> {
  const near: Allocation[] = [];
  for await (const row of listRows(tools.registry, SWEEP_PAGE)) {
    if (row.state !== "Bound" || row.netns === undefined || !isOnSegment(row, wanted)) continue;
    if (row.pool === wanted.pool) near.unshift(row);
    else near.push(row);
  }
  const tried = new Set<string>();
  for (const { netns = "", ifName } of near) {
    const name = findName(tools, netns, ifName);
    if (name === "" || tried.has(name)) continue;
    tried.add(name);
    const link = tools.findNodeLink(name);
    if (link !== undefined) return link;
  }
  return undefined;
}

function isOnSegment(row: Allocation, wanted: Allocation): boolean {
  if (row.space !== wanted.space || row.ip.family !== wanted.ip.family) return false;
  if (row.pool === wanted.pool) return true;
  const [one, other] = [row, wanted].map(({ ip, prefixLength: length }) => firstIp({ ip, length }).value);
  return row.prefixLength === wanted.prefixLength && one === other;
}

/** A pod that is being deleted has lost its namespace. */
function findName({ findParentName }: PoolLinkTools, netns: string, ifName: string): string {
  try {
    return findParentName(netns, ifName);
  } catch (error) {
    if (error instanceof NetnsError) return "";
    throw error;
  }
}
