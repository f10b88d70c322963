/**
 * Decodes the `ipam` object of a network configuration whose IPAM plugin is Berth. Neither the runtime nor Multus nor
 * the main plugins add keys to this object, so unknown keys are refused.
 */
import * as z from "zod";
import { FAMILIES } from "../net/ip.ts";
import { ALL_ENABLED, type EnabledFamilies, ignoreNames, isEnabled } from "./annotations.ts";
import { decodeConfig } from "./config-error.ts";
import { nonEmptyList } from "./fields/lists.ts";
import { nameOrPattern } from "./fields/names.ts";

const pools = (family: string) =>
  nonEmptyList(nameOrPattern)
    .optional()
    .meta({
      description: `${family} pools, tried in this order. Used if no annotation and no namespace default selects pools.`,
    });

export const ipamConfSchema = z.strictObject({
  type: z.literal("berth").meta({ description: "The IPAM plugin." }),
  default_ipv4_ippool: pools("IPv4"),
  default_ipv6_ippool: pools("IPv6"),
});

export type IpamConf = Readonly<z.output<typeof ipamConfSchema>>;

/** By the object, where no names are ignored: the calls of a network share one (cni/net-conf.ts). */
const decoded = new WeakMap<object, IpamConf>();

/** Decodes the object. The names of a disabled family are not validated. Throws ConfigError. */
export function decodeIpamConf(value: unknown, source: string, rules: EnabledFamilies = ALL_ENABLED): IpamConf {
  const given = Object(value) as Partial<IpamConf>;
  const ignored: string[] = [];
  for (const family of FAMILIES) {
    const key = `default_ipv${family}_ippool` as const;
    if (given[key] !== undefined && !isEnabled(family, rules)) ignored.push(key);
  }
  if (given !== value || ignored.length > 0) return decodeConfig(ipamConfSchema, ignoreNames(value, ignored), source);
  return decoded.getOrInsertComputed(given, () => decodeConfig(ipamConfSchema, value, source));
}
