/**
 * Schemas of the values that many resources and settings hold: addresses, prefixes, routes, names.
 * Called by the other files of this folder and by the resources.
 * Effects: none.
 */
import { z } from "zod";
import { IF_NAME_FORM, parseIfName } from "../cni/names.ts";
import { parsedText } from "../lib/schema.ts";
import { parseIp } from "../net/ip.ts";
import { formatPrefix, maskPrefix, type Prefix, parsePrefix, parsePrefixOrIp } from "../net/prefix.ts";
import { MAX_LABEL_LENGTH, MAX_NAME_LENGTH } from "./limits.ts";
import { isPattern, isWellFormedPattern } from "./pattern.ts";

export const address = parsedText(parseIp, "an IPv4 or IPv6 address").meta({ title: "address" });

export const ifName = parsedText(parseIfName, IF_NAME_FORM).meta({ title: "interface name" });

/** Text of a prefix without host bits; the error says the canonical form. */
function canonical(parse: (text: string) => Prefix | undefined, wanted: string) {
  return z.string({ error: wanted }).transform((text, context): Prefix => {
    const prefix = parse(text);
    if (prefix === undefined) {
      context.addIssue({ code: "custom", message: wanted });
      return z.NEVER;
    }
    const masked = formatPrefix(maskPrefix(prefix));
    if (formatPrefix(prefix) !== masked) context.addIssue({ code: "custom", message: `"${masked}" (no host bits)` });
    return prefix;
  });
}

/** `10.6.0.0/16`, `fd00::/64`. */
export const prefix = canonical(parsePrefix, 'a network in CIDR form, such as "10.6.0.0/16"').meta({ title: "CIDR" });

/** A prefix; a bare address is one of full length. */
export const prefixOrIp = canonical(
  parsePrefixOrIp,
  'a network in CIDR form, such as "10.6.0.0/16", or an address',
).meta({ title: "CIDR or address" });

/** A route through a gateway of its own family. */
export const route = z
  .strictObject({
    dst: prefix.meta({ description: "Destination network in CIDR form." }),
    gw: address.meta({ description: "Next hop, of the same family." }),
  })
  .check((context) => {
    const { dst, gw } = context.value;
    if (dst.ip.family === gw.family) return;
    const message = `an IPv${dst.ip.family} address, the family of "dst"`;
    context.issues.push({ code: "custom", path: ["gw"], message, input: context.value });
  });

/** The index of the first of two entries with equal keys and of the second, or undefined. */
export function findRepeated<T>(list: readonly T[], keyOf: (entry: T) => string): [number, number] | undefined {
  const seen = new Map<string, number>();
  for (const [index, entry] of list.entries()) {
    const before = seen.get(keyOf(entry));
    if (before !== undefined) return [before, index];
    seen.set(keyOf(entry), index);
  }
  return undefined;
}

const DNS_LABEL = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/;

/** RFC 1123 §2.1 as Kubernetes reads it: one part of a name, without dots. */
export function isDnsLabel(text: string): boolean {
  return text.length <= MAX_LABEL_LENGTH && DNS_LABEL.test(text);
}

/** Parts with dots between; Kubernetes limits the whole name only. */
export function isDnsSubdomain(text: string): boolean {
  return text.length <= MAX_NAME_LENGTH && text.split(".").every((part) => DNS_LABEL.test(part));
}

/** What {@link isDnsSubdomain} accepts, for error texts. */
export const DNS_SUBDOMAIN_FORM = `a name of lower-case letters, digits, "-" and ".", at most ${MAX_NAME_LENGTH} characters`;

/** The name of a Kubernetes object. */
export const objectName = parsedText((text) => (isDnsSubdomain(text) ? text : undefined), DNS_SUBDOMAIN_FORM).meta({
  title: "name",
});

const NAME_PATTERN = /^[a-z0-9.*?[\]!-]+$/;

function parseNameOrPattern(text: string): string | undefined {
  if (!isPattern(text)) return isDnsSubdomain(text) ? text : undefined;
  const wellFormed = text.length <= MAX_NAME_LENGTH && NAME_PATTERN.test(text) && isWellFormedPattern(text);
  return wellFormed ? text : undefined;
}

/** The name of a pool, or a pattern of such names. */
export const nameOrPattern = parsedText(
  parseNameOrPattern,
  `${DNS_SUBDOMAIN_FORM}, or a pattern of names with *, ? or [..]`,
).meta({ title: "name or pattern" });

/** A list that, where it is written, says something. */
export function nonEmptyList<S extends z.ZodType>(entry: S) {
  return z.array(entry).min(1, { error: "a list of at least one entry" });
}
