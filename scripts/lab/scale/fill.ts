/**
 * Fills a pool with other pods' allocations, many thousands within seconds: written into etcd as the API server stores them.
 * Effects: keys of etcd.
 */
import { randomUUID } from "node:crypto";
import { formatIp } from "../../../host/net/ip.ts";
import { parsePrefix } from "../../../host/net/prefix.ts";
import { allocationName, type IpAllocationSpec } from "../../../host/resources/ip-allocation.ts";
import { allocationObject, allocationSpec } from "../cluster/objects.ts";
import { openEtcd } from "../history/etcd.ts";
import { ALLOCATIONS } from "../history/follow.ts";

export interface FillOptions {
  /** IPv4 */
  readonly subnet: string;
  readonly pool: string;
  /** Of the next address, in their order. */
  readonly isTaken: () => boolean;
}

/** etcd's own limit is 128. */
const KEYS_PER_CALL = 100;
/** No agent of a fleet is called so. */
const NODE = "elsewhere";

/** Gives how many were written. Neither the network's own address nor the broadcast address is among them. */
export async function fillPool(etcdUrl: string, { subnet, pool, isTaken }: FillOptions): Promise<number> {
  const prefix = parsePrefix(subnet);
  if (prefix?.ip.family !== 4) throw new TypeError(`${subnet} is no IPv4 subnet`);
  const etcd = openEtcd(etcdUrl);
  try {
    const last = prefix.ip.value + 2n ** BigInt(32 - prefix.length) - 2n;
    let taken = 0;
    let entries: [string, string][] = [];
    for (let value = prefix.ip.value + 1n; value <= last; value++) {
      if (!isTaken()) continue;
      taken++;
      entries.push(entryOf({ family: 4, value }, prefix.length, pool));
      if (entries.length < KEYS_PER_CALL) continue;
      await etcd.putAll(entries);
      entries = [];
    }
    if (entries.length > 0) await etcd.putAll(entries);
    return taken;
  } finally {
    etcd.close();
  }
}

function entryOf(ip: IpAllocationSpec["ip"], prefixLength: number, pool: string): [string, string] {
  const podUid = randomUUID();
  const holders = [{ namespace: "scale", pod: `pod-${podUid}`, podUid, ifName: "eth0", node: NODE }];
  const spec = allocationSpec(formatIp(ip), { prefixLength, pool, node: NODE, holders });
  const stored = { uid: randomUUID(), generation: 1, creationTimestamp: "2026-01-01T00:00:00Z" };
  return [`${ALLOCATIONS}${allocationName(ip, "")}`, JSON.stringify(allocationObject(spec, stored))];
}
