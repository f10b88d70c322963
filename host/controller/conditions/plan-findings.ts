/**
 * The findings about every pool, Subnet and ReservedIP: allocations that are where they should not be, pools outside
 * their Subnets, and what the planners beside this file find.
 */
import { joinRanges, joinSpans, rangesContain, rangesOf, sizeOf, spansOf, withoutSpans } from "../../core/spans.ts";
import { PROXY_ARP_ADDRESSES } from "../../ipam/conflict.ts";
import { listed } from "../../lib/describe.ts";
import { byName, compareText } from "../../lib/order.ts";
import { formatIp, type Ip } from "../../net/ip.ts";
import { prefixesOverlap } from "../../net/prefix.ts";
import { checkPools, refuseFaulty } from "../../resources/check-pools.ts";
import { describeFaults } from "../../resources/fields/address-spec.ts";
import type { IpPool } from "../../resources/ip-pool.ts";
import { type PoolShape, poolShape } from "../../resources/ip-pool-shape.ts";
import { NONE_OCCUPIED, type OccupiedIps } from "../../resources/occupied-ips.ts";
import { describeSource } from "../../resources/pool-source.ts";
import type { ReservedIp } from "../../resources/reserved-ip.ts";
import type { Subnet } from "../../resources/subnet.ts";
import type { CachedAllocation } from "../cached-allocation.ts";
import { addresses, describe, Examples, MAX_EXAMPLES } from "../examples.ts";
import type { Controlled, ControlledPool, ControlledReservation, ControlledSubnet } from "../objects.ts";
import { SpacesIndex } from "../usage/range-search.ts";
import { absent, type Finding, READY } from "./plan-conditions.ts";
import { planOverlap, type RangeOwner, type Sharing } from "./plan-overlap.ts";
import { planSupplied, type SuppliedFindings, type SuppliedView } from "./plan-supplied.ts";

export interface FindingsInput extends Pick<SuppliedView, "settings"> {
  readonly pools: readonly ControlledPool[];
  readonly subnets: readonly ControlledSubnet[];
  readonly reserved: readonly ControlledReservation[];
  readonly allocations: Iterable<CachedAllocation>;
  /** Addresses that other machines have. Default: none. */
  readonly occupied?: OccupiedIps;
}

/** A pod has the address, or it is retained, and another machine says that it has it. */
export interface Contested {
  readonly spec: CachedAllocation["spec"];
  readonly why: string;
}

/** By the object's name. */
export interface Findings {
  readonly pools: ReadonlyMap<string, readonly Finding[]>;
  readonly subnets: ReadonlyMap<string, readonly Finding[]>;
  readonly reserved: ReadonlyMap<string, readonly Finding[]>;
  readonly contested: readonly Contested[];
  /** Problems without an object that could have a condition: sentences. */
  readonly problems: readonly string[];
}

export function planFindings(world: FindingsInput): Findings {
  const { pools, subnets, reserved, allocations, occupied = NONE_OCCUPIED } = world;
  // The order in which agents check pools, so that both refuse the same ones.
  const known = valuesOf(pools).sort(byName);
  const { accepted, refused } = checkPools(known);
  const inUse = planInUse({ pools: known, reserved: valuesOf(reserved), allocations, occupied });
  const supply = planSupplied(world);
  const about = {
    refused,
    inUse,
    supply,
    subnets: valuesOf(subnets).sort(byName),
    sharing: planOverlap(accepted.map(rangeOwnerOf)),
  };
  const sharedSubnets = planOverlap(valuesOf(subnets).map(rangeOwnerOf));
  return {
    pools: new Map(pools.map((pool) => [pool.name, findingsOfPool(pool, about)])),
    subnets: new Map(subnets.map((subnet) => [subnet.name, findingsOfSubnet(subnet, sharedSubnets, supply)])),
    reserved: new Map(reserved.map((one) => [one.name, findingsOfReservation(one, inUse)])),
    contested: [...inUse.pools.values()].flatMap(({ contested }) => contested),
    problems: vanished(pools, inUse),
  };
}

function valuesOf<T>(controlled: readonly Controlled<T>[]): T[] {
  return controlled.flatMap(({ value }) => (value === undefined ? [] : [value]));
}

function rangeOwnerOf({ name, spec: { addressSpace, family, ranges } }: IpPool | Subnet): RangeOwner {
  return { name, addressSpace, family, ranges: joinRanges(ranges, family) };
}

interface About {
  readonly supply: SuppliedFindings;
  readonly refused: ReadonlyMap<string, string>;
  readonly inUse: InUse;
  readonly sharing: ReadonlyMap<string, Sharing>;
  readonly subnets: readonly Subnet[];
}

