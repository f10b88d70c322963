/** The schema of each annotation under `ipam.vendor.io/`, for decoding and for the reference page. */
import * as z from "zod";
import { listOr, parsedText } from "../lib/schema.ts";
import type { Family } from "../net/ip.ts";
import { parseNicMac } from "../net/mac.ts";
import { formatPrefix } from "../net/prefix.ts";
import { boundedList, refuseRepeated } from "./fields/lists.ts";
import { isDnsLabel, isDnsSubdomain, nameOrPattern, objectName } from "./fields/names.ts";
import { address, ifName, route } from "./fields/network.ts";
import { LABEL_SELECTOR_FORM, parseLabelSelector } from "./label-selector.ts";
import { isPattern } from "./pattern.ts";
import { POOL_NUMBER_FORM, parsePoolNumber } from "./pool-number.ts";

/** Most NICs for which one pod's annotations select pools or Subnets, including the first NIC. @limit */
export const MAX_POD_NICS = 32;

/** Most names in one list of an annotation: of pools, of Subnets, or patterns. @limit */
export const MAX_LISTED_NAMES = 64;

/** Most different patterns in an annotation's lists. The agent matches each against all pools of the cluster. @limit */
export const MAX_PATTERNS = 64;

/** Most routes that one annotation adds to a pod. @limit */
export const MAX_POD_ROUTES = 128;

function families(entry: typeof objectName | typeof nameOrPattern, what: string) {
  return {
    ipv4: boundedList(entry, MAX_LISTED_NAMES, "names")
      .optional()
      .meta({ description: `IPv4 ${what}` }),
    ipv6: boundedList(entry, MAX_LISTED_NAMES, "names")
      .optional()
      .meta({ description: `IPv6 ${what}` }),
  };
}

const subnetFamilies = families(objectName, "Subnets.");
const poolFamilies = families(nameOrPattern, "pools or patterns, tried in this order.");

const nicSubnets = boundedList(
  z.strictObject({ interface: ifName.meta({ description: "NIC to which the entry applies." }), ...subnetFamilies }),
  MAX_POD_NICS,
  "NICs",
).check(refuseRepeated((entry) => entry.interface, "interface"));

const nicPools = boundedList(
  z.strictObject({
    interface: ifName.optional().meta({
      description:
        "NIC to which the entry applies. Either all entries have it or none; without it, entries apply to the NICs in order.",
    }),
    ...poolFamilies,
    cleangateway: z.boolean().default(false).meta({ description: "Gives the NIC no route through a pool's gateway." }),
  }),
  MAX_POD_NICS,
  "NICs",
)
  .check(refuseRepeated((entry) => entry.interface, "interface"))
  .check(({ value, issues }) => {
    const withNic = value.findIndex((entry) => entry.interface !== undefined);
    const without = value.findIndex((entry) => entry.interface === undefined);
    if (withNic < 0 || without < 0) return;
    const message = `an interface in every entry, as entry [${withNic}] has one, or in none`;
    issues.push({ code: "custom", path: [without, "interface"], message, input: value });
  })
  .check(({ value, issues }) => {
    const patterns = new Set(value.flatMap(({ ipv4 = [], ipv6 = [] }) => [...ipv4, ...ipv6]).filter(isPattern));
    if (patterns.size <= MAX_PATTERNS) return;
    const [message, params] = [`at most ${MAX_PATTERNS}`, { got: `${patterns.size} different patterns` }];
    issues.push({ code: "custom", path: [], message, params, input: value });
  });

const routes = boundedList(route, MAX_POD_ROUTES, "routes").check(
  refuseRepeated((entry) => formatPrefix(entry.dst), "dst"),
);

const addressOf = (family: Family) =>
  address.refine((ip) => ip.family === family, { error: `an IPv${family} address` }).optional();

const nicMac = parsedText(parseNicMac, 'a MAC address of one NIC such as "02:00:0a:06:00:32"');

const nicAddresses = boundedList(
  z
    .strictObject({ interface: ifName.optional(), ipv4: addressOf(4), ipv6: addressOf(6), mac: nicMac.optional() })
    .refine(({ ipv4, ipv6 }) => ipv4 !== undefined || ipv6 !== undefined, { error: "ipv4, ipv6, or both" }),
  MAX_POD_NICS,
  "NICs",
).check(refuseRepeated((entry) => entry.interface ?? "", "interface"));

