/** Decides which rows a registry that lost some should have: by runtimes' caches, the kernel, and the rest. */
import { decodePodArgs } from "../../../cni/request.ts";
import type { PoolAddress } from "../../../ipam/pick.ts";
import { formatIp, type Ip } from "../../../net/ip.ts";
import type { Mac } from "../../../net/mac.ts";
import { type Prefix, prefixContains } from "../../../net/prefix.ts";
import { rangeContains } from "../../../net/range.ts";
import { type Allocation, containerOfNetns, type Recovered } from "../../../registry/registry.ts";
import type { IpPool } from "../../../resources/ip-pool.ts";
import { routersOf } from "../../../resources/ip-pool-shape.ts";
import type { LiveAddress } from "../../request/live-namespaces.ts";
import type { CachedAttachment } from "../../request/runtime-cache.ts";

export interface Evidence {
  readonly cached: readonly CachedAttachment[];
  readonly live: readonly LiveAddress[];
  /** All rows of the registry, as it is. */
  readonly rows: readonly Allocation[];
  readonly pools: readonly IpPool[];
  /** Whether a path leads into a network namespace now. */
  readonly isLive: (netns: string) => boolean;
}

/** `source` says where it was found. */
export type Find = Recovered & { readonly source: string };

export interface Recovery {
  /** Addresses to record as Bound, without those that are recorded already. */
  readonly found: readonly Find[];
  /** Rows that are correct. */
  readonly kept: readonly Allocation[];
  /** Bound rows whose pod's namespace is gone. */
  readonly gone: readonly Allocation[];
  /** Sentences about skipped findings, with the reasons. */
  readonly ignored: readonly string[];
}

export function planRecovery(evidence: Evidence): Recovery {
  const { rows, isLive } = evidence;
  const bound = rows.filter(({ state }) => state === "Bound");
  const isGone = ({ netns }: Allocation): boolean => netns !== undefined && !isLive(netns);
  const ignored: string[] = [];
  const cached = evidence.cached.flatMap((attachment) => findsOfCache(attachment, evidence, ignored));
  const isRecorded = (find: Find): boolean => bound.some((row) => keyOf(row) === keyOf(find) && !isGone(row));
  const present = evidence.live.filter(({ netns }) => isLive(netns));
  const alone = present.flatMap((nic) => findsOfNic(nic, evidence.pools)).filter((find) => !isRecorded(find));
  // A runtime's cached result takes precedence over the NIC's addresses.
  const found = [...new Map([...alone, ...cached].map((find) => [keyOf(find), find])).values()];
  const versions = new Map(rows.map((row) => [keyOf(row), row.version]));
  const isRight = (find: Find): boolean =>
    bound.some(
      (row) => keyOf(row) === keyOf(find) && row.containerId === find.containerId && row.ifName === find.ifName,
    );
  const keys = new Set(found.map(keyOf));
  return {
    found: found.filter((find) => !isRight(find)).map((find) => ({ ...find, seenVersion: versions.get(keyOf(find)) })),
    kept: bound.filter((row) => {
      if (!keys.has(keyOf(row))) return !isGone(row);
      return found.some((find) => isRight(find) && keyOf(find) === keyOf(row));
    }),
    gone: bound.filter((row) => !keys.has(keyOf(row)) && isGone(row)),
    ignored,
  };
}

function keyOf({ space, ip }: Pick<Recovered, "space" | "ip">): string {
  return `${formatIp(ip)}/${space}`;
}

function findsOfCache(attachment: CachedAttachment, { pools, isLive }: Evidence, ignored: string[]): Find[] {
  const { source, containerId, ifName, network, netns, args, result } = attachment;
  if (netns !== undefined && !isLive(netns)) {
    ignored.push(`${source} belongs to a deleted pod: its namespace ${netns} is gone`);
    return [];
  }
  const { namespace = "", name = "", uid } = decodePodArgs(args);
  const about = { owner: uid ?? containerId, containerId, ifName, network, namespace, pod: name, netns, source };
  return result.ips.flatMap(({ address, gateway, interface: position }) => {
    const told = [gateway, ...result.routes.map(({ gw }) => gw)].filter((ip) => ip !== undefined);
    const mac = position === undefined ? undefined : result.interfaces[position]?.mac;
    const finds = inPools(address, pools, told).map((place) => ({ ...place, ...about, mac: mac as Mac | undefined }));
    if (finds.length === 0) ignored.push(`${source}: ${formatIp(address.ip)} is in no pool`);
    return finds;
  });
}

function findsOfNic({ netns, ifName, mac, prefix }: LiveAddress, pools: readonly IpPool[]): Find[] {
  const containerId = containerOfNetns(netns);
  const about = { owner: containerId, containerId, ifName, network: "", namespace: "", pod: "", netns, mac };
  return inPools(prefix, pools).map((place) => ({ ...place, ...about, source: netns }));
}

/**
 * Returns one entry for each address space with the address in a pool: the right one is unknown. `told`: the pod's
 * routers; by default those that the pool has now.
 */
function inPools({ ip }: Prefix, pools: readonly IpPool[], told?: readonly Ip[]): Omit<PoolAddress, "ifName">[] {
  const fitting = pools.filter(({ spec }) => prefixContains(spec.subnet, ip));
  const hasIt = ({ spec }: IpPool): boolean => spec.ranges.some((range) => rangeContains(range, ip));
  const bySpace = Map.groupBy(fitting, ({ spec }) => spec.addressSpace);
  return [...bySpace].flatMap(([space, some]) => {
    const pool = some.find(hasIt) ?? some[0];
    if (pool === undefined) return [];
    const { subnet } = pool.spec;
    const routers = told?.filter((each) => prefixContains(subnet, each)) ?? routersOf(pool.spec);
    const names = [...new Set(routers.map(formatIp))];
    return [{ space, ip, prefixLength: subnet.length, pool: pool.name, routers: names }];
  });
}
