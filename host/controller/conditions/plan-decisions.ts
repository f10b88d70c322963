/**
 * Decides about every pool, Subnet and ReservedIP: allocations in the wrong place, pools outside their Subnets, and the
 * results of the planners beside this file.
 */
import { joinRanges, joinSpans, rangesContain, rangesOf, sizeOf, spansOf, withoutSpans } from "../../core/spans.ts";
import { INVALID } from "../../findings/conditions.ts";
import { PROXY_ARP_ADDRESSES } from "../../ipam/conflict.ts";
import { addresses } from "../../ipam/subnet-capacity.ts";
import { listSome } from "../../lib/describe.ts";
import { byName, compareText } from "../../lib/order.ts";
import { formatIp } from "../../net/ip.ts";
import { prefixesOverlap } from "../../net/prefix.ts";
import { type Range, rangeOfPrefix } from "../../net/range.ts";
import { checkPools, describeOldValues, refuseFaulty } from "../../resources/check-pools.ts";
import { MAX_ROUTERS } from "../../resources/fields/address-spec.ts";
import { NO_NODE } from "../../resources/ip-allocation.ts";
import type { IpPool, IpPoolSpec } from "../../resources/ip-pool.ts";
import { heldRoutersOf, poolShape, routersOf } from "../../resources/ip-pool-shape.ts";
import { placeReservation } from "../../resources/locate-address.ts";
import { describeWorkload } from "../../resources/member.ts";
import { describeSharing, planOverlap, type Sharing } from "../../resources/plan-overlap.ts";
import { describeSource } from "../../resources/pool-source.ts";
import { SpacesIndex } from "../../resources/range-search.ts";
import { isReservedFor, type OwnNames, ownNames, type ReservedIp } from "../../resources/reserved-ip.ts";
import type { Subnet } from "../../resources/subnet.ts";
import type { CachedAllocation } from "../cached-allocation.ts";
import { describe, Examples, MAX_EXAMPLES } from "../examples.ts";
import { type Controlled, type ControlledPool, type ControlledReservation, valuesOf } from "../objects.ts";
import type { Claimant } from "../types.ts";
import { describeShared, type OtherRanges } from "./other-allocators.ts";
import { absent, type ConditionType, type Decision, formatSecond, READY } from "./plan-conditions.ts";
import { planSupplied, type SuppliedDecisions, type SuppliedView } from "./plan-supplied.ts";

export interface DecisionsInput extends SuppliedView {
  readonly reserved: readonly ControlledReservation[];
  readonly allocations: Iterable<CachedAllocation>;
  /** Nodes and Services that claim addresses which pods have or retain, by the allocation's name. */
  readonly contested: ReadonlyMap<string, Claimant>;
  /** Pools with an address of a machine that has no record yet. */
  readonly unrecorded: ReadonlySet<string>;
  /** Ranges that other allocators give to Services. */
  readonly others: readonly OtherRanges[];
  /** Records of live pods may be missing: an epoch of the registry is open. */
  readonly isIncomplete: boolean;
}

export interface Contested {
  readonly spec: CachedAllocation["spec"];
  readonly claimant: Claimant;
}

/** By the object's name. */
export interface Decisions {
  readonly pools: ReadonlyMap<string, readonly Decision[]>;
  readonly subnets: ReadonlyMap<string, readonly Decision[]>;
  readonly reserved: ReadonlyMap<string, readonly Decision[]>;
  readonly contested: readonly Contested[];
  /** `status.routers` of the pools. */
  readonly routers: ReadonlyMap<string, readonly string[]>;
}

