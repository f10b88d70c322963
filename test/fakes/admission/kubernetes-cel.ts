/**
 * Expressions in Kubernetes' dialect of the Common Expression Language: a library's evaluator, and those of the API
 * server's own functions that Berth's rules use. An expression with another one fails when it is compiled.
 */
import { isDeepStrictEqual } from "node:util";
import { Environment } from "@marcbachmann/cel-js";
import { Cidr, Ip, parseCidr, parseIp } from "./cel-network.ts";

/** Variables by name, as {@link celValue} makes them. */
export type Scope = Readonly<Record<string, unknown>>;

export type Expression = (scope: Scope) => unknown;

/** `ip.isCanonical` is a function, and `ip` is one as well. */
class IpFunctions {}

interface Optional {
  hasValue(): boolean;
  value(): unknown;
}

/** Throws where a rule evaluates a text that is no address; the API server does, too. */
function required<T>(value: T | undefined, text: string): T {
  if (value === undefined) throw new Error(`"${text}" is no address or network`);
  return value;
}

const toIp = (text: string): Ip => required(parseIp(text), text);
const toCidr = (text: string): Cidr => required(parseCidr(text), text);

/** RE2's regular expressions differ from those of JavaScript in how they write a code point. */
const patterns = new Map<string, RegExp>();
function re2(text: string): RegExp {
  return patterns.getOrInsertComputed(text, () => new RegExp(text.replaceAll("\\x{", "\\u{"), "u"));
}

function areEqual(one: Optional, other: Optional): boolean {
  if (!one.hasValue() || !other.hasValue()) return one.hasValue() === other.hasValue();
  return isDeepStrictEqual(one.value(), other.value());
}

const environment = new Environment({
  unlistedVariablesAreDyn: true,
  homogeneousAggregateLiterals: false,
  enableOptionalTypes: true,
})
  .registerType("net.IP", { ctor: Ip, fields: {} })
  .registerType("net.CIDR", { ctor: Cidr, fields: {} })
  .registerType("IpFunctions", { ctor: IpFunctions, fields: {} })
  .registerConstant("ip", "IpFunctions", new IpFunctions())
  .registerFunction("isIP(string): bool", (text: string) => parseIp(text) !== undefined)
  .registerFunction("ip(string): net.IP", toIp)
  .registerFunction("IpFunctions.isCanonical(string): bool", (_: unknown, text: string) => `${toIp(text)}` === text)
  .registerFunction("net.IP.family(): int", (ip: Ip) => BigInt(ip.family))
  .registerFunction("net.IP.isGlobalUnicast(): bool", (ip: Ip) => ip.isGlobalUnicast)
  .registerFunction("net.IP.isLinkLocalUnicast(): bool", (ip: Ip) => ip.isLinkLocalUnicast)
  .registerFunction("isCIDR(string): bool", (text: string) => parseCidr(text) !== undefined)
  .registerFunction("cidr(string): net.CIDR", toCidr)
  .registerFunction("string(net.CIDR): string", (cidr: Cidr) => `${cidr}`)
  .registerFunction("net.CIDR.ip(): net.IP", ({ ip }: Cidr) => ip)
  .registerFunction("net.CIDR.prefixLength(): int", (cidr: Cidr) => BigInt(cidr.prefixLength))
  .registerFunction("net.CIDR.masked(): net.CIDR", ({ masked }: Cidr) => masked)
  .registerFunction("net.CIDR.containsIP(net.IP): bool", (cidr: Cidr, ip: Ip) => cidr.contains(ip))
  .registerFunction("net.CIDR.containsIP(string): bool", (cidr: Cidr, text: string) => cidr.contains(toIp(text)))
  .registerFunction("net.CIDR.containsCIDR(string): bool", (cidr: Cidr, text: string) => {
    const other = toCidr(text);
    return cidr.contains(other.ip) && cidr.prefixLength <= other.prefixLength;
  })
  .registerOperator("net.CIDR == net.CIDR", (one: Cidr, other: Cidr) => `${one}` === `${other}`)
  .registerOperator("optional<dyn> == optional<dyn>", areEqual)
  .registerFunction("string.matchesRe2(string): bool", (text: string, pattern: string) => re2(pattern).test(text))
  .registerFunction("string.findAll(string): list<string>", (text: string, pattern: string) => [
    ...text.matchAll(new RegExp(pattern, "gu")).map(([found]) => found),
  ])
  .registerFunction("string.replace(string, string): string", (text: string, from: string, to: string) =>
    text.replaceAll(from, to),
  );

const compiled = new Map<string, Expression>();

/** Compiles each text once. Throws for a text that is no expression, or has an unknown function. */
export function compile(text: string): Expression {
  return compiled.getOrInsertComputed(text, () => compileAnew(text));
}

function compileAnew(text: string): Expression {
  // The library's own `matches` has another dialect and cannot be replaced; it takes reserved words as names of fields.
  const expression = text.replaceAll(".matches(", ".matchesRe2(").replace(/\b__([a-z]+)__\b/g, "$1");
  const parsed = environment.parse(expression);
  const { error } = parsed.check();
  if (error !== undefined) throw error;
  return (scope) => parsed({ ...scope });
}

const optionalOf = compile("optional.of(value)");
const NONE = compile("optional.none()")({});

/** Returns an optional value, without one for undefined. */
export function optional(value: unknown): unknown {
  return value === undefined ? NONE : optionalOf({ value });
}

/** Returns JSON as expressions see it: whole numbers are of type int. */
export function celValue(json: unknown): unknown {
  if (typeof json === "number") return Number.isInteger(json) ? BigInt(json) : json;
  if (Array.isArray(json)) return json.map(celValue);
  if (typeof json !== "object" || json === null) return json;
  const value: Record<string, unknown> = {};
  for (const [key, each] of Object.entries(json)) if (each !== undefined) value[key] = celValue(each);
  return value;
}
