/**
 * The address keys that IPPool and Subnet share, and the rules within one object. If `ips` is absent, it is the whole
 * subnet; if empty, nothing.
 */
import * as z from "zod";
import { refuseRepeated } from "../../config/fields/lists.ts";
import { DNS_LABEL, isDnsLabel, MAX_LABEL_LENGTH } from "../../config/fields/names.ts";
import {
  ADDRESS_RULE,
  address,
  EXACT_PREFIX_RULES,
  exactPrefix,
  isRouterAddress,
  MAX_ADDRESS_LENGTH,
  parseAddress,
  ROUTER_FORM,
} from "../../config/fields/network.ts";
import { type CelRule, cel, celText, foundText, IMMUTABLE, rawText } from "../../lib/cel.ts";
import { describeValue } from "../../lib/describe.ts";
import { formatMismatches, type Mismatch, parsedText } from "../../lib/schema.ts";
import { compareIp, equalIp, type Family, formatIp, type Ip, isLinkLocal } from "../../net/ip.ts";
import { firstIp, formatPrefix, type Prefix, parsePrefix, prefixContains } from "../../net/prefix.ts";
import { formatRange, type Range, rangeOfPrefix } from "../../net/range.ts";
import { isSpecial, SPECIAL_PREFIXES, withoutSpecial } from "../../net/special.ts";

/** Most entries of `ips` and of `excludeIPs`; more would exceed the API server's cost limit of CEL rules. @limit */
export const MAX_RANGES = 1_024;

/** Most entries of `routes`. @limit */
export const MAX_ROUTES = 128;

/** Longest entry of `ips` and of `excludeIPs`: characters. Two full IPv6 addresses and a dash have 79. */
const MAX_RANGE_LENGTH = 80;

export interface AddressRoute {
  readonly dst: Prefix;
  readonly gw: Ip;
}

export interface AddressSpec {
  readonly family: Family;
  readonly subnet: Prefix;
  /** Without special addresses (net/special.ts), which no pod can have. */
  readonly ranges: readonly Range[];
  readonly excluded: readonly Range[];
  readonly gateway?: Ip | undefined;
  readonly routes: readonly AddressRoute[];
  readonly addressSpace: string;
  /** Former routers of the pool inside the subnet that pods still route by. Default: none. */
  readonly formerRouters?: readonly Ip[];
  /** Values that Berth up to 0.4 accepted and refuses in new objects. Default: none. */
  readonly faults?: readonly Mismatch[];
}

/** Most routers of a record or a status: the gateway and the next hops. */
export const MAX_ROUTERS = MAX_ROUTES + 1;

export const routerNames = z.array(z.string().max(MAX_ADDRESS_LENGTH)).max(MAX_ROUTERS);

const NO_DEFAULT_ROUTE = 'another network; "gateway" is the default route';
const NO_SECOND_ROUTE = "a network that no earlier route has";

const RANGE_FORM = "an address or a range first-last";
const ONE_FAMILY = "a range of one family";

const firstOf = (entry: string) => `${entry}.substring(0, ${entry}.indexOf('-'))`;
const lastOf = (entry: string) => `${entry}.substring(${entry}.indexOf('-') + 1)`;
const BOTH_ENDS = `self.contains('-') && isIP(${firstOf("self")}) && isIP(${lastOf("self")})`;

const OUTSIDE_SPECIAL = `unicast addresses outside ${SPECIAL_PREFIXES.map(formatPrefix).join(", ")}`;

/** Returns the CEL expression that is true unless {@link isSpecial}; \`ip\` is an expression of an address's text. */
const isUsual = (ip: string) =>
  `(ip(${ip}).isGlobalUnicast() && !${ip}.startsWith('0.') || ${ip}.startsWith('169.254.'))`;

/** True for addresses of IPv6 only: 169.254.0.0/16 of IPv4 is link-local in CEL. */
const isLinkLocalText = (ip: string) => `(${ip}.contains(':') && ip(${ip}).isLinkLocalUnicast())`;