export function planDecisions(world: DecisionsInput): Decisions {
  const { pools, subnets, reserved, unrecorded, others, isIncomplete } = world;
  // The order in which agents check pools, so that both refuse the same ones.
  const known = valuesOf(pools).sort(byName);
  const { accepted, refused } = checkPools(known);
  const kept = valuesOf(reserved);
  const index = new SpacesIndex(kept.map((each) => inSpace(each, joinRanges(each.spec.ranges, each.spec.family))));
  const inUse = planInUse(world, known, index);
  const supply = planSupplied(world);
  const about = {
    refused,
    inUse,
    supply,
    subnets: valuesOf(subnets).sort(byName),
    sharing: planOverlap(accepted),
    sharedWith: (pool: IpPool) => describeShared(pool, kept, others),
  };
  // Agents take it for looked at when this generation has the condition Ready.
  const isDue = ({ name, generation, conditions }: ControlledPool): boolean =>
    !unrecorded.has(name) ||
    conditions.some(({ type, observedGeneration }) => type === "Ready" && observedGeneration === generation);
  const offering = kept.some(({ spec }) => spec.owner !== undefined) ? accepted : [];
  const segments = new SpacesIndex(offering.map((each) => inSpace(each, [rangeOfPrefix(each.spec.subnet)])));
  const whyOf = (one: ReservedIp): string | undefined => {
    const { addressSpace, ranges } = one.spec;
    const [at] = ranges.map(({ first }) => [addressSpace, first] as const);
    return at && placeReservation(one, segments.find(...at).toSorted(byName), index.find(...at)).why;
  };
  const sharedSubnets = planOverlap(valuesOf(subnets));
  return {
    pools: new Map(pools.filter(isDue).map((pool) => [pool.name, [...decidePool(pool, about)]])),
    subnets: new Map(subnets.map((subnet) => [subnet.name, [...decideSubnet(subnet, sharedSubnets, supply)]])),
    reserved: new Map(reserved.map((one) => [one.name, [...decideReservation(one, inUse, whyOf)]])),
    contested: [...inUse.pools.values()].flatMap(({ contested }) => contested),
    routers: new Map(known.map(({ name, spec }) => [name, planRouters(spec, inUse.pools.get(name), isIncomplete)])),
  };
}

/** Listed before a pool names another router, so that agents hold back the former one with that change. */
function planRouters(spec: IpPoolSpec, used: PoolInUse | undefined, isIncomplete: boolean): readonly string[] {
  const held = isIncomplete ? heldRoutersOf(spec) : routersOf(spec);
  const routers = new Set([...held.map(formatIp), ...(used?.routers ?? [])]);
  return [...routers].sort().slice(0, MAX_ROUTERS);
}

function inSpace<T extends IpPool | ReservedIp>(value: T, ranges: readonly Range[]) {
  return { space: value.spec.addressSpace, value, ranges };
}

interface About {
  readonly supply: SuppliedDecisions;
  readonly refused: ReadonlyMap<string, string>;
  readonly inUse: InUse;
  readonly sharing: ReadonlyMap<string, Sharing>;
  readonly sharedWith: (pool: IpPool) => readonly string[];
  readonly subnets: readonly Subnet[];
}

function* decidePool(pool: ControlledPool, about: About): Iterable<Decision> {
  const { refused, inUse, sharing, sharedWith, subnets, supply } = about;
  const { name, value, deleting } = pool;
  const supplied = supply.pools.get(name);
  // A pool that was generated a moment ago has no addresses yet.
  const isInTheMaking = !deleting && value?.spec.generated !== undefined && value.spec.ranges.length === 0;
  if (supplied === undefined && isInTheMaking) return;
  const refusal = refused.get(name);
  if (supplied !== undefined) yield supplied;
  yield readyPool(pool, refusal);
  yield* decideValues(pool);
  const isClash = refusal !== undefined && value !== undefined && refuseFaulty(value) === undefined;
  if (isClash) yield bad("Overlap", "SubnetsOverlap", `IPPool "${name}" ${refusal}`);
  else yield* decideSharing("IPPools", sharing.get(name));
  if (value !== undefined) yield* decidePlace(value, subnets);
  const shared = value === undefined ? [] : sharedWith(value);
  if (shared.length > 0) {
    const message = `${listSome(shared, MAX_EXAMPLES)}; exclude them here or there`;
    yield bad("OverlapsOthers", "OtherAllocators", message);
  }
  yield* decideUse(pool, inUse.pools.get(name));
}

