/**
 * The service's own settings: key `conf.yml` of the ConfigMap `vendor-conf` (specification, Resolved C).
 * Called by whoever watches that ConfigMap or reads it from a file; they keep the last good settings.
 */

import { z } from "zod";
import { wholeNumber } from "../lib/schema.ts";
import { decodeConfig } from "./config-error.ts";
import { MAX_CIDRS } from "./coordinator-conf.ts";
import { duration, positiveDuration } from "./fields/duration.ts";
import { ifName, prefixOrIp } from "./fields/network.ts";
import { MAX_VLAN_ID } from "./ifacer-conf.ts";

/** Most names in `ifacer.interfaces` of vendor-conf: the NICs of all kinds of nodes. @limit */
export const MAX_IFACER_INTERFACES = 1_024;

const garbageCollection = z
  .strictObject({
    interval: positiveDuration.prefault("5m").meta({ description: "Time between two sweeps." }),
    grace: duration.prefault("60s").meta({ description: "Age before a lost record counts as a leak." }),
    nodeLost: duration
      .prefault("10m")
      .meta({ description: "Silence on the segment after which the addresses of a lost node are freed." }),
  })
  .transform(({ interval, grace, nodeLost }) => ({ intervalMs: interval, graceMs: grace, nodeLostMs: nodeLost }));

const VLAN_RANGE_FORM = `a VLAN id from 1 to ${MAX_VLAN_ID}, or a range such as "100-199"`;

function parseVlanRange(text: string): VlanRange | undefined {
  const [, first, last = first] = /^([0-9]{1,4})(?:-([0-9]{1,4}))?$/.exec(text) ?? [];
  const range = { first: Number(first), last: Number(last) };
  return range.first >= 1 && range.first <= range.last && range.last <= MAX_VLAN_ID ? range : undefined;
}

/** VLAN ids, both ends included. */
export interface VlanRange {
  readonly first: number;
  readonly last: number;
}

const vlanRange = z.unknown().transform((value, context): VlanRange => {
  const range = typeof value === "string" || typeof value === "number" ? parseVlanRange(String(value)) : undefined;
  if (range !== undefined) return range;
  context.addIssue({ code: "custom", message: VLAN_RANGE_FORM });
  return z.NEVER;
});

const ifacer = z.strictObject({
  interfaces: z
    .array(ifName)
    .max(MAX_IFACER_INTERFACES)
    .default([])
    .meta({ description: "Masters, members and bonds that network definitions may name; empty: all." }),
  vlanIDs: z
    .array(vlanRange.meta({ title: "VLAN id or range" }))
    .max(MAX_VLAN_ID)
    .default([])
    .meta({ description: 'VLAN ids that they may name, each a number or a range `"100-199"`; empty: all.' }),
});

export type IfacerPermission = Readonly<z.output<typeof ifacer>>;

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
    ifacer: ifacer.prefault({}).meta({ description: "What the plugin `ifacer` may do to the node's devices." }),
    maxAddressesPerPod: wholeNumber(0)
      .default(32)
      .meta({ description: "Addresses of one pod, on all its NICs; 0 is no limit." }),
    maxAddressesPerNamespace: wholeNumber(0).default(16_384).meta({
      description:
        "Addresses of all pods of one namespace and of what is kept for its workloads; 0 is no limit. In a cluster.",
    }),
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