function findingsOfPool(pool: ControlledPool, { refused, inUse, sharing, subnets, supply }: About): Finding[] {
  const used = inUse.pools.get(pool.name);
  const reason = refused.get(pool.name);
  const supplied = supply.pools.get(pool.name);
  if (supplied === undefined && isInTheMaking(pool)) return [];
  return [
    ...(supplied === undefined ? [] : [supplied]),
    readyPool(pool, reason),
    invalidValues(pool),
    isClash(pool, reason) ? clash(pool.name, reason) : shared("IPPools", sharing.get(pool.name)),
    outsideSubnet(pool.value, subnets),
    outsideRange(used),
    inUseElsewhere(used),
    otherMask(pool.value, used),
    deletedWithHolders(pool, used),
    suspectedProxy(used),
  ];
}

/** A pool that was generated a moment ago has no addresses yet, and no findings. */
function isInTheMaking({ value, deleting }: ControlledPool): boolean {
  return !deleting && value?.spec.generated !== undefined && value.spec.ranges.length === 0;
}

function readyPool(pool: ControlledPool, refusal: string | undefined): Finding {
  const no = (reason: string, message: string, isWanted = false): Finding => {
    return { type: "Ready", isTrue: false, reason, message, isWanted };
  };
  if (pool.value === undefined) return invalid(pool);
  if (pool.deleting) return no("Terminating", "The pool is being deleted and gives out no addresses", true);
  if (refusal !== undefined) return no("Refused", `IPPool "${pool.name}" ${refusal}`);
  // As it should be: nothing is to be waited for.
  if (pool.value.spec.disable)
    return { ...READY, reason: "Disabled", message: "spec.disable is true: the pool gives out no addresses" };
  if (poolShape(pool.value, []).ranges.length === 0)
    return { ...READY, reason: "Empty", message: describeEmpty(pool.value) };
  return READY;
}

function describeEmpty({ source }: IpPool): string {
  return source === undefined
    ? "spec.ips has no addresses"
    : `No block of ${describeSource(source)} is leased yet that gives addresses`;
}

function invalid({ fault }: Controlled<unknown>): Finding {
  const message = `The specification is invalid: ${fault ?? "it cannot be decoded"}`;
  return { type: "Ready", isTrue: false, reason: "InvalidSpecification", message };
}

/** Not invalid as a whole: what the values leave is served. */
function invalidValues({ value }: Controlled<IpPool | Subnet>): Finding {
  const faults = value && describeFaults(value.spec);
  if (faults === undefined) return absent("InvalidValues", "AllValid");
  const message = `The specification has values that new objects cannot have: ${faults}`;
  return { type: "InvalidValues", isTrue: true, reason: "AcceptedBefore", message };
}

function isClash({ value }: ControlledPool, reason: string | undefined): reason is string {
  return reason !== undefined && value !== undefined && refuseFaulty(value) === undefined;
}

function clash(name: string, reason: string): Finding {
  return { type: "Overlap", isTrue: true, reason: "SubnetsOverlap", message: `IPPool "${name}" ${reason}` };
}

function shared(kind: string, sharing: Sharing | undefined): Finding {
  if (sharing === undefined) return absent("Overlap", "NoOverlap");
  const { count, first, others, hasMore } = sharing;
  const names = `${others.map((name) => `"${name}"`).join(", ")}${hasMore ? " and others" : ""}`;
  const end = kind === "IPPools" ? "; each address is still given out once" : "";
  const message = `${addresses(count)}, from ${first} on, ${count === 1n ? "is" : "are"} also in ${kind} ${names}${end}`;
  return { type: "Overlap", isTrue: true, reason: "SharedAddresses", message };
}

function outsideSubnet(pool: IpPool | undefined, subnets: readonly Subnet[]): Finding {
  const found = pool === undefined ? undefined : planOutside(pool, subnets);
  if (found === undefined) return absent("OutsideSubnet", "NoSubnet");
  const { count, total, first } = found;
  if (first === undefined) return absent("OutsideSubnet", "Inside");
  const names = found.subnets.slice(0, MAX_EXAMPLES).map((name) => `"${name}"`);
  const message = `${count} of ${addresses(total)}, from ${formatIp(first)} on, are not in Subnet ${listed(names, found.subnets.length)}, whose network the pool's overlaps`;
  return { type: "OutsideSubnet", isTrue: true, reason: count === total ? "NotInside" : "PartlyInside", message };
}

function outsideRange(used: PoolInUse | undefined): Finding {
  const found = used?.outside;
  if (found === undefined || found.count === 0) return absent("InUseOutsideRange", "AllInside");
  const message = `${addresses(found.count)} of the pool ${found.count === 1 ? "is" : "are"} in use and not among those that it gives out now: ${found}; each goes when it is released`;
  return { type: "InUseOutsideRange", isTrue: true, reason: "AddressesOutside", message };
}

