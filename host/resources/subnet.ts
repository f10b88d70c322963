/** The kind Subnet: addresses that the controller divides among generated pools. */
import * as z from "zod";
import { decodeConfig } from "../config/config-error.ts";
import { namespaceName } from "../config/fields/names.ts";
import { type LabelSelector, type Labels, labelSelector, matchLabels } from "../config/label-selector.ts";
import { cel } from "../lib/cel.ts";
import {
  ADDRESS_RULES,
  type AddressSpec,
  addressKeys,
  addressSpecOf,
  checkAddresses,
  ranges,
} from "./fields/address-spec.ts";
import { berthObject, decodeBerth, isDeleting } from "./fields/metadata.ts";
import { MAX_NAMES } from "./ip-pool.ts";

/** Without `namespaceName` and `namespaceAffinity`, workloads of all namespaces may use the Subnet. */
export interface SubnetSpec extends AddressSpec {
  /** Takes precedence over the affinity. An empty list does not restrict the Subnet. */
  readonly namespaceName: readonly string[];
  readonly namespaceAffinity?: LabelSelector | undefined;
}

export interface Subnet {
  readonly kind: "Subnet";
  readonly name: string;
  readonly labels: Labels;
  readonly deleting: boolean;
  readonly spec: SubnetSpec;
}

export const subnetSchema = berthObject(
  "Subnet",
  z
    .strictObject({
      ...addressKeys,
      namespaceAffinity: labelSelector
        .optional()
        .meta({ description: "Only workloads in namespaces with these labels." }),
      namespaceName: z.array(namespaceName).max(MAX_NAMES).default([]).meta({
        description: "Only workloads in these namespaces. Wins over `namespaceAffinity`.",
      }),
    })
    .check(checkAddresses)
    .meta(cel(...ADDRESS_RULES))
    .transform(({ namespaceName, namespaceAffinity, ...addresses }): SubnetSpec => {
      return { ...addressSpecOf(addresses), namespaceName, namespaceAffinity };
    }),
);

interface AskingNamespace {
  readonly name: string;
  readonly labels: Labels;
  /** The only namespace that may use Subnets without a rule; undefined: all may. */
  readonly closedTo: string | undefined;
}

/** Returns why workloads of a namespace may not use the Subnet; undefined if they may. Names no other namespace. */
export function refuseNamespace(spec: SubnetSpec, { name, labels, closedTo }: AskingNamespace): string | undefined {
  if (spec.namespaceName.length > 0)
    return spec.namespaceName.includes(name) ? undefined : "is for other namespaces (spec.namespaceName)";
  if (spec.namespaceAffinity === undefined) {
    if (closedTo === undefined || closedTo === name) return undefined;
    return 'names no namespaces (spec.namespaceName), and "tenantDefinitions" of vendor-conf is closed';
  }
  if (matchLabels(spec.namespaceAffinity, labels)) return undefined;
  return `is for namespaces with other labels than "${name}" has (spec.namespaceAffinity)`;
}

/** Throws ConfigError. */
export function decodeSubnet(value: unknown, source: string): Subnet {
  const { kind, metadata, spec } = decodeBerth(subnetSchema, value, source);
  return { kind, name: metadata.name, labels: metadata.labels, deleting: isDeleting(metadata), spec };
}

/** The status of a Subnet: the addresses reserved for each pool, and its workload (`Deployment shop/web`). */
const assignments = z.object({
  revision: z.number().default(0),
  /** Number of the Subnet's addresses; undefined before the first count. */
  total: z.number().optional().catch(undefined),
  pools: z
    .array(z.object({ name: z.string(), ips: ranges.default([]), application: z.string().default("") }))
    .default([]),
});

export type Assignments = Readonly<z.output<typeof assignments>>;

/**
 * Decodes the status of a Subnet, which may be absent. Throws ConfigError: assigning more is unsafe while the
 * assignments cannot be read.
 */
export function decodeAssignments(status: unknown, source: string): Assignments {
  return decodeConfig(assignments, status ?? {}, source);
}
