/**
 * The `ipam` object of a network configuration whose IPAM plugin is Berth.
 * Called by selection for the pools that a configuration names. The runtime, Multus and the main plugins
 * add no keys of their own to this object, so every other key is a fault.
 */
import { z } from "zod";
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

/** Throws ConfigError. */
export function decodeIpamConf(value: unknown, source: string): IpamConf {
  return decodeConfig(ipamConfSchema, value, source);
}