function inUseElsewhere({ contested }: Pick<PoolInUse, "contested"> = { contested: [] }): Finding {
  if (contested.length === 0) return absent("InUseElsewhere", "NoneElsewhere");
  const named = contested.slice(0, MAX_EXAMPLES).map(({ spec, why }) => `${describe(spec)}: ${why} as well`);
  const message = `Other machines say that they have ${addresses(contested.length)} in use: ${listed(named, contested.length)}; each stays with its pod`;
  return { type: "InUseElsewhere", isTrue: true, reason: "OthersClaimThem", message };
}

/** Their pods have started before the pool's subnet was widened. */
function otherMask(pool: IpPool | undefined, used: PoolInUse | undefined): Finding {
  const found = used?.otherMask;
  if (pool === undefined || found === undefined || found.count === 0) return absent("OtherMask", "SameMask");
  const message = `${addresses(found.count)} of the pool ${found.count === 1 ? "has" : "have"} another mask than /${pool.spec.subnet.length}: ${found}; each pod gets it when it starts the next time`;
  return { type: "OtherMask", isTrue: true, reason: "PodsWithOtherMask", message };
}

function deletedWithHolders({ deleting }: ControlledPool, used: PoolInUse | undefined): Finding {
  if (!deleting) return absent("DeletedWithHolders", "NotDeleted");
  if (used === undefined) return absent("DeletedWithHolders", "NoHolders");
  const message = `The pool goes when ${used.all.count === 1 ? "its last address is" : `${used.all.count} addresses are`} free: ${used.all}`;
  return { type: "DeletedWithHolders", isTrue: true, reason: "HoldersRemain", message };
}

function suspectedProxy(used: PoolInUse | undefined): Finding {
  const proxy = used === undefined ? undefined : findProxy(used);
  if (proxy === undefined) return absent("ProxyArpSuspected", "NoProxyArp");
  const message = `The machine ${proxy.mac} answers for ${addresses(proxy.found.count)} of the pool: ${proxy.found}; it may be a switch or router with proxy ARP`;
  return { type: "ProxyArpSuspected", isTrue: true, reason: "SameMachineAnswers", message };
}

function findingsOfSubnet(
  subnet: ControlledSubnet,
  sharing: ReadonlyMap<string, Sharing>,
  supply: SuppliedFindings,
): Finding[] {
  const full = supply.subnets.get(subnet.name);
  return [ready(subnet), invalidValues(subnet), shared("Subnets", sharing.get(subnet.name)), full].flatMap(
    (finding) => finding ?? [],
  );
}

function findingsOfReservation(reserved: ControlledReservation, { reserved: held }: InUse): Finding[] {
  const found = held.get(reserved.name);
  if (found === undefined) return [ready(reserved), absent("ReservedInUse", "NoneInUse")];
  const message = `Pods hold ${addresses(found.count)} of these: ${found}; each stays until it is released, and is not given out again`;
  return [ready(reserved), { type: "ReservedInUse", isTrue: true, reason: "AddressesInUse", message }];
}

function ready(object: Controlled<unknown>): Finding {
  if (object.value === undefined) return invalid(object);
  if (object.deleting) return { ...absent("Ready", "Terminating"), isWanted: true };
  return READY;
}

/** Allocations of deleted pools: legal, and reported nowhere else (pool-changes). */
function vanished(pools: readonly ControlledPool[], { pools: used }: InUse): string[] {
  const names = new Set(pools.map(({ name }) => name));
  const gone = [...used].filter(([name]) => !names.has(name)).sort(([a], [b]) => compareText(a, b));
  const shown = gone.slice(0, MAX_EXAMPLES).map(([name, { all }]) => {
    return `There is no IPPool "${name}", but ${addresses(all.count)} of it ${all.count === 1 ? "is" : "are"} in use: ${all}`;
  });
  return gone.length > shown.length
    ? [...shown, `There are ${gone.length - shown.length} more pools that are gone and have addresses in use`]
    : shown;
}

interface PoolInUse {
  /** All allocations of the pool. */
  readonly all: Examples;
  /** Allocations whose addresses the pool no longer gives out: outside its ranges, excluded, its gateway. */
  readonly outside: Examples;
  readonly contested: Contested[];
  /** Bound allocations with another prefix length than the pool's. */
  readonly otherMask: Examples;
  /** Quarantined allocations by the MAC address that answered. */
  readonly byMac: Map<string, Examples>;
}

