/**
 * Converts the addresses of a peer's pool or Subnet to Berth's fields. Values that Berth would refuse become findings.
 */
import { joinRanges, rangesOf, sharedSpans, spansOf, withoutSpans } from "../../host/core/spans.ts";
import { compareIp, formatIp, type Ip, isLinkLocal, parseIp } from "../../host/net/ip.ts";
import {
  formatPrefix,
  maskPrefix,
  type Prefix,
  parsePrefix,
  parsePrefixOrIp,
  prefixContains,
} from "../../host/net/prefix.ts";
import { formatRange, parseRange, type Range, rangeOfPrefix, rangesOverlap } from "../../host/net/range.ts";
import { MAX_RANGES, MAX_ROUTES } from "../../host/resources/fields/address-spec.ts";
import type { Place } from "./findings.ts";

/** A value and its field in the peer's object. */
interface Placed<T> {
  readonly field: string;
  readonly value: T;
}

interface RouteText {
  readonly dst: string;
  /** If undefined, through the gateway. */
  readonly gw: string | undefined;
}

export interface AddressDraft {
  readonly subnet: Placed<string>;
  /** Addresses and ranges `a-b`. If undefined, the whole subnet. */
  readonly ips?: readonly Placed<string>[] | undefined;
  /** Addresses, ranges and prefixes. */
  readonly excluded?: readonly Placed<string>[];
  readonly gateway?: Placed<string> | undefined;
  readonly routes?: readonly Placed<RouteText>[];
  /** Whether pods get a default route through the gateway although no route says so. */
  readonly isGatewayDefault: boolean;
  readonly addressSpace?: string;
}

/** The fields in the API's form. */
interface AddressFields {
  readonly subnet: string;
  readonly ips?: readonly string[];
  readonly excludeIPs?: readonly string[];
  readonly gateway?: string;
  readonly routes?: readonly { readonly dst: string; readonly gw: string }[];
  readonly addressSpace?: string;
}

interface AddressTarget {
  readonly peer: string;
  /** The only addresses that Berth may allocate, of all pools. Default: those that the peer allocates. */
  readonly ips?: readonly Range[] | undefined;
}

/** Returns undefined if there is no pool to be made of the draft; the findings say why. */
export function convertAddresses(draft: AddressDraft, place: Place, target: AddressTarget): AddressFields | undefined {
  const { subnet: text, addressSpace = "" } = draft;
  const given = parsePrefix(text.value);
  if (given === undefined) {
    place.problem(text.field, text.value, 'want a network in CIDR form, such as "10.6.0.0/16"');
    return undefined;
  }
  const subnet = maskPrefix(given);
  if (formatPrefix(subnet) !== text.value) place.changed(text.field, text.value, `written as ${formatPrefix(subnet)}`);
  const inSubnet = { subnet, place };
  const theirs = draft.ips === undefined ? undefined : rangesIn(draft.ips, { ...inSubnet, level: "problem" });
  const { gateway, routes, kept } = convertRoutes(draft, inSubnet);
  const theirExcluded = rangesIn(draft.excluded ?? [], { ...inSubnet, level: "unneeded" });
  const { ips, excluded } = restrict(
    { ips: theirs, excluded: theirExcluded },
    { ...inSubnet, field: text.field, target },
  );
  const excludeIPs = joinRanges([...excluded, ...kept.map((ip) => ({ first: ip, last: ip }))], subnet.ip.family);
  for (const [field, list] of [["ips", ips ?? []] as const, ["excludeIPs", excludeIPs] as const]) {
    if (list.length <= MAX_RANGES) continue;
    place.problem(text.field, text.value, `${field} has ${list.length} ranges, want ${MAX_RANGES} at most`);
    return undefined;
  }
  return {
    subnet: formatPrefix(subnet),
    ...(ips === undefined ? {} : { ips: ips.map(formatRange) }),
    ...(excludeIPs.length === 0 ? {} : { excludeIPs: excludeIPs.map(formatRange) }),
    ...(gateway === undefined ? {} : { gateway: formatIp(gateway) }),
    ...(routes.length === 0 ? {} : { routes }),
    ...(addressSpace === "" ? {} : { addressSpace }),
  };
}

interface Allocatable {
  /** If undefined, the whole subnet. */
  readonly ips: readonly Range[] | undefined;
  readonly excluded: readonly Range[];
}

/**
 * Returns the addresses that Berth may allocate while the peer continues to allocate the rest. An address that both
 * would allocate is a problem.
 */
function restrict(
  theirs: Allocatable,
  { subnet, place, field, target }: InSubnet & { readonly field: string; readonly target: AddressTarget },
): Allocatable {
  if (target.ips === undefined) return theirs;
  const { peer } = target;
  const whole = rangeOfPrefix(subnet);
  const { family } = subnet.ip;
  const ours = sharedSpans(spansOf([whole]), spansOf(target.ips.filter(({ first }) => first.family === family)));
  if (ours.length === 0) {
    place.changed(field, formatPrefix(subnet), "Berth allocates none of it: --ips has none of it");
    return { ips: undefined, excluded: [whole] };
  }
  const allocated = withoutSpans(spansOf(theirs.ips ?? [whole]), spansOf(theirs.excluded));
  for (const range of rangesOf(sharedSpans(ours, allocated), family)) {
    const text = `${peer} allocates ${formatRange(range)} as well as --ips would: exclude it there first`;
    place.problem(field, formatPrefix(subnet), text);
  }
  return { ips: rangesOf(ours, family), excluded: [] };
}

