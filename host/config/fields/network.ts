/**
 * Schemas of addresses, prefixes, routes and interface names.
 */

import { z } from "zod";
import { IF_NAME_FORM, MAX_IF_NAME_BYTES, parseIfName } from "../../cni/names.ts";
import { type CelRule, cel, rawText } from "../../lib/cel.ts";
import { describeValue } from "../../lib/describe.ts";
import { parsedText } from "../../lib/schema.ts";
import { type Ip, isIpv4Mapped, parseIp } from "../../net/ip.ts";
import { formatPrefix, maskPrefix, type Prefix, parsePrefix, parsePrefixOrIp } from "../../net/prefix.ts";

/** Longest text of an address: characters. Six groups of IPv6 and a dotted quad. @limit */
export const MAX_ADDRESS_LENGTH = 45;

/** Longest text of a network in CIDR form: characters. @limit */
export const MAX_PREFIX_LENGTH = MAX_ADDRESS_LENGTH + 4;

/** An address that two families could claim is none of either, for us as for the API server. */
export function parseAddress(text: string): Ip | undefined {
  const ip = parseIp(text);
  return ip === undefined || isIpv4Mapped(ip) ? undefined : ip;
}

const ADDRESS_FORM = "an IPv4 or IPv6 address";

export const address = parsedText(parseAddress, ADDRESS_FORM, MAX_ADDRESS_LENGTH).meta({
  title: "address",
  ...cel({ rule: "isIP(self)", message: ADDRESS_FORM }),
});

/** What {@link parseIfName} refuses; blanks are more to JavaScript than to CEL. */
const BAD_IN_IF_NAME = "[\\s\\p{Z}\\x{FEFF}/:%\\p{Cc}]";

/** Of the text `self`. */
export const IF_NAME_RULE: CelRule = {
  rule: `self != '' && bytes(self).size() <= ${MAX_IF_NAME_BYTES} && !self.matches(${rawText(BAD_IN_IF_NAME)}) && !(self in ['.', '..', 'all', 'default'])`,
  message: IF_NAME_FORM,
};

export const ifName = parsedText(parseIfName, IF_NAME_FORM, MAX_IF_NAME_BYTES).meta({
  title: "interface name",
  ...cel(IF_NAME_RULE),
});

interface CanonicalForm {
  readonly parse: (text: string) => Prefix | undefined;
  /** In CEL, of the text `self`. */
  readonly isForm: string;
  readonly wanted: string;
  /** The text is compared with others. */
  readonly exact?: boolean;
}

const CANONICAL = "its canonical form";

/** The rules of {@link canonical}. */
function canonicalRules({ isForm, wanted, exact = false }: Omit<CanonicalForm, "parse">): CelRule[] {
  const isMasked = exact ? "string(cidr(self).masked()) == self" : "cidr(self) == cidr(self).masked()";
  return [
    { rule: isForm, message: wanted },
    // The form itself is more than a message of the API server may cost.
    { rule: `!isCIDR(self) || ${isMasked}`, message: CANONICAL },
  ];
}

/** Text of a prefix without host bits, which is the canonical text itself when `exact`; the error says that. */
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
export const prefix = canonical(PREFIX).meta({ title: "CIDR", ...cel(...canonicalRules(PREFIX)) });

const EXACT: CanonicalForm = { ...PREFIX, exact: true };

/** The rules of {@link exactPrefix}. */
export const EXACT_PREFIX_RULES: readonly CelRule[] = canonicalRules(EXACT);

/** A prefix whose text is compared with others and so has one form only. */
export const exactPrefix = canonical(EXACT).meta({ title: "CIDR", ...cel(...EXACT_PREFIX_RULES) });

const PREFIX_OR_IP: CanonicalForm = {
  parse: parsePrefixOrIp,
  isForm: "isCIDR(self) || isIP(self)",
  wanted: `${PREFIX_FORM}, or an address`,
};

/** A prefix; a bare address is one of full length. */
export const prefixOrIp = canonical(PREFIX_OR_IP).meta({
  title: "CIDR or address",
  ...cel(...canonicalRules(PREFIX_OR_IP)),
});

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
