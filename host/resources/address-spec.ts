/**
 * The addresses of an IPPool or a Subnet: their common keys, and the rules that one object can tell
 * (specification, Resolved B; reference: an `ips` that is absent is the whole subnet, an empty one is nothing).
 * Called by ip-pool.ts and subnet.ts.
 * Effects: none.
 */
import { z } from "zod";
import { refuseRepeated } from "../config/fields/lists.ts";
import { isDnsLabel } from "../config/fields/names.ts";
import { address, exactPrefix, route } from "../config/fields/network.ts";
import { MAX_LABEL_LENGTH } from "../config/limits.ts";
import { parsedText } from "../lib/schema.ts";
import { compareIp, type Family, type Ip, parseIp } from "../net/ip.ts";
import { formatPrefix, type Prefix, prefixContains } from "../net/prefix.ts";
import { formatRange, parseRange, type Range, rangeOfPrefix } from "../net/range.ts";
import { MAX_RANGE_LENGTH, MAX_RANGES, MAX_ROUTES } from "./limits.ts";

export interface AddressRoute {
  readonly dst: Prefix;
  readonly gw: Ip;
}

export interface AddressSpec {
  readonly family: Family;
  readonly subnet: Prefix;
  readonly ranges: readonly Range[];
  readonly excluded: readonly Range[];
  readonly gateway?: Ip | undefined;
  readonly routes: readonly AddressRoute[];
  readonly addressSpace: string;
}

const RANGE_FORM = "an address or a range first-last";

/** What is wrong with a text that is no range, as the phrase of what is wanted. */
function rangeWanted(text: string): string {
  const [first, last, ...rest] = text.split("-").map(parseIp);
  if (first === undefined || last === undefined || rest.length > 0) return RANGE_FORM;
  return first.family === last.family ? "a range with its lower address first" : "a range of one family";
}

const range = z
  .string({ error: RANGE_FORM })
  .max(MAX_RANGE_LENGTH, { error: `${RANGE_FORM} of at most ${MAX_RANGE_LENGTH} characters`, abort: true })
  .transform((text, context): Range => {
    const parsed = parseRange(text);
    if (parsed !== undefined) return parsed;
    context.addIssue({ code: "custom", message: rangeWanted(text) });
    return z.NEVER;
  })
  .meta({ title: "range" });

/** A list of `a` or `a-b`. */
export const ranges = z.array(range).max(MAX_RANGES, { error: `at most ${MAX_RANGES} entries` });

export const ipVersion = z.literal([4, 6]);

export const addressSpace = parsedText(
  (text) => (text === "" || isDnsLabel(text) ? text : undefined),
  `"" or lower-case letters, digits and "-", at most ${MAX_LABEL_LENGTH} characters`,
).prefault("");

export const addressKeys = {
  ipVersion: ipVersion.optional().meta({ description: "Family; derived from `subnet`, with which it must agree." }),
  subnet: exactPrefix.meta({ description: "Network in canonical CIDR form; immutable." }),
  ips: ranges.optional().meta({
    description: "Addresses `a` and ranges `a-b` inside the subnet. Absent: the whole subnet. Empty: nothing.",
  }),
  excludeIPs: ranges.default([]).meta({ description: "Addresses and ranges that are never handed out. Default none." }),
  gateway: address.optional().meta({ description: "Default gateway; inside the subnet, never handed out." }),
  routes: z
    .array(route)
    .max(MAX_ROUTES, { error: `at most ${MAX_ROUTES} entries` })
    .check(refuseRepeated(({ dst }) => formatPrefix(dst), "dst"))
    .default([])
    .meta({
      description: "Routes through next hops inside the subnet. The default route is `gateway`'s. Default none.",
    }),
  addressSpace: addressSpace.meta({
    description: "Pools of different spaces may hold the same address; immutable.",
  }),
};

/** The keys as decoded, before the rules between them. */
export type AddressKeys = z.output<z.ZodObject<typeof addressKeys>>;

/** A rule's finding: the place inside the spec, and what is wanted there. */
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

/** Each entry of a list that shares an address with one that begins before it. */
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

function faultsOfRoutes(subnet: Prefix, routes: readonly AddressRoute[]): Finding[] {
  return routes.flatMap(({ dst, gw }, index): Finding[] => {
    if (dst.length === 0) {
      return [{ path: ["routes", index, "dst"], wanted: 'another network; "gateway" is the default route' }];
    }
    if (prefixContains(subnet, gw)) return [];
    return [{ path: ["routes", index, "gw"], wanted: `an address inside ${formatPrefix(subnet)}` }];
  });
}

function findingsOf({ ipVersion, subnet, ips = [], excludeIPs, gateway, routes }: AddressKeys): Finding[] {
  const { family } = subnet.ip;
  const findings: Finding[] = [];
  if (ipVersion !== undefined && ipVersion !== family)
    findings.push({ path: ["ipVersion"], wanted: `${family}, the family of "subnet"` });
  findings.push(...outsideOf(subnet, ips, "ips"), ...overlapsIn(ips, "ips"));
  findings.push(...outsideOf(subnet, excludeIPs, "excludeIPs"), ...overlapsIn(excludeIPs, "excludeIPs"));
  if (gateway !== undefined && !prefixContains(subnet, gateway)) {
    findings.push({ path: ["gateway"], wanted: `an address inside ${formatPrefix(subnet)}` });
  }
  findings.push(...faultsOfRoutes(subnet, routes));
  return findings;
}

/** For `.check`: the rules between the keys. */
export function checkAddresses({ value, issues }: z.core.ParsePayload<AddressKeys>): void {
  for (const { path, wanted } of findingsOf(value))
    issues.push({ code: "custom", path, message: wanted, input: value });
}

/** The keys in Berth's own words. */
export function addressSpecOf({ subnet, ips, excludeIPs, gateway, routes, addressSpace }: AddressKeys): AddressSpec {
  return {
    family: subnet.ip.family,
    subnet,
    ranges: ips ?? [rangeOfPrefix(subnet)],
    excluded: excludeIPs,
    gateway,
    routes,
    addressSpace,
  };
}