const bad = (type: ConditionType, reason: string, message: string): Decision => ({
  type,
  isTrue: true,
  reason,
  message,
});

function readyPool(pool: ControlledPool, refusal: string | undefined): Decision {
  const { name, value, deleting } = pool;
  if (value === undefined) return ready(pool);
  if (deleting) return notReady("Terminating", "The pool is being deleted and gives out no addresses", true);
  if (refusal !== undefined) return notReady("Refused", `IPPool "${name}" ${refusal}`);
  // As it should be: nothing is to be waited for.
  if (value.spec.disable)
    return { ...READY, reason: "Disabled", message: "spec.disable is true: the pool gives out no addresses" };
  if (poolShape(value, []).ranges.length === 0) return { ...READY, reason: "Empty", message: describeEmpty(value) };
  return READY;
}

function notReady(reason: string, message: string, isWanted = false): Decision {
  return { type: "Ready", isTrue: false, reason, message, isWanted };
}

function describeEmpty({ source }: IpPool): string {
  return source === undefined
    ? "spec.ips has no addresses"
    : `No block of ${describeSource(source)} is leased yet that gives addresses`;
}

function ready({ value, fault, deleting }: Controlled<unknown>): Decision {
  const why = fault ?? "it cannot be decoded";
  if (value === undefined) return notReady("InvalidSpecification", `${INVALID}${why}`);
  return deleting ? notReady("Terminating", "", true) : READY;
}

/** The object is not invalid as a whole: the addresses that the values leave are served. */
function* decideValues({ value }: Controlled<IpPool | Subnet>): Iterable<Decision> {
  const message = value && describeOldValues(value);
  if (message !== undefined) yield bad("InvalidValues", "AcceptedBefore", message);
}

function* decideSharing(kind: "IPPools" | "Subnets", sharing: Sharing | undefined): Iterable<Decision> {
  if (sharing !== undefined) yield bad("Overlap", "SharedAddresses", describeSharing(kind, sharing));
}

function* decidePlace({ spec }: IpPool, all: readonly Subnet[]): Iterable<Decision> {
  const near = all.filter((subnet) => isAround(subnet, spec));
  if (near.length === 0) return;
  const own = spansOf(spec.ranges);
  const offered = near.flatMap((each) => withoutSpans(spansOf(each.spec.ranges), spansOf(each.spec.excluded)));
  const outside = withoutSpans(own, joinSpans(offered));
  const [lowest] = rangesOf(outside, spec.family);
  if (lowest === undefined) return;
  const [count, total] = [sizeOf(outside), sizeOf(own)];
  const names = near.map(({ name }) => `"${name}"`);
  const message = `${count} of ${addresses(total)}, from ${formatIp(lowest.first)} on, are not in Subnet ${listSome(names, MAX_EXAMPLES)}, whose network the pool's overlaps`;
  yield bad("OutsideSubnet", count === total ? "NotInside" : "PartlyInside", message);
}

/** Whether the Subnet covers any of the pool's network. A generated pool counts only against its own Subnet. */
function isAround({ name, spec }: Subnet, { generated, addressSpace, subnet }: IpPoolSpec): boolean {
  if (generated !== undefined && generated.subnet !== name) return false;
  return spec.addressSpace === addressSpace && prefixesOverlap(spec.subnet, subnet);
}