const NETWORK_RULE: CelRule = {
  rule: `!isCIDR(self) || ![${SPECIAL_PREFIXES.map((prefix) => celText(formatPrefix(prefix))).join(", ")}].exists(special, cidr(special).containsCIDR(self))`,
  message: OUTSIDE_SPECIAL,
};

/** Rules of a new network. */
export const SUBNET_RULES: readonly CelRule[] = [...EXACT_PREFIX_RULES, NETWORK_RULE];

const ROUTER_RULE: CelRule = {
  rule: `!isIP(self) || ${isUsual("self")} || ${isLinkLocalText("self")}`,
  message: ROUTER_FORM,
};

/** CEL cannot compare addresses, so only the agent checks the order of a range's ends. */
const RANGE_RULES: readonly CelRule[] = [
  { rule: `isIP(self) || (${BOTH_ENDS})`, message: RANGE_FORM },
  {
    rule: `!(${BOTH_ENDS}) || ${firstOf("self")}.contains(':') == ${lastOf("self")}.contains(':')`,
    message: ONE_FAMILY,
  },
];

/** A separate rule: stored ranges from before it stay valid while unchanged (CRD validation ratcheting). */
const USUAL_RANGE_RULE: CelRule = {
  rule: `isIP(self) ? ${isUsual("self")} : !(${BOTH_ENDS}) || (${isUsual(firstOf("self"))} && ${isUsual(lastOf("self"))})`,
  message: OUTSIDE_SPECIAL,
};

/**
 * Takes `a`, `a-b`, and `a/n`: agents and controllers accept networks one release before the API server does, so that
 * no older one meets them.
 */
function parseRange(text: string): Range | string {
  const prefix = parsePrefix(text);
  if (prefix !== undefined && parseAddress(text.slice(0, text.indexOf("/"))) !== undefined)
    return equalIp(prefix.ip, firstIp(prefix)) ? rangeOfPrefix(prefix) : "a network without host bits";
  const ends = text.split("-").map(parseAddress);
  const [first, last] = [ends[0], ends.at(-1)];
  if (first === undefined || last === undefined || ends.length > 2) return RANGE_FORM;
  if (first.family !== last.family) return ONE_FAMILY;
  return last.value < first.value ? "a range with its lower address first" : { first, last };
}

const range = z
  .string({ error: RANGE_FORM })
  .max(MAX_RANGE_LENGTH, { error: `${RANGE_FORM} of at most ${MAX_RANGE_LENGTH} characters`, abort: true })
  .transform((text, context): Range => {
    const parsed = parseRange(text);
    if (typeof parsed !== "string") return parsed;
    context.addIssue({ code: "custom", message: parsed });
    return z.NEVER;
  })
  .meta({ title: "range", ...cel(...RANGE_RULES) });

const listOf = (entry: typeof range) => z.array(entry).max(MAX_RANGES, { error: `at most ${MAX_RANGES} entries` });

/** A list of addresses (`a`), ranges (`a-b`) and networks (`a/n`). */
export const ranges = listOf(range);

const podRanges = listOf(range.meta({ title: "range", ...cel(...RANGE_RULES, USUAL_RANGE_RULE) }));

export const ipVersion = z.literal([4, 6]);

const SPACE_FORM = `"" or lower-case letters, digits and "-", at most ${MAX_LABEL_LENGTH} characters`;

export const addressSpace = parsedText(
  (text) => (text === "" || isDnsLabel(text) ? text : undefined),
  SPACE_FORM,
  MAX_LABEL_LENGTH,
)
  .prefault("")
  .meta(cel({ rule: `self == '' || self.matches(${rawText(DNS_LABEL.source)})`, message: SPACE_FORM }, IMMUTABLE));

const router = address.meta({ title: "address", ...cel(ADDRESS_RULE, ROUTER_RULE) });