interface InUse {
  /** By name, including deleted pools. */
  readonly pools: ReadonlyMap<string, PoolInUse>;
  /** Reserved addresses that pods have, by the name of the ReservedIP. */
  readonly reserved: ReadonlyMap<string, Examples>;
}

interface InUseView extends Required<Pick<FindingsInput, "occupied">> {
  readonly pools: readonly IpPool[];
  readonly reserved: readonly ReservedIp[];
  readonly allocations: Iterable<CachedAllocation>;
}

function planInUse({ pools, reserved, allocations, occupied }: InUseView): InUse {
  const shapes = new Map(
    pools.map(({ name, spec }) => {
      const shape = poolShape({ spec }, []);
      return [name as string, { space: spec.addressSpace, length: spec.subnet.length, ...shape }];
    }),
  );
  const index = new SpacesIndex(
    reserved.map(({ name, spec }) => ({
      space: spec.addressSpace,
      value: name,
      ranges: joinRanges(spec.ranges, spec.family),
    })),
  );
  const inPools = new Map<string, PoolInUse>();
  const inReserved = new Map<string, Examples>();
  for (const { spec } of allocations) {
    const found = inPools.getOrInsertComputed(spec.pool, () => noneInUse());
    found.all.add(spec);
    noteMac(found, spec);
    if (spec.state === "Cooling") continue;
    const shape = shapes.get(spec.pool);
    if (shape !== undefined && !isHandedOut(shape, spec)) found.outside.add(spec);
    if (shape !== undefined && spec.state === "Bound" && spec.prefixLength !== shape.length) found.otherMask.add(spec);
    if (spec.state === "Quarantined") continue;
    const why = occupied.find(spec.ip)?.why;
    if (why !== undefined) found.contested.push({ spec, why });
    for (const name of index.find(spec.addressSpace, spec.ip)) noteIn(inReserved, name, spec);
  }
  return { pools: inPools, reserved: inReserved };
}

function noneInUse(): PoolInUse {
  return { all: new Examples(), outside: new Examples(), contested: [], otherMask: new Examples(), byMac: new Map() };
}

/** Returns the MAC address with so many quarantined addresses of the pool that it counts as proxy ARP (conflict). */
function findProxy({ byMac }: PoolInUse): { readonly mac: string; readonly found: Examples } | undefined {
  const suspects = [...byMac].flatMap(([mac, found]) => (found.count >= PROXY_ARP_ADDRESSES ? [{ mac, found }] : []));
  return suspects.sort((a, b) => compareText(a.mac, b.mac))[0];
}

function isHandedOut(shape: PoolShape & { readonly space: string }, { ip, addressSpace }: CachedAllocation["spec"]) {
  return shape.space === addressSpace && rangesContain(shape.ranges, ip) && !rangesContain(shape.masked, ip);
}

function noteMac({ byMac }: PoolInUse, spec: CachedAllocation["spec"]): void {
  const mac = spec.quarantine?.reason === "Conflict" ? spec.quarantine.mac : "";
  if (spec.state === "Quarantined" && mac !== "") noteIn(byMac, mac, spec);
}

function noteIn(groups: Map<string, Examples>, key: string, spec: CachedAllocation["spec"]): void {
  const examples = groups.getOrInsertComputed(key, () => new Examples());
  examples.add(spec);
}

interface Outside {
  /** Names of the Subnets whose network overlaps the pool's. */
  readonly subnets: readonly string[];
  /** Number of the pool's addresses in none of these Subnets, and of all its addresses. */
  readonly count: bigint;
  readonly total: bigint;
  /** The lowest address outside. */
  readonly first: Ip | undefined;
}

/** Returns undefined if no Subnet covers any of the pool's network. */
function planOutside(pool: IpPool, subnets: readonly Subnet[]): Outside | undefined {
  const near = subnets.filter((subnet) => covers(subnet, pool));
  if (near.length === 0) return undefined;
  const own = spansOf(pool.spec.ranges);
  const offered = near.flatMap(({ spec }) => withoutSpans(spansOf(spec.ranges), spansOf(spec.excluded)));
  const outside = withoutSpans(own, joinSpans(offered));
  const [lowest] = rangesOf(outside, pool.spec.family);
  return { subnets: near.map(({ name }) => name), count: sizeOf(outside), total: sizeOf(own), first: lowest?.first };
}

/** A generated pool counts only against its own Subnet. */
function covers({ name, spec }: Subnet, pool: IpPool): boolean {
  const { generated, addressSpace, subnet } = pool.spec;
  if (generated !== undefined && generated.subnet !== name) return false;
  return spec.addressSpace === addressSpace && prefixesOverlap(spec.subnet, subnet);
}
