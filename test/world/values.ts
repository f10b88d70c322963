/** Values for tests, from text. */
import { type Ip, parseIp } from "../../host/net/ip.ts";
import { type Mac, parseMac } from "../../host/net/mac.ts";
import { type Prefix, parsePrefixOrIp } from "../../host/net/prefix.ts";
import { parseRange, type Range, rangeOfPrefix } from "../../host/net/range.ts";

function require<T>(text: string, value: T | undefined): T {
  if (value === undefined) throw new Error(`"${text}" does not parse`);
  return value;
}

export const ip = (text: string): Ip => require(text, parseIp(text));
export const mac = (text: string): Mac => require(text, parseMac(text));
export const prefix = (text: string): Prefix => require(text, parsePrefixOrIp(text));
/** Accepts a prefix, too. */
export const range = (text: string): Range => {
  const whole = parsePrefixOrIp(text);
  return require(text, whole === undefined ? parseRange(text) : rangeOfPrefix(whole));
};

/** The other machine of most conflicts. */
export const RIVAL = mac("02:11:22:33:44:55");
