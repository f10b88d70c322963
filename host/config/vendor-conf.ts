/** Decodes the cluster-wide settings: the key `conf.yml` of the ConfigMap `vendor-conf`. */
import * as z from "zod";
import { wholeNumber } from "../lib/schema.ts";
import { decodeConfig } from "./config-error.ts";
import { MAX_CIDRS } from "./coordinator-conf.ts";
import { duration, positiveDuration } from "./fields/duration.ts";
import { linkName, prefixOrIp } from "./fields/network.ts";
import { MAX_VLAN_ID } from "./ifacer-conf.ts";

/** Most names in `ifacer.interfaces` of vendor-conf, which lists the NICs of all nodes. @limit */
const MAX_IFACER_INTERFACES = 1_024;

const garbageCollection = z
  .strictObject({
    interval: positiveDuration.prefault("5m").meta({ description: "Interval of collection." }),
    grace: duration
      .prefault("60s")
      .meta({ description: "Time for which a record must have looked lost before it is collected." }),
    nodeLost: duration.prefault("10m").meta({
      description: "Time without an answer on the segment after which the addresses of a lost node are freed.",
    }),
  })
  .transform(({ interval, grace, nodeLost }) => ({ intervalMs: interval, graceMs: grace, nodeLostMs: nodeLost }));

const VLAN_RANGE_FORM = `a VLAN id from 1 to ${MAX_VLAN_ID}, or a range such as "100-199"`;

function parseVlanRange(text: string): VlanRange | undefined {
  const [, first, last = first] = /^([0-9]{1,4})(?:-([0-9]{1,4}))?$/.exec(text) ?? [];
  const range = { first: Number(first), last: Number(last) };
  return range.first >= 1 && range.first <= range.last && range.last <= MAX_VLAN_ID ? range : undefined;
}

/** VLAN ids, both ends included. */
interface VlanRange {
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
  interfaces: z.array(linkName).max(MAX_IFACER_INTERFACES).default([]).meta({
    description: "Parents, members and bonds that definitions may use, by any name. If empty, all.",
  }),
  vlanIDs: z
    .array(vlanRange.meta({ title: "VLAN id or range" }))
    .max(MAX_VLAN_ID)
    .default([])
    .meta({
      description: 'VLAN ids that definitions may use: numbers, or ranges such as `"100-199"`. If empty, all.',
    }),
});

/** Most kinds in `retainByName`. @limit */
const MAX_RETAINING_KINDS = 16;

/** Kinds of the API server and others whose pods get generated names, or have owners that Berth knows by itself. */
const NOT_BY_NAME = /^[^/]*$|^(?:apps|batch|kubevirt\.io)\/|^apps\.kruise\.io\/[^ ]+ CloneSet$/;

const retainingKind = z
  .strictObject({
    apiVersion: z
      .string()
      .max(253)
      .regex(/^[a-z0-9.-]+\/v[a-z0-9]+$/, "GROUP/VERSION, such as apps.kruise.io/v1beta1")
      .meta({ description: "Its API group and version." }),
    kind: z
      .string()
      .regex(/^[A-Z][A-Za-z0-9]{0,62}$/, "the name of a kind, such as StatefulSet")
      .meta({ description: "Its kind." }),
    plural: z
      .string()
      .regex(/^[a-z][a-z0-9-]{0,62}$/, "a name in lower-case letters, such as statefulsets")
      .optional()
      .meta({ description: "Its name in paths of the API. Default: the kind in lower case, and `s`." }),
  })
  .check(({ value, issues }) => {
    if (!NOT_BY_NAME.test(`${value.apiVersion} ${value.kind}`)) return;
    const message =
      "a kind of another project whose pods' names come again: Kubernetes' own, CloneSet and KubeVirt's do not";
    issues.push({ code: "custom", path: ["kind"], message, input: value });
  })
  .transform(({ plural, ...rest }) => ({ ...rest, plural: plural ?? `${rest.kind.toLowerCase()}s` }));

/** A kind of objects that retain the addresses of their pods by name. */
export type RetainingKind = Readonly<z.output<typeof retainingKind>>;

