/**
 * What Berth reports in the status of its own kinds. No agent depends on a status: it may be missing or old.
 */

import { z } from "zod";
import { MAX_LABEL_LENGTH } from "../config/fields/names.ts";

/** Most pools that are generated out of one Subnet; its status lists them all, and etcd takes 1.5 MB. @limit */
export const MAX_POOLS_OF_SUBNET = 2_048;

/** Most namespaces that the controller reports as having as many addresses as they may have. @limit */
export const MAX_FULL_NAMESPACES = 1_024;

const condition = z.object({
  type: z.string().max(316).meta({ description: "What the condition is about." }),
  status: z.enum(["True", "False", "Unknown"]).meta({ description: "Whether it holds." }),
  observedGeneration: z.int32().min(0).optional().meta({ description: "Generation of the object that was judged." }),
  lastTransitionTime: z.string().meta({ format: "date-time", description: "When the status changed last." }),
  reason: z.string().max(1_024).meta({ description: "One word for programs." }),
  message: z.string().max(32_768).meta({ description: "A sentence for people." }),
});

const conditions = z
  .array(condition)
  .max(32)
  .optional()
  .meta({ description: "What Berth has found out about the object." });

const count = (description: string) => z.int().min(0).optional().meta({ description });

export const ipPoolStatus = z.object({
  conditions,
  total: count("Addresses that may be handed out."),
  used: count("Addresses that are not free."),
  wanted: z.string().max(253).optional().meta({
    description:
      "Set by an agent that found the pool exhausted: whoever holds addresses of it that cool tells the API server.",
  }),
});

export const subnetStatus = z.object({
  conditions,
  total: count("Addresses for pools."),
  assigned: count("Addresses that pools have."),
  revision: count("Grows whenever addresses are assigned in the Subnet's network."),
  pools: z
    .array(
      z.object({
        name: z.string().max(253).meta({ description: "Name of the pool." }),
        ips: z.array(z.string().max(80)).max(1_024).optional().meta({ description: "Its addresses and ranges." }),
        application: z.string().max(512).optional().meta({ description: "Workload that it was generated for." }),
      }),
    )
    .max(MAX_POOLS_OF_SUBNET)
    .optional()
    .meta({ description: "The pools generated out of this subnet." }),
});

export const reservedIpStatus = z.object({ conditions });

const networks = (description: string) => z.array(z.string().max(80)).max(1_024).optional().meta({ description });

export const coordinatorStatus = z.object({
  phase: z.enum(["Synced", "NotReady"]).optional().meta({ description: "Whether the networks are known." }),
  reason: z
    .string()
    .max(1_024)
    .optional()
    .meta({ description: "Where each of them comes from, or why it is not known." }),
  overlayPodCIDR: networks("Pod networks of the cluster."),
  serviceCIDR: networks("Service networks of the cluster."),
  fullNamespaces: z
    .array(
      z.object({
        name: z.string().max(MAX_LABEL_LENGTH).meta({ description: "Name of the namespace." }),
        addresses: z.int().min(0).meta({ description: "Addresses that it had when it came to the limit." }),
      }),
    )
    .max(MAX_FULL_NAMESPACES)
    .optional()
    .meta({ description: "Namespaces that have as many addresses as `maxAddressesPerNamespace` lets them have." }),
});
