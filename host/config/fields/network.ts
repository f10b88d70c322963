/** Schemas of addresses, prefixes, routes and interface names. */
import * as z from "zod";
import {
  IF_NAME_FORM,
  LINK_NAME_FORM,
  MAX_ALT_NAME_BYTES,
  MAX_IF_NAME_BYTES,
  parseIfName,
  parseLinkName,
} from "../../cni/names.ts";
import { type CelRule, cel, rawText } from "../../lib/cel.ts";
import { describeValue } from "../../lib/describe.ts";
import { parsedText } from "../../lib/schema.ts";
import { type Ip, isIpv4Mapped, isLinkLocal, parseIp } from "../../net/ip.ts";
import { formatPrefix, maskPrefix, type Prefix, parsePrefix, parsePrefixOrIp } from "../../net/prefix.ts";
import { isSpecial } from "../../net/special.ts";

/** Longest text of an address: characters. Six groups of IPv6 and a dotted quad have 45. */
export const MAX_ADDRESS_LENGTH = 45;

/** Longest text of a network in CIDR form: characters. */
export const MAX_PREFIX_LENGTH = MAX_ADDRESS_LENGTH + 4;

/** Parses an address. Returns undefined for an IPv4-mapped IPv6 address too, as the API server refuses it. */
export function parseAddress(text: string): Ip | undefined {
  const ip = parseIp(text);
  return ip === undefined || isIpv4Mapped(ip) ? undefined : ip;
}

const ADDRESS_FORM = "an IPv4 or IPv6 address";

/** The rule of {@link address}. */
export const ADDRESS_RULE: CelRule = { rule: "isIP(self)", message: ADDRESS_FORM };

export const address = parsedText(parseAddress, ADDRESS_FORM, MAX_ADDRESS_LENGTH).meta({
  title: "address",
  ...cel(ADDRESS_RULE),
});

/** Characters that {@link parseIfName} refuses. JavaScript's `\\s` has more blanks than CEL's. */
const BAD_IN_IF_NAME = "[\\s\\p{Z}\\x{FEFF}/:%\\p{Cc}]";

/** Rule for a text `self`. */
export const IF_NAME_RULE: CelRule = {
  rule: `self != '' && bytes(self).size() <= ${MAX_IF_NAME_BYTES} && !self.matches(${rawText(BAD_IN_IF_NAME)}) && !(self in ['.', '..', 'all', 'default'])`,
  message: IF_NAME_FORM,
};

export const ifName = parsedText(parseIfName, IF_NAME_FORM, MAX_IF_NAME_BYTES).meta({
  title: "interface name",
  ...cel(IF_NAME_RULE),
});

/** A name or an alternative name of a link on the node (`ip link property add … altname`). */
export const linkName = parsedText(parseLinkName, LINK_NAME_FORM, MAX_ALT_NAME_BYTES).meta({ title: "interface name" });

interface CanonicalForm {
  readonly parse: (text: string) => Prefix | undefined;
  /** CEL expression for a text `self`. */
  readonly isForm: string;
  readonly wanted: string;
  /** Whether the text itself must be canonical, because it is compared with other texts. */
  readonly exact?: boolean;
}

const CANONICAL = "its canonical form";

/**
 * The address in the text is that of the network. Kubernetes 1.31 takes the cost of comparing two addresses or
 * networks with == for unlimited.
 */
const IS_MASKED =
  "cidr(self.substring(0, self.indexOf('/')) + (self.contains(':') ? '/128' : '/32')).containsIP(cidr(self).masked().ip())";

/** Returns the CEL rules of {@link canonical}. */
function canonicalRules({ isForm, wanted, exact = false }: Omit<CanonicalForm, "parse">): CelRule[] {
  const isMasked = exact ? "string(cidr(self).masked()) == self" : IS_MASKED;
  return [
    { rule: isForm, message: wanted },
    // A message with the canonical form would exceed the API server's cost limit.
    { rule: `!isCIDR(self) || ${isMasked}`, message: CANONICAL },
  ];
}

/** Returns the schema of a prefix without host bits, with `exact` in canonical form, which the error names. */
function canonical({ parse, wanted, exact = false }: CanonicalForm) {
  const limited = z.string({ error: wanted }).max(MAX_PREFIX_LENGTH, { error: wanted, abort: true });
  return limited.transform((text, context): Prefix => {
    const prefix = parse(text);
    if (prefix === undefined || isIpv4Mapped(prefix.ip)) {
      context.addIssue({ code: "custom", message: wanted });
      return z.NEVER;
    }
    const masked = formatPrefix(maskPrefix(prefix));
    if ((exact ? text : formatPrefix(prefix)) !== masked) {
      const got = `${describeValue(text)} (that is "${masked}")`;
      context.addIssue({ code: "custom", message: CANONICAL, params: { got } });
    }
    return prefix;
  });
}

const PREFIX_FORM = 'a network in CIDR form, such as "10.6.0.0/16"';

const PREFIX: CanonicalForm = { parse: parsePrefix, isForm: "isCIDR(self)", wanted: PREFIX_FORM };

/** `10.6.0.0/16`, `fd00::/64`. */
const prefix = canonical(PREFIX).meta({ title: "CIDR", ...cel(...canonicalRules(PREFIX)) });

const EXACT: CanonicalForm = { ...PREFIX, exact: true };

/** The rules of {@link exactPrefix}. */
export const EXACT_PREFIX_RULES: readonly CelRule[] = canonicalRules(EXACT);

/** A prefix in canonical text, because it is compared with other texts. */
export const exactPrefix = canonical(EXACT).meta({ title: "CIDR", ...cel(...EXACT_PREFIX_RULES) });

const PREFIX_OR_IP: CanonicalForm = {
  parse: parsePrefixOrIp,
  isForm: "isCIDR(self) || isIP(self)",
  wanted: `${PREFIX_FORM}, or an address`,
};

/** A prefix, or an address, which is a prefix of full length. */
export const prefixOrIp = canonical(PREFIX_OR_IP).meta({
  title: "CIDR or address",
  ...cel(...canonicalRules(PREFIX_OR_IP)),
});

/** The form of a next hop. */
export const ROUTER_FORM = "a router's unicast address, in IPv6 also a link-local one";

/** Returns whether a next hop can have the address ({@link ROUTER_FORM}). */
export function isRouterAddress(ip: Ip): boolean {
  return !isSpecial(ip) || isLinkLocal(ip);
}

/** A route whose next hop has the family of the destination. */
export const route = z
  .strictObject({
    dst: prefix.meta({ description: "Destination network in CIDR form." }),
    gw: address.meta({ description: "Next hop, of the same family." }),
  })
  .check((context) => {
    const { dst, gw } = context.value;
    if (dst.ip.family === gw.family && isRouterAddress(gw)) return;
    const message = dst.ip.family === gw.family ? ROUTER_FORM : `an IPv${dst.ip.family} address, the family of "dst"`;
    context.issues.push({ code: "custom", path: ["gw"], message, input: context.value });
  });