/** A route of a pool. The destination must be canonical: two routes must not have the same one. */
const route = z
  .strictObject({
    dst: exactPrefix.meta({ description: "Destination network in canonical CIDR form." }),
    gw: router.meta({ description: "Next hop of the same family: inside the subnet, or an IPv6 link-local address." }),
  })
  .check((context) => {
    const { dst, gw } = context.value;
    const fail = (key: string, message: string) =>
      context.issues.push({ code: "custom", path: [key], message, input: context.value });
    if (dst.length === 0) fail("dst", NO_DEFAULT_ROUTE);
    if (dst.ip.family !== gw.family) fail("gw", `an IPv${dst.ip.family} address, the family of "dst"`);
  })
  .meta(
    cel(
      {
        rule: "!isCIDR(self.dst) || cidr(self.dst).prefixLength() > 0",
        message: NO_DEFAULT_ROUTE,
        fieldPath: ".dst",
      },
      {
        rule: "!isCIDR(self.dst) || !isIP(self.gw) || self.gw.contains(':') == self.dst.contains(':')",
        message: 'an address of the family of "dst"',
        messageExpression: `${foundText("self.gw")} + 'an IPv' + (self.dst.contains(':') ? '6' : '4') + ' address, the family of "dst"'`,
        fieldPath: ".gw",
      },
    ),
  );

export const addressKeys = {
  ipVersion: ipVersion.optional().meta({ description: "Address family. Derived from `subnet`; must match it." }),
  subnet: exactPrefix.meta({
    description: "Network in canonical CIDR form. Immutable.",
    ...cel(...SUBNET_RULES, IMMUTABLE),
  }),
  ips: podRanges.optional().meta({
    description:
      "Addresses (`a`) and ranges (`a-b`) inside the subnet; in the files of an agent without a cluster also networks (`a/n`), which API servers take from the next release on. If absent, the whole subnet; if empty, no address.",
  }),
  excludeIPs: ranges.default([]).meta({ description: "Addresses and ranges that are never allocated. Default none." }),
  gateway: router.optional().meta({
    description: "Default gateway: inside the subnet, or an IPv6 link-local address. Is never allocated.",
  }),
  routes: z
    .array(route)
    .max(MAX_ROUTES, { error: `at most ${MAX_ROUTES} entries` })
    .check(refuseRepeated(({ dst }) => formatPrefix(dst), "dst", NO_SECOND_ROUTE))
    .default([])
    .meta({
      ...cel({
        rule: "self.all(route, self.exists_one(other, other.dst == route.dst))",
        message: NO_SECOND_ROUTE,
      }),
      description:
        "Routes whose next hops are inside the subnet, or IPv6 link-local. The default route uses `gateway`. Default none.",
    }),
  addressSpace: addressSpace.meta({
    description: "Pools of different spaces may have the same addresses. Immutable.",
  }),
};

type AddressKeys = z.output<z.ZodObject<typeof addressKeys>>;

/** A broken rule: the place inside the spec, and the wanted value. */
interface Finding {
  readonly path: PropertyKey[];
  readonly wanted: string;
}

function outsideOf(subnet: Prefix, list: readonly Range[], key: string): Finding[] {
  const inside = ({ first, last }: Range) => prefixContains(subnet, first) && prefixContains(subnet, last);
  return list.flatMap((entry, index) =>
    inside(entry) ? [] : [{ path: [key, index], wanted: `addresses inside ${formatPrefix(subnet)}` }],
  );
}

/** Returns a finding for each entry that shares an address with an entry that starts before it. */
function overlapsIn(list: readonly Range[], key: string): Finding[] {
  const sorted = list.map((entry, index) => ({ entry, index })).sort((a, b) => compareIp(a.entry.first, b.entry.first));
  const findings: Finding[] = [];
  let reach: Range | undefined;
  for (const { entry, index } of sorted) {
    if (reach !== undefined && compareIp(entry.first, reach.last) <= 0) {
      findings.push({ path: [key, index], wanted: `addresses apart from ${formatRange(reach)}` });
    }
    if (reach === undefined || compareIp(entry.last, reach.last) > 0) reach = entry;
  }
  return findings;
}

