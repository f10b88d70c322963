/**
 * The service's own settings: key `conf.yml` of the ConfigMap `vendor-conf` (specification, Resolved C).
 * Called by whoever watches that ConfigMap or reads it from a file; they keep the last good settings.
 * Effects: none.
 */
import { z } from "zod";
import { wholeNumber } from "../lib/schema.ts";
import { decodeConfig } from "./config-error.ts";
import { duration, positiveDuration } from "./fields/duration.ts";
import { prefixOrIp } from "./fields/network.ts";
import { MAX_CIDRS } from "./limits.ts";

const garbageCollection = z
  .strictObject({
    interval: positiveDuration.prefault("5m").meta({ description: "Time between two sweeps." }),
    grace: duration.prefault("60s").meta({ description: "Age before a lost record counts as a leak." }),
    nodeLost: duration
      .prefault("10m")
      .meta({ description: "Silence on the segment after which the addresses of a lost node are freed." }),
  })
  .transform(({ interval, grace, nodeLost }) => ({ intervalMs: interval, graceMs: grace, nodeLostMs: nodeLost }));

/** The keys of `conf.yml`. */
export const vendorConfSchema = z
  .strictObject({
    enableIPv4: z.boolean().default(true).meta({ description: "Pods get IPv4 addresses." }),
    enableIPv6: z.boolean().default(true).meta({ description: "Pods get IPv6 addresses." }),
    allowSingleFamily: z
      .boolean()
      .default(false)
      .meta({ description: "A pod annotation may name one of two enabled families." }),
    enableSubnet: z.boolean().default(true).meta({ description: "Subnets and their annotations have effect." }),
    enableStatefulSet: z.boolean().default(true).meta({ description: "A StatefulSet pod keeps its addresses." }),
    enableKubevirt: z.boolean().default(true).meta({ description: "A virtual machine keeps its addresses." }),
    enableFencing: z.boolean().default(true).meta({
      description:
        "An agent takes the address of a deleted pod whose sandbox still runs off its NIC when a workload keeps it.",
    }),
    allocationCooldown: duration
      .prefault("30s")
      .meta({ description: "Time for which a released address is not handed out again." }),
    garbageCollection: garbageCollection.prefault({}).meta({ description: "Collection of leaked addresses." }),
    maxGeneratedPoolSize: wholeNumber(1).default(1_024).meta({ description: "Addresses of one generated pool." }),
    maxGeneratedAddressesPerNamespace: wholeNumber(0)
      .default(4_096)
      .meta({ description: "Addresses of all generated pools of one namespace; 0 is no limit." }),
    hostRouteCIDR: z.array(prefixOrIp).max(MAX_CIDRS).default([]).meta({
      description: "Networks in which other IPAM plugins may give pods of the coordinator an address. Default none.",
    }),
  })
  .check(({ value, issues }) => {
    if (value.enableIPv4 || value.enableIPv6) return;
    const message = 'true here or for "enableIPv6": pods need one family';
    issues.push({ code: "custom", path: ["enableIPv4"], message, input: value });
  })
  .transform(({ allocationCooldown, ...rest }) => ({ ...rest, allocationCooldownMs: allocationCooldown }));

export type VendorConf = Readonly<z.output<typeof vendorConfSchema>>;

/** `value` is the parsed YAML; nothing at all means the defaults. Throws ConfigError. */
export function decodeVendorConf(value: unknown, source: string): VendorConf {
  return decodeConfig(vendorConfSchema, value ?? {}, source);
}

/** What holds without a ConfigMap. */
export const DEFAULT_VENDOR_CONF: VendorConf = decodeVendorConf({}, "defaults");
