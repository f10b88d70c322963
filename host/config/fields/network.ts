/**
 * Schemas of addresses, prefixes, routes and interface names.
 * Called by the other files of host/config and by the resources.
 * Effects: none.
 */
import { z } from "zod";
import { IF_NAME_FORM, parseIfName } from "../../cni/names.ts";
import { parsedText } from "../../lib/schema.ts";
import { parseIp } from "../../net/ip.ts";
import { formatPrefix, maskPrefix, type Prefix, parsePrefix, parsePrefixOrIp } from "../../net/prefix.ts";

export const address = parsedText(parseIp, "an IPv4 or IPv6 address").meta({ title: "address" });

export const ifName = parsedText(parseIfName, IF_NAME_FORM).meta({ title: "interface name" });

/** Text of a prefix without host bits, which is the canonical text itself when `exact`; the error says that. */
function canonical(parse: (text: string) => Prefix | undefined, wanted: string, exact = false) {
  return z.string({ error: wanted }).transform((text, context): Prefix => {
    const prefix = parse(text);
    if (prefix === undefined) {
      context.addIssue({ code: "custom", message: wanted });
      return z.NEVER;
    }
    const masked = formatPrefix(maskPrefix(prefix));
    if ((exact ? text : formatPrefix(prefix)) !== masked) {
      context.addIssue({ code: "custom", message: `its canonical form "${masked}"` });
    }
    return prefix;
  });
}

const PREFIX_FORM = 'a network in CIDR form, such as "10.6.0.0/16"';

/** `10.6.0.0/16`, `fd00::/64`. */
export const prefix = canonical(parsePrefix, PREFIX_FORM).meta({ title: "CIDR" });

/** A prefix whose text is compared with others and so has one form only. */
export const exactPrefix = canonical(parsePrefix, PREFIX_FORM, true).meta({ title: "CIDR" });

/** A prefix; a bare address is one of full length. */
export const prefixOrIp = canonical(parsePrefixOrIp, `${PREFIX_FORM}, or an address`).meta({
  title: "CIDR or address",
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
