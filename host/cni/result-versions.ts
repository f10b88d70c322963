/**
 * Converts results to and from the JSON of each CNI version. Any plugin of a chain may have written prevResult, so
 * decoding is as lenient as the reference library: null and "" count as absent, unknown keys are ignored.
 */
import * as z from "zod";
import { decode, formatMismatches, orAbsent, orDefault, parsedText, wholeNumber } from "../lib/schema.ts";
import { formatIp, parseIp } from "../net/ip.ts";
import { formatPrefix, parsePrefix } from "../net/prefix.ts";
import { CniError, ErrorCode } from "./error.ts";
import type { CniResult, ResultRoute } from "./result.ts";
import type { CniVersion } from "./version.ts";

type JsonObject = Record<string, unknown>;

function formatRoute({ dst, gw, ...rest }: ResultRoute): JsonObject {
  return { dst: formatPrefix(dst), gw: gw && formatIp(gw), ...rest };
}

/**
 * Returns the result in that version for JSON, which has no keys without a value, and without empty lists. Fields that
 * another plugin has added are passed on unchanged, in every version.
 */
export function formatResult({ interfaces, ips, routes, dns }: CniResult, version: CniVersion): JsonObject {
  const isOld = version.startsWith("0.");
  const entries = ips.map(({ address, gateway, interface: index }) => ({
    version: isOld ? String(address.ip.family) : undefined,
    address: formatPrefix(address),
    gateway: gateway && formatIp(gateway),
    interface: index,
  }));
  return {
    cniVersion: version,
    interfaces: interfaces.length > 0 ? interfaces.map(({ pciId, ...rest }) => ({ ...rest, pciID: pciId })) : undefined,
    ips: entries.length > 0 ? entries : undefined,
    routes: routes.length > 0 ? routes.map(formatRoute) : undefined,
    dns,
  };
}

/** Returns the schema of a text for which null and "" count as absent, as in the reference library. */
function optionalText<T>(parse: (text: string) => T | undefined, wanted: string) {
  return z
    .string({ error: wanted })
    .nullish()
    .transform((text, context) => {
      if (!text) return undefined;
      const value = parse(text);
      if (value === undefined) context.addIssue({ code: "custom", message: wanted });
      return value;
    });
}

const prefix = parsedText(parsePrefix, "an address with its length, as 10.0.0.2/24");
const optionalIp = optionalText(parseIp, "an address");
const anyText = optionalText((text) => text, "text");
const number = orAbsent(wholeNumber(0));

const interfaceSchema = z
  .object({ name: z.string(), mac: anyText, sandbox: anyText, mtu: number, socketPath: anyText, pciID: anyText })
  .transform(({ pciID, ...rest }) => ({ ...rest, pciId: pciID }));

/** Before 1.0.0 an address had its family in `version`, which must match. */
const ipSchema = z
  .object({ version: anyText, address: prefix, gateway: optionalIp, interface: number })
  .refine(({ version, address }) => version === undefined || version === String(address.ip.family), {
    path: ["version"],
    error: "the family of the address",
  })
  .transform(({ version: _, ...rest }) => rest);

const routeSchema = z.object({
  dst: prefix,
  gw: optionalIp,
  mtu: number,
  advmss: number,
  priority: number,
  table: number,
  scope: number,
});

const texts = orAbsent(z.array(z.string()));
const dnsSchema = z.object({ nameservers: texts, domain: anyText, search: texts, options: texts });

const resultSchema = z
  .object({
    interfaces: orDefault(z.array(interfaceSchema), []),
    ips: orDefault(z.array(ipSchema), []),
    routes: orDefault(z.array(routeSchema), []),
    dns: orAbsent(dnsSchema),
  })
  .superRefine(({ interfaces, ips }, context) => {
    for (const [index, { interface: position }] of ips.entries()) {
      if (position === undefined || position < interfaces.length) continue;
      const message = `the position of one of ${interfaces.length} interfaces, counted from 0`;
      context.addIssue({
        code: "custom",
        path: ["ips", index, "interface"],
        message,
        params: { got: String(position) },
      });
    }
  });

/** Decodes a result of any version; `where`: its place in errors. Throws {@link CniError} 7 with the wrong field. */
export function decodeResult(value: unknown, where = "prevResult"): CniResult {
  const decoded = decode(resultSchema, value);
  if (decoded.ok) return decoded.value;
  throw new CniError(ErrorCode.InvalidNetworkConfig, `Invalid ${where}: ${formatMismatches(decoded.mismatches)}`);
}