/** Returns the routers that the keys name, with their places. */
function routersOf({ gateway, routes }: Pick<AddressKeys, "gateway" | "routes">): { path: PropertyKey[]; ip: Ip }[] {
  const hops = routes.map(({ gw }, index) => ({ path: ["routes", index, "gw"], ip: gw }));
  return [...(gateway === undefined ? [] : [{ path: ["gateway"], ip: gateway }]), ...hops];
}

function findingsOf(keys: AddressKeys): Finding[] {
  const { ipVersion, subnet, ips = [], excludeIPs } = keys;
  const { family } = subnet.ip;
  const findings: Finding[] = [];
  if (ipVersion !== undefined && ipVersion !== family)
    findings.push({ path: ["ipVersion"], wanted: `${family}, the family of "subnet"` });
  findings.push(...outsideOf(subnet, ips, "ips"), ...overlapsIn(ips, "ips"));
  findings.push(...outsideOf(subnet, excludeIPs, "excludeIPs"), ...overlapsIn(excludeIPs, "excludeIPs"));
  const wanted = `an address inside ${formatPrefix(subnet)}${family === 6 ? ", or a link-local one" : ""}`;
  const isReachable = (ip: Ip) => prefixContains(subnet, ip) || (family === 6 && isLinkLocal(ip));
  findings.push(...routersOf(keys).flatMap(({ path, ip }) => (isReachable(ip) ? [] : [{ path, wanted }])));
  return findings;
}

/**
 * Returns values that earlier releases accepted although no pod can use them. Stored objects with such values are
 * served as far as possible and reported; new ones are refused.
 */
function faultsOf(keys: AddressKeys): Mismatch[] {
  const { subnet, ips = [] } = keys;
  const faults: Mismatch[] = [];
  const add = (path: string, got: string, wanted: string) => faults.push({ path, got: describeValue(got), wanted });
  if (SPECIAL_PREFIXES.some((special) => special.length <= subnet.length && prefixContains(special, subnet.ip)))
    add("spec.subnet", formatPrefix(subnet), OUTSIDE_SPECIAL);
  for (const [index, each] of ips.entries())
    if (isSpecial(each.first) || isSpecial(each.last)) add(`spec.ips[${index}]`, formatRange(each), OUTSIDE_SPECIAL);
  const edges = edgesOf(subnet, rangeOfPrefix(subnet));
  for (const {
    path: [key, index],
    ip,
  } of routersOf(keys)) {
    const path = index === undefined ? "spec.gateway" : `spec.${String(key)}[${String(index)}].gw`;
    if (!isRouterAddress(ip)) add(path, formatIp(ip), ROUTER_FORM);
    else if (edges.some((edge) => equalIp(edge, ip))) add(path, formatIp(ip), noEdge(formatPrefix(subnet)));
  }
  return faults;
}

const noEdge = (subnet: string) => `another address than the first and the last one of ${subnet}`;

/** Returns the faults of a stored object's addresses as a clause; undefined if there are none. */
export function describeFaults({ faults = [] }: AddressSpec): string | undefined {
  const [first, ...rest] = faults;
  return first && formatMismatches([first, ...rest]);
}

/** The rules of {@link findingsOf} in CEL, except for overlaps, which CEL cannot express. */
export const ADDRESS_RULES: readonly CelRule[] = [
  {
    rule: "!has(self.ipVersion) || !isCIDR(self.subnet) || self.ipVersion == (self.subnet.contains(':') ? 6 : 4)",
    message: 'the family of "subnet"',
    messageExpression: `'found ' + (self.ipVersion == 6 ? '6' : '4') + ', want ' + (self.subnet.contains(':') ? '6' : '4') + ', the family of "subnet"'`,
    fieldPath: ".ipVersion",
  },
  rangesRule("ips"),
  rangesRule("excludeIPs"),
  insideRule("gateway", `!has(self.gateway) || ${isReachable("self.gateway")}`, "self.gateway"),
  insideRule("routes", `!has(self.routes) || self.routes.all(route, ${isReachable("route.gw")})`),
  edgeRule("gateway", "''", isNoEdge("self.gateway"), "self.gateway"),
  edgeRule("routes", "[]", `self.routes.all(route, ${isNoEdge("route.gw")})`),
];

