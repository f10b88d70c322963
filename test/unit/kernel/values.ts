/** Values for tests, from text. */
import { type Ip, parseIp } from "../../../host/net/ip.ts";
import { type Mac, parseMac } from "../../../host/net/mac.ts";
import { type Prefix, parsePrefixOrIp } from "../../../host/net/prefix.ts";

function require<T>(text: string, value: T | undefined): T {
  if (value === undefined) throw new Error(`"${text}" does not parse`);
  return value;
}

export const ip = (text: string): Ip => require(text, parseIp(text));
export const mac = (text: string): Mac => require(text, parseMac(text));
export const prefix = (text: string): Prefix => require(text, parsePrefixOrIp(text));