export type IfacerPermission = Readonly<z.output<typeof ifacer>>;

/** The keys of `conf.yml`. */
export const vendorConfSchema = z
  .strictObject({
    enableIPv4: z.boolean().default(true).meta({ description: "Whether pods get IPv4 addresses." }),
    enableIPv6: z.boolean().default(true).meta({ description: "Whether pods get IPv6 addresses." }),
    allowSingleFamily: z
      .boolean()
      .default(false)
      .meta({ description: "Whether a pod annotation may name only one of two enabled families." }),
    enableSubnet: z.boolean().default(true).meta({ description: "Whether Subnets and their annotations take effect." }),
    enableStatefulSet: z
      .boolean()
      .default(true)
      .meta({ description: "Whether the pods of a StatefulSet retain their addresses." }),
    enableKubevirt: z.boolean().default(true).meta({ description: "Whether virtual machines retain their addresses." }),
    retainByName: z.array(retainingKind).max(MAX_RETAINING_KINDS).default([]).meta({
      description:
        "Further kinds whose pods retain addresses if they ask for it (`ipam.vendor.io/retain: by-name`). Their pods' names have to come again.",
    }),
    enableFencing: z.boolean().default(true).meta({
      description: "Whether agents take retained addresses off NICs of deleted pods whose sandbox still runs.",
    }),
    allocationCooldown: duration
      .prefault("30s")
      .meta({ description: "Time before a released address is allocated again." }),
    garbageCollection: garbageCollection.prefault({}).meta({ description: "Collection of leaked addresses." }),
    maxGeneratedPoolSize: wholeNumber(1).default(1_024).meta({ description: "Most addresses of one generated pool." }),
    maxGeneratedAddressesPerNamespace: wholeNumber(0)
      .default(4_096)
      .meta({ description: "Most addresses of all generated pools of a namespace. 0: no limit." }),
    ifacer: ifacer.prefault({}).meta({ description: "Permissions of the plugin `ifacer`." }),
    maxAddressesPerPod: wholeNumber(0)
      .default(32)
      .meta({ description: "Most addresses of one pod, on all its NICs. 0: no limit." }),
    maxAddressesPerNamespace: wholeNumber(0).default(16_384).meta({
      description:
        "Most addresses of a namespace, with those retained for its workloads. 0: no limit. Cluster mode only.",
    }),
    hostRouteCIDR: z.array(prefixOrIp).max(MAX_CIDRS).default([]).meta({
      description:
        "Networks from which other IPAM plugins may give addresses to pods with the coordinator. Default none.",
    }),
    tenantDefinitions: z.enum(["open", "closed"]).default("open").meta({
      description:
        "`closed`: network definitions outside the namespace of vendor-conf may not use `ifacer`, `hostRuleTable` and `logFile`, and Subnets without a namespace rule serve workloads of that namespace alone.",
    }),
  })
  .check(({ value, issues }) => {
    if (value.enableIPv4 || value.enableIPv6) return;
    const message = 'true here or for "enableIPv6": pods need one family';
    issues.push({ code: "custom", path: ["enableIPv4"], message, input: value });
  })
  .transform(({ allocationCooldown, ...rest }) => ({ ...rest, allocationCooldownMs: allocationCooldown }));

export interface VendorConf extends Readonly<z.output<typeof vendorConfSchema>> {
  /** Namespace of the ConfigMap; absent without one. */
  readonly home?: string | undefined;
}

/** Returns the only namespace with the uses that `tenantDefinitions: closed` denies; undefined if all have them. */
export function closedTo({ tenantDefinitions, home = "" }: VendorConf): string | undefined {
  return tenantDefinitions === "closed" ? home : undefined;
}

/** Decodes the parsed YAML; undefined gives the defaults. Throws ConfigError. */
export function decodeVendorConf(value: unknown, source: string): VendorConf {
  return decodeConfig(vendorConfSchema, value ?? {}, source);
}

/** The settings without a ConfigMap. */
export const DEFAULT_VENDOR_CONF: VendorConf = decodeVendorConf({}, "defaults");