function* decideUse({ value, deleting }: ControlledPool, used: PoolInUse | undefined): Iterable<Decision> {
  if (used === undefined) return;
  const { all, outside, contested, otherMask, otherGateway } = used;
  if (outside.count > 0) {
    const message = `${addresses(outside.count)} of the pool ${outside.count === 1 ? "is" : "are"} in use and not among those that it gives out now: ${outside}; each goes when it is released`;
    yield bad("InUseOutsideRange", "AddressesOutside", message);
  }
  if (contested.length > 0) {
    const named = contested.map(
      ({ spec, claimant }) => `${describe(spec)}: ${describeWorkload(claimant)} has it as well`,
    );
    const message = `Other machines say that they have ${addresses(contested.length)} in use: ${listSome(named, MAX_EXAMPLES)}; each stays with its pod`;
    yield bad("InUseElsewhere", "OthersClaimThem", message);
  }
  // Their pods have started before the pool's subnet was widened.
  if (otherMask.count > 0) {
    const message = `${addresses(otherMask.count)} of the pool ${otherMask.count === 1 ? "has" : "have"} another mask than /${value?.spec.subnet.length}: ${otherMask}; each pod gets it when it starts the next time`;
    yield bad("OtherMask", "PodsWithOtherMask", message);
  }
  if (otherGateway.count > 0) {
    const former = (value?.spec.formerRouters ?? []).map(formatIp).join(", ");
    const message = `Pods with ${addresses(otherGateway.count)} of the pool route by ${former}, which it does not name any more: ${otherGateway}; each gets the new routes when it starts the next time, and until then no pod gets ${former}`;
    yield bad("OtherGateway", "PodsWithOtherGateway", message);
  }
  const rest = all.count === 1 ? "its last address is" : `${all.count} addresses are`;
  if (deleting) yield bad("DeletedWithHolders", "HoldersRemain", `The pool goes when ${rest} free: ${all}`);
  const proxy = findProxy(used);
  if (proxy === undefined) return;
  const message = `The machine ${proxy.mac} answers for ${addresses(proxy.found.count)} of the pool: ${proxy.found}; it may be a switch or router with proxy ARP`;
  yield bad("ProxyArpSuspected", "SameMachineAnswers", message);
}

function* decideSubnet(subnet: Controlled<Subnet>, sharing: ReadonlyMap<string, Sharing>, supply: SuppliedDecisions) {
  yield ready(subnet);
  yield* decideValues(subnet);
  yield* decideSharing("Subnets", sharing.get(subnet.name));
  yield supply.subnets.get(subnet.name) ?? fullAsBefore(subnet);
}

/** It stays full while that is not decided: before the first division, and while pools are about to get addresses. */
function fullAsBefore({ conditions }: Controlled<Subnet>): Decision {
  const full = conditions.find(({ type }) => type === "Full");
  return full?.status === "True" ? bad("Full", full.reason, full.message) : absent("Full");
}

function* decideReservation(
  reserved: ControlledReservation,
  { reserved: held }: InUse,
  whyOf: (reserved: ReservedIp) => string | undefined,
): Iterable<Decision> {
  const { value, ended } = reserved;
  yield ready({ ...reserved, value: value ?? ended });
  if (ended?.spec.until !== undefined) {
    const until = formatSecond(new Date(ended.spec.until));
    yield bad("Expired", "TimeIsOver", `Its time ended at ${until}: it keeps no address from any pod; delete it`);
  }
  const why = value && whyOf(value);
  if (why !== undefined) yield bad("Unavailable", "NoPoolGivesIt", `No pod gets the address: ${why}`);
  const found = held.get(reserved.name);
  if (found === undefined) return;
  const message = `Others hold ${addresses(found.count)} of these: ${found}; each stays until it is released, and is not given out again`;
  yield bad("ReservedInUse", "AddressesInUse", message);
}

class PoolInUse {
  /** All allocations of the pool. */
  readonly all = new Examples();
  /** Allocations whose addresses the pool no longer gives out: outside its ranges, excluded, its gateway. */
  readonly outside = new Examples();
  readonly contested: Contested[] = [];
  /** Bound allocations with another prefix length than the pool's. */
  readonly otherMask = new Examples();
  /** Routers of Bound allocations; of older objects, which do not name theirs, all former routers. */
  readonly routers = new Set<string>();
  /** Those with a router that the pool does not name any more. */
  readonly otherGateway = new Examples();
  /** Quarantined allocations by the MAC address that answered. */
  readonly byMac = new Map<string, Examples>();
}

