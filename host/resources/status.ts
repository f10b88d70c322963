/** The status of Berth's kinds. It may be missing or outdated. */
import * as z from "zod";
import { MAX_LABEL_LENGTH } from "../config/fields/names.ts";
import { routerNames } from "./fields/address-spec.ts";
import { poolSourceStatus } from "./pool-source.ts";

/** Most pools generated from one Subnet. Its status lists them all and must fit into etcd's 1.5 MB. @limit */
export const MAX_POOLS_OF_SUBNET = 2_048;

/** Most namespaces that the controller reports as having reached `maxAddressesPerNamespace`. */
export const MAX_FULL_NAMESPACES = 1_024;

const condition = z.object({
  type: z.string().max(316).meta({ description: "Type of the condition." }),
  status: z.enum(["True", "False", "Unknown"]).meta({ description: "Whether the condition holds." }),
  observedGeneration: z
    .int32()
    .min(0)
    .optional()
    .meta({ description: "Generation of the object that the condition describes." }),
  lastTransitionTime: z.string().meta({ format: "date-time", description: "Time of the last change of `status`." }),
  reason: z.string().max(1_024).meta({ description: "Reason in one word, for programs." }),
  message: z.string().max(32_768).meta({ description: "Details, for people." }),
});

/** A condition in the API server (meta/v1 Condition). */
export type Condition = Readonly<z.output<typeof condition>>;

const conditioned = z.object({ status: z.object({ conditions: z.array(condition) }) });

/** Returns none if it has none, or they cannot be read. */
export function conditionsOf(object: unknown): readonly Condition[] {
  return conditioned.safeParse(object).data?.status.conditions ?? [];
}

/** The fields for Argo CD, Flux and `kubectl wait`. */
const health = {
  observedGeneration: z
    .int32()
    .min(0)
    .optional()
    .meta({ description: "Generation of the object that the conditions describe." }),
  conditions: z.array(condition).max(32).optional().meta({ description: "Conditions of the object." }),
};

const count = (description: string) => z.int().min(0).optional().meta({ description });

export const ipPoolStatus = z.object({
  ...health,
  total: count("Addresses that may be allocated."),
  used: count("Addresses that are not free."),
  free: count("Addresses that may be allocated and are free."),
  counted: z.string().optional().meta({
    format: "date-time",
    description:
      "When these counts were written: within ten seconds of a change, but later where very many pools change.",
  }),
  wanted: z.string().max(253).optional().meta({
    description:
      "Set by an agent that found the pool exhausted. Other agents then publish their Cooling addresses of the pool.",
  }),
  waiting: count("Set with `wanted` on a pool with `spec.source`: how many more pods of the agent wait for a block."),
  routers: routerNames.optional().meta({
    description:
      "Gateways and next hops of the pool and of its pods. Those that it does not name any more are not handed out.",
  }),
  source: poolSourceStatus.optional().meta({
    description: "Set by the controller on a pool with `spec.source`: the blocks that the cluster has leased for it.",
  }),
});

export const subnetStatus = z.object({
  ...health,
  total: count("Addresses for pools."),
  assigned: count("Addresses assigned to pools."),
  revision: count("Increases with each assignment in the Subnet's network."),
  waiting: count("New pools that wait to be made, because all nodes are told of each."),
  pools: z
    .array(
      z.object({
        name: z.string().max(253).meta({ description: "Name of the pool." }),
        ips: z.array(z.string().max(80)).max(1_024).optional().meta({ description: "Its addresses and ranges." }),
        application: z.string().max(512).optional().meta({ description: "The workload that it serves." }),
      }),
    )
    .max(MAX_POOLS_OF_SUBNET)
    .optional()
    .meta({ description: "The pools generated from the Subnet." }),
});

export const reservedIpStatus = z.object(health);

const networks = (description: string) => z.array(z.string().max(80)).max(1_024).optional().meta({ description });

export const coordinatorStatus = z.object({
  ...health,
  phase: z.enum(["Synced", "NotReady"]).optional().meta({ description: "Whether the networks are known." }),
  reason: z.string().max(1_024).optional().meta({ description: "Source of each network, or why it is unknown." }),
  overlayPodCIDR: networks("Pod networks of the cluster."),
  serviceCIDR: networks("Service networks of the cluster."),
  fullNamespaces: z
    .array(
      z.object({
        name: z.string().max(MAX_LABEL_LENGTH).meta({ description: "Name of the namespace." }),
        addresses: z.int().min(0).meta({ description: "Number of its addresses when it reached the limit." }),
      }),
    )
    .max(MAX_FULL_NAMESPACES)
    .optional()
    .meta({ description: "Namespaces that have reached `maxAddressesPerNamespace`." }),
});