function isReachable(ip: string): string {
  return `!isIP(${ip}) || cidr(self.subnet).containsIP(${ip}) || (self.subnet.contains(':') && ${isLinkLocalText(ip)})`;
}

/**
 * The host bits of an address are all zeros or all ones if the next address is the first or the second one of a block
 * of the subnet's size.
 */
function isNoEdge(ip: string): string {
  const octets = [16_777_216, 65_536, 256, 1].map((factor, at) => `int(${ip}.split('.')[${at}]) * ${factor}`);
  const sizes = Array.from({ length: 33 }, (_, bits) => 2 ** bits).join(", ");
  const position = `(${octets.join(" + ")} + 1) % [${sizes}][32 - cidr(self.subnet).prefixLength()]`;
  return `!isIP(${ip}) || ${ip}.contains(':') || self.subnet.contains(':') || cidr(self.subnet).prefixLength() > 30 || ${position} > 1`;
}

/**
 * Compares keys with their old values, so that stored objects from before the rule can be changed in other fields. The
 * server takes the cost of comparing two optional values for unlimited.
 */
function edgeRule(key: string, none: string, rule: string, found?: string): CelRule {
  const isUnchanged = `(oldSelf.?${key}.orValue(${none}) == self.${key} && oldSelf.?subnet.orValue('') == self.subnet)`;
  return {
    rule: `!has(self.${key}) || ${isUnchanged} || !isCIDR(self.subnet) || (${rule})`,
    message: noEdge("the subnet"),
    messageExpression: `${found === undefined ? "" : `${foundText(found)} + `}${celText(noEdge(""))} + self.subnet`,
    fieldPath: `.${key}`,
    optionalOldSelf: true,
  };
}

function rangesRule(key: string): CelRule {
  const isInside = (end: string) => `(!isIP(${end}) || cidr(self.subnet).containsIP(${end}))`;
  const bothInside = `${isInside(firstOf("entry"))} && ${isInside(lastOf("entry"))}`;
  const inside = `entry.contains('-') ? ${bothInside} : ${isInside("entry")}`;
  const allInside = `self.${key}.all(entry, ${inside})`;
  return {
    rule: `!has(self.${key}) || !isCIDR(self.subnet) || ${allInside}`,
    message: "addresses inside the subnet",
    messageExpression: `${foundText(`self.${key}.filter(entry, !(${inside}))[0]`)} + 'addresses inside ' + self.subnet`,
    fieldPath: `.${key}`,
  };
}

/** The server refuses to estimate the cost of finding an entry of a list of objects. */
function insideRule(key: string, rule: string, found?: string): CelRule {
  return {
    rule: `!isCIDR(self.subnet) || (${rule})`,
    message: "an address inside the subnet",
    messageExpression: `${found === undefined ? "" : `${foundText(found)} + `}'an address inside ' + self.subnet + (self.subnet.contains(':') ? ', or a link-local one' : '')`,
    fieldPath: `.${key}`,
  };
}

export function checkAddresses({ value, issues }: z.core.ParsePayload<AddressKeys>): void {
  for (const { path, wanted } of findingsOf(value))
    issues.push({ code: "custom", path, message: wanted, input: value });
}

export function addressSpecOf(keys: AddressKeys): AddressSpec {
  const { subnet, ips = [rangeOfPrefix(subnet)], excludeIPs: excluded, gateway, routes, addressSpace } = keys;
  const faults = faultsOf(keys);
  return {
    ...{ family: subnet.ip.family, subnet, ranges: withoutSpecial(ips), excluded, gateway, routes, addressSpace },
    ...(faults.length === 0 ? {} : { faults }),
  };
}

/**
 * Returns the network and the broadcast address of an IPv4 subnet wider than /31, else none. IPv6 has no broadcast. The
 * subnet-router anycast address (RFC 4291 §2.6.1) is not masked; `excludeIPs` may list it.
 */
export function edgesOf({ ip, length }: Prefix, { first, last }: Range): Ip[] {
  return ip.family === 4 && length < 31 ? [first, last] : [];
}
