/**
 * The `ipam` object of a network configuration whose IPAM plugin is Berth.
 * Called by selection for the pools that a configuration names. The runtime, Multus and the main plugins
 * add no keys of their own to this object, so every other key is a fault.
 */
import { z } from "zod";
import { ALL_ENABLED, type EnabledFamilies, ignoreNames } from "./annotations.ts";
import { decodeConfig } from "./config-error.ts";
import { nonEmptyList } from "./fields/lists.ts";
import { nameOrPattern } from "./fields/names.ts";

const pools = (family: string) =>
  nonEmptyList(nameOrPattern)
    .optional()
    .meta({ description: `${family} pools, tried in this order, for pods whom nothing stronger gives pools.` });

export const ipamConfSchema = z.strictObject({
  type: z.literal("berth").meta({ description: "The IPAM plugin." }),
  default_ipv4_ippool: pools("IPv4"),
  default_ipv6_ippool: pools("IPv6"),
});

export type IpamConf = Readonly<z.output<typeof ipamConfSchema>>;

/** The key of a disabled family may hold anything: the family counts as named, and its names are not read. Throws ConfigError. */
export function decodeIpamConf(value: unknown, source: string, rules: EnabledFamilies = ALL_ENABLED): IpamConf {
  const disabled = [
    ...(rules.enableIPv4 ? [] : ["default_ipv4_ippool"]),
    ...(rules.enableIPv6 ? [] : ["default_ipv6_ippool"]),
  ];
  return decodeConfig(ipamConfSchema, ignoreNames(value, disabled), source);
}