interface InSubnet {
  readonly subnet: Prefix;
  readonly place: Place;
}

/** Returns an address, a range or a prefix as a range; undefined for other text. */
export function parseSpan(text: string): Range | undefined {
  const prefix = parsePrefixOrIp(text);
  return prefix === undefined ? parseRange(text) : rangeOfPrefix(prefix);
}

/** Returns the ranges inside the subnet, joined; `level` is that of entries outside. */
function rangesIn(
  list: readonly Placed<string>[],
  { subnet, place, level }: InSubnet & { readonly level: "problem" | "unneeded" },
): Range[] {
  const whole = rangeOfPrefix(subnet);
  const inside = list.flatMap(({ field, value }): Range[] => {
    const range = parseSpan(value);
    if (range === undefined) {
      place.problem(field, value, "left out: want an address or a range first-last");
      return [];
    }
    if (!rangesOverlap(range, whole)) {
      place.add(level, field, value, `left out: outside of ${formatPrefix(subnet)}`);
      return [];
    }
    const first = compareIp(range.first, whole.first) < 0 ? whole.first : range.first;
    const last = compareIp(range.last, whole.last) > 0 ? whole.last : range.last;
    const cut = { first, last };
    if (formatRange(cut) !== formatRange(range))
      place.add(level, field, value, `cut to ${formatRange(cut)}: the rest is outside of ${formatPrefix(subnet)}`);
    return [cut];
  });
  return joinRanges(inside, subnet.ip.family);
}

interface ConvertedRoutes {
  readonly gateway: Ip | undefined;
  readonly routes: { readonly dst: string; readonly gw: string }[];
  /** Gateways that pods do not use as default route: addresses that must not be allocated. */
  readonly kept: readonly Ip[];
}

function convertRoutes(draft: AddressDraft, inSubnet: InSubnet): ConvertedRoutes {
  const { subnet, place } = inSubnet;
  const gateway = draft.gateway && addressIn(draft.gateway, inSubnet);
  let defaultGateway = draft.isGatewayDefault ? gateway : undefined;
  const routes = new Map<string, string>();
  for (const { field, value } of draft.routes ?? []) {
    const dst = parsePrefix(value.dst);
    if (dst === undefined) place.problem(`${field}.dst`, value.dst, "left out: want a network in CIDR form");
    else if (dst.ip.family !== subnet.ip.family)
      place.lost(`${field}.dst`, value.dst, `a route of another family than ${formatPrefix(subnet)}`);
    if (dst?.ip.family !== subnet.ip.family) continue;
    const gw = value.gw === undefined ? gateway : addressIn({ field: `${field}.gw`, value: value.gw }, inSubnet);
    if (gw === undefined) {
      if (value.gw === undefined) place.lost(field, value.dst, "a route without a next hop, and no gateway");
      continue;
    }
    const text = formatPrefix(maskPrefix(dst));
    if (dst.length === 0 && (defaultGateway === undefined || defaultGateway.value === gw.value)) defaultGateway = gw;
    else if (dst.length === 0)
      place.lost(`${field}.gw`, value.gw, `the default route is through ${formatIp(defaultGateway as Ip)}`);
    else if (routes.has(text) && routes.get(text) !== formatIp(gw))
      place.lost(field, text, "a second route to the same network");
    else if (routes.size >= MAX_ROUTES && !routes.has(text))
      place.lost(field, text, `a pool has at most ${MAX_ROUTES} routes`);
    else routes.set(text, formatIp(gw));
  }
  const isUnused = gateway !== undefined && gateway.value !== defaultGateway?.value && prefixContains(subnet, gateway);
  if (isUnused && draft.gateway !== undefined) {
    const text = "no default route goes through it; kept out of allocation by excludeIPs";
    place.changed(draft.gateway.field, draft.gateway.value, text);
  }
  return {
    gateway: defaultGateway,
    routes: [...routes].map(([dst, gw]) => ({ dst, gw })),
    kept: isUnused ? [gateway] : [],
  };
}

/** Returns the address if a pool of the subnet can have it as a router. */
function addressIn({ field, value }: Placed<string>, { subnet, place }: InSubnet): Ip | undefined {
  const ip = parseIp(value);
  if (ip === undefined) place.problem(field, value, "left out: want an address");
  else if (!prefixContains(subnet, ip) && !(subnet.ip.family === 6 && isLinkLocal(ip)))
    place.lost(
      field,
      value,
      `Berth's gateways and next hops are inside the subnet, ${formatPrefix(subnet)}${subnet.ip.family === 6 ? ", or link-local" : ""}`,
    );
  else return ip;
  return undefined;
}

/** Returns entries of a list with their fields: `spec.ips[0]`. */
export function placedList<T>(field: string, values: readonly T[]): Placed<T>[] {
  return values.map((value, at) => ({ field: `${field}[${at}]`, value }));
}
