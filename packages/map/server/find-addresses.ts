/** Addresses as records: of a span, and found by a text. */
import { compareIp, formatIp, type Ip, parseIp } from "../../../host/net/ip.ts";
import { describeMember, describeWorkload } from "../../../host/resources/member.ts";
import { isIn } from "./encode-map.ts";
import type { AddressesAnswer, MapAddress, SearchAnswer } from "./map-records.ts";
import type { MapAllocation, MapPool } from "./map-source.ts";
import { seesAllocation, stateFor, type Viewer } from "./viewer.ts";

/** Most addresses in an answer of the address map. */
const MAX_MAP_ADDRESSES = 1_024;

/** Most addresses that a search of the address map finds. */
const MAX_FOUND = 50;

/** Longest text to search for in the address map: characters. */
export const MAX_SEARCH_TEXT = 253;

/** Returns the record; without names if the viewer may not see them. */
function describeMapAddress(allocation: MapAllocation, viewer: Viewer): MapAddress {
  const { ip, addressSpace, pool, holders, workload, quarantine, mac, since } = allocation;
  const common = { address: formatIp(ip), addressSpace, state: stateFor(viewer, allocation) };
  if (!seesAllocation(viewer, allocation))
    return { ...common, pool: "", holders: [], workload: "", mac: "", since: "" };
  return {
    ...common,
    pool,
    holders: holders.map(({ namespace, pod, ifName, node }) => ({ namespace, pod, interface: ifName, node })),
    workload: workload === undefined ? "" : describeMember(workload),
    mac: quarantine?.mac || mac || "",
    since: since ?? "",
  };
}

interface SpanQuestion {
  readonly pool: MapPool;
  readonly first: Ip;
  readonly last: Ip;
  readonly allocations: Iterable<MapAllocation>;
  readonly viewer: Viewer;
}

export function listAddresses({ pool, first, last, allocations, viewer }: SpanQuestion): AddressesAnswer {
  const found: MapAllocation[] = [];
  for (const allocation of allocations) {
    const { ip } = allocation;
    if (isIn(pool, allocation) && first.value <= ip.value && ip.value <= last.value) found.push(allocation);
  }
  found.sort((a, b) => compareIp(a.ip, b.ip));
  const addresses = found.slice(0, MAX_MAP_ADDRESSES).map((allocation) => describeMapAddress(allocation, viewer));
  return { addresses, isCut: found.length > MAX_MAP_ADDRESSES };
}

interface TextQuestion {
  readonly text: string;
  readonly pools: readonly MapPool[];
  readonly allocations: Iterable<MapAllocation>;
  readonly viewer: Viewer;
}

/** Finds an address, or allocations with the text in a name of pod, workload, node or pool, or in the MAC. */
export function searchAddresses({ text, pools, allocations, viewer }: TextQuestion): SearchAnswer {
  const wanted = text.trim().toLowerCase();
  const ip = parseIp(wanted);
  const found: MapAllocation[] = [];
  let isCut = false;
  for (const allocation of allocations) {
    const isFound =
      ip === undefined
        ? seesAllocation(viewer, allocation) && textsOf(allocation).some((each) => each.toLowerCase().includes(wanted))
        : compareIp(allocation.ip, ip) === 0;
    if (!isFound) continue;
    isCut = found.length >= MAX_FOUND;
    if (isCut) break;
    found.push(allocation);
  }
  found.sort((a, b) => compareIp(a.ip, b.ip));
  const named = ip === undefined ? pools.filter(({ name }) => name.includes(wanted)) : poolsAt(pools, ip);
  return {
    pools: named.map(({ name }) => name).slice(0, MAX_FOUND),
    addresses: found.map((allocation) => ({
      ...describeMapAddress(allocation, viewer),
      pools: pools.filter((pool) => isIn(pool, allocation)).map(({ name }) => name),
    })),
    isCut: isCut || named.length > MAX_FOUND,
  };
}

function poolsAt(pools: readonly MapPool[], ip: Ip): readonly MapPool[] {
  return pools.filter((pool) => isIn(pool, { ip, addressSpace: pool.addressSpace }));
}

function textsOf({ holders, workload, quarantine, mac = "" }: MapAllocation): string[] {
  const texts = [mac, quarantine?.mac ?? ""];
  for (const { namespace, pod, node } of holders) texts.push(`${namespace}/${pod}`, node);
  if (workload !== undefined) texts.push(describeWorkload(workload), workload.member);
  return texts;
}