interface InUse {
  /** By name, including deleted pools. */
  readonly pools: ReadonlyMap<string, PoolInUse>;
  /** Reserved addresses that pods have, by the name of the ReservedIP. */
  readonly reserved: ReadonlyMap<string, Examples>;
}

type InUseView = Pick<DecisionsInput, "allocations" | "contested">;

/** In one walk: the cache has allocations packed. */
function planInUse(view: InUseView, pools: readonly IpPool[], index: SpacesIndex<ReservedIp>): InUse {
  const shapes = new Map<string, Shape>(pools.map((pool) => [pool.name, shapeOf(pool)]));
  const inPools = new Map<string, PoolInUse>();
  const inReserved = new Map<string, Examples>();
  for (const { name, spec } of view.allocations) {
    const found = inPools.getOrInsertComputed(spec.pool, () => new PoolInUse());
    found.all.add(spec);
    const { state, quarantine } = spec;
    if (state === "Quarantined" && quarantine?.reason === "Conflict" && quarantine.mac !== "")
      noteIn(found.byMac, quarantine.mac, spec);
    if (state === "Cooling") continue;
    const shape = shapes.get(spec.pool);
    if (shape !== undefined && !isHandedOut(shape, spec)) found.outside.add(spec);
    if (shape !== undefined && state === "Bound") noteRoutes(found, spec, shape);
    if (state === "Quarantined") continue;
    const claimant = view.contested.get(name);
    if (claimant !== undefined) found.contested.push({ spec, claimant });
    const reservations = index.find(spec.addressSpace, spec.ip);
    // Nodes and Services may have addresses that are reserved for no pod.
    const isRight = (each: ReservedIp): boolean =>
      (spec.node === NO_NODE && each.spec.owner === undefined) || isReservedFor(each, namesOfHolder(spec));
    if (!reservations.some(isRight)) for (const { name } of reservations) noteIn(inReserved, name, spec);
  }
  return { pools: inPools, reserved: inReserved };
}

type Shape = ReturnType<typeof shapeOf>;

function shapeOf({ spec }: IpPool) {
  const former = new Set((spec.formerRouters ?? []).map(formatIp));
  return { space: spec.addressSpace, length: spec.subnet.length, former, ...poolShape({ spec }, []) };
}

function namesOfHolder({ holders: [holder], workload }: CachedAllocation["spec"]): OwnNames {
  const { namespace = "", pod = "" } = holder ?? { ...workload, pod: workload?.member };
  return ownNames(namespace, pod, workload?.member);
}

function noteRoutes(found: PoolInUse, spec: CachedAllocation["spec"], { length, former }: Shape): void {
  const { prefixLength, routers = [...former] } = spec;
  if (prefixLength !== length) found.otherMask.add(spec);
  if (routers.some((router) => former.has(router))) found.otherGateway.add(spec);
  for (const router of routers) found.routers.add(router);
}

/** Returns the MAC address with so many quarantined addresses of the pool that it counts as proxy ARP (conflict). */
function findProxy({ byMac }: PoolInUse): { readonly mac: string; readonly found: Examples } | undefined {
  const suspects = [...byMac].flatMap(([mac, found]) => (found.count >= PROXY_ARP_ADDRESSES ? [{ mac, found }] : []));
  return suspects.sort((a, b) => compareText(a.mac, b.mac))[0];
}

function isHandedOut({ space, ranges, masked }: Shape, { ip, addressSpace }: CachedAllocation["spec"]): boolean {
  return space === addressSpace && rangesContain(ranges, ip) && !rangesContain(masked, ip);
}

function noteIn(groups: Map<string, Examples>, key: string, spec: CachedAllocation["spec"]): void {
  groups.getOrInsertComputed(key, () => new Examples()).add(spec);
}