const podAddresses = z.record(z.string(), nicAddresses).transform((value, { addIssue }) => {
  for (const name of Object.keys(value))
    if (!isDnsSubdomain(name)) addIssue({ code: "custom", path: [name], message: "the name of a pod as the key" });
  return new Map(Object.entries(value));
});

/** `format` is "JSON" if the annotation holds JSON text. */
export interface AnnotationSchema {
  readonly format: "JSON" | "text";
  readonly schema: z.ZodType;
  readonly meaning: string;
}

/** Annotations of pods, by the key after the prefix. */
export const POD_ANNOTATIONS = {
  subnet: {
    format: "JSON",
    schema: z.strictObject(subnetFamilies),
    meaning: "Subnets from which pools are generated for every NIC of the pod.",
  },
  subnets: { format: "JSON", schema: nicSubnets, meaning: "The same, NIC by NIC." },
  ippool: { format: "JSON", schema: z.strictObject(poolFamilies), meaning: "Pools, for every NIC of the pod." },
  ippools: { format: "JSON", schema: nicPools, meaning: "The same, NIC by NIC." },
  ips: {
    format: "JSON",
    schema: listOr(nicAddresses, podAddresses),
    meaning:
      'The [very addresses](fixed-addresses.md) of NICs, out of the selected pools: `[{"interface": "net1", "ipv4": "10.6.0.50", "ipv6": "fd00::50"}]`, without `interface` of the first NIC, and `mac` for the [MAC address](fixed-addresses.md#in-a-template). In the template of several pods: an object of such lists by the pods\' names.',
  },
  routes: {
    format: "JSON",
    schema: routes,
    meaning:
      "Additional routes, each on the NIC whose network contains its `gw`; with a link-local `gw` on the first NIC whose pool names it, or the pod's only NIC. A default destination replaces that NIC's default route of the family.",
  },
  "default-route-nic": { format: "text", schema: ifName, meaning: "NIC that carries the pod's default route." },
  "ippool-ip-number": {
    format: "text",
    schema: parsedText(parsePoolNumber, POOL_NUMBER_FORM),
    meaning: 'Number of addresses of a generated pool: `"N"`, or `"+N"` for N more than the replicas. Default `+1`.',
  },
  "ippool-reclaim": {
    format: "text",
    schema: z.enum(["true", "false"]).transform((text) => text === "true"),
    meaning: "Whether a generated pool is deleted with its workload. Default `true`.",
  },
  retain: {
    format: "text",
    schema: z.enum(["by-name"]),
    meaning:
      "`by-name`: the pod's owner, of a kind that `retainByName` of `vendor-conf` lists, retains its addresses for the next pod of its name ([workloads.md](workloads.md#further-kinds)).",
  },
} as const satisfies Record<string, AnnotationSchema>;

const poolNames = boundedList(nameOrPattern, MAX_LISTED_NAMES, "names");

/** Annotations of namespaces, by the key after the prefix. */
export const NAMESPACE_ANNOTATIONS = {
  "default-ipv4-ippool": { format: "JSON", schema: poolNames, meaning: "IPv4 pools of the pods in this namespace." },
  "default-ipv6-ippool": { format: "JSON", schema: poolNames, meaning: "IPv6 pools of the pods in this namespace." },
} as const satisfies Record<string, AnnotationSchema>;

const NETWORK_FORM = "a network's definition, NAMESPACE/NAME";

function parseNetworkName(text: string): string | undefined {
  const [namespace = "", name = "", ...rest] = text.trim().split("/");
  return rest.length === 0 && isDnsLabel(namespace) && isDnsSubdomain(name) ? `${namespace}/${name}` : undefined;
}

/** Annotations of Services, by the key after the prefix. */
export const SERVICE_ANNOTATIONS = {
  "service-network": {
    format: "text",
    schema: parsedText(parseNetworkName, NETWORK_FORM),
    meaning: "Definition of the network, `NAMESPACE/NAME`, on which the Service's pods are reached.",
  },
  "service-selector": {
    format: "text",
    schema: parsedText(parseLabelSelector, LABEL_SELECTOR_FORM),
    meaning: "Label selector of those pods, in the Service's namespace: `app=web`, `tier in (front,back),!canary`.",
  },
} as const satisfies Record<string, AnnotationSchema>;
