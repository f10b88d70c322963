/**
 * The schema of each annotation under `ipam.vendor.io/`: the decoder's rules and the reference page's text.
 */
import { z } from "zod";
import { parsedText } from "../lib/schema.ts";
import { formatPrefix } from "../net/prefix.ts";
import { boundedList, refuseRepeated } from "./fields/lists.ts";
import { nameOrPattern, objectName } from "./fields/names.ts";
import { ifName, route } from "./fields/network.ts";
import { isPattern } from "./pattern.ts";
import { POOL_NUMBER_FORM, parsePoolNumber } from "./pool-number.ts";

/** Most NICs for which one pod's annotations choose pools or Subnets, the first one included. @limit */
export const MAX_POD_NICS = 32;

/** Most names in one list of an annotation: of pools, of Subnets, or patterns. @limit */
export const MAX_LISTED_NAMES = 64;

/** Most different patterns in all lists of one annotation. Each is compared with every pool of the cluster, by the agent of the pod's node. @limit */
export const MAX_PATTERNS = 64;

/** Most routes that one annotation adds to a pod. @limit */
export const MAX_POD_ROUTES = 128;

function families(entry: typeof objectName | typeof nameOrPattern, what: string) {
  return {
    ipv4: boundedList(entry, MAX_LISTED_NAMES, "names")
      .optional()
      .meta({ description: `${what} for IPv4; required when \`enableIPv4\` is true.` }),
    ipv6: boundedList(entry, MAX_LISTED_NAMES, "names")
      .optional()
      .meta({ description: `${what} for IPv6; required when \`enableIPv6\` is true.` }),
  };
}

const subnetFamilies = families(objectName, "Subnets");
const poolFamilies = families(nameOrPattern, "Pools, or patterns of their names, tried in this order,");

const nicSubnets = boundedList(
  z.strictObject({ interface: ifName.meta({ description: "NIC to which the entry applies." }), ...subnetFamilies }),
  MAX_POD_NICS,
  "NICs",
).check(refuseRepeated((entry) => entry.interface, "interface"));

const nicPools = boundedList(
  z.strictObject({
    interface: ifName.optional().meta({
      description: "NIC to which the entry applies. All entries have it or none: then the order is that of the NICs.",
    }),
    ...poolFamilies,
    cleangateway: z.boolean().default(false).meta({ description: "The NIC gets no route through a pool's gateway." }),
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

/** `JSON` is JSON text inside the annotation, `text` the text itself. */
export interface AnnotationSchema {
  readonly format: "JSON" | "text";
  readonly schema: z.ZodType;
  readonly meaning: string;
}

/** On pods. */
export const POD_ANNOTATIONS = {
  subnet: {
    format: "JSON",
    schema: z.strictObject(subnetFamilies),
    meaning: "Subnets from which pools are generated, for every NIC of the pod.",
  },
  subnets: { format: "JSON", schema: nicSubnets, meaning: "The same, NIC by NIC." },
  ippool: { format: "JSON", schema: z.strictObject(poolFamilies), meaning: "Pools, for every NIC of the pod." },
  ippools: { format: "JSON", schema: nicPools, meaning: "The same, NIC by NIC." },
  routes: {
    format: "JSON",
    schema: routes,
    meaning:
      "Additional routes; each goes to the NIC whose network contains its `gw`. A default destination replaces the pool's default route of that family there.",
  },
  "default-route-nic": { format: "text", schema: ifName, meaning: "NIC that carries the pod's default route." },
  "ippool-ip-number": {
    format: "text",
    schema: parsedText(parsePoolNumber, POOL_NUMBER_FORM),
    meaning: 'Addresses of a generated pool: `"N"`, or `"+N"` for the replicas and N more. Default `+1`.',
  },
  "ippool-reclaim": {
    format: "text",
    schema: z.enum(["true", "false"]).transform((text) => text === "true"),
    meaning: "Whether a generated pool goes with its workload. Default `true`.",
  },
} as const satisfies Record<string, AnnotationSchema>;

const poolNames = boundedList(nameOrPattern, MAX_LISTED_NAMES, "names");

/** On namespaces. */
export const NAMESPACE_ANNOTATIONS = {
  "default-ipv4-ippool": { format: "JSON", schema: poolNames, meaning: "IPv4 pools of the pods in this namespace." },
  "default-ipv6-ippool": { format: "JSON", schema: poolNames, meaning: "IPv6 pools of the pods in this namespace." },
} as const satisfies Record<string, AnnotationSchema>;
