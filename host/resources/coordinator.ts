/**
 * The resource Coordinator: the cluster's settings of the coordinator plugin (specification, Resolved B).
 * Called by the manifests and the watches; only the one named `default` counts.
 */

import { z } from "zod";
import {
  coordinatorKeys,
  LOG_OPTIONS,
  MAX_CIDRS,
  MODE_RULE,
  resolvedLogOptions,
  settingsOf,
} from "../config/coordinator-conf.ts";
import { COLLECTED_KEYS, type CoordinatorSettings } from "../config/coordinator-settings.ts";
import { prefixOrIp } from "../config/fields/network.ts";
import { cel } from "../lib/cel.ts";
import type { Prefix } from "../net/prefix.ts";
import { berthObject, decodeBerth } from "./fields/metadata.ts";

const podCIDRType = z.enum(["auto", "cluster", "calico", "cilium", "none"]);

export interface Coordinator {
  readonly kind: "Coordinator";
  readonly name: string;
  /** What the resource says: a network definition lies over it, the defaults under it. */
  readonly spec: CoordinatorSettings & {
    /** Where the cluster's pod networks are found. */
    readonly podCIDRType: z.output<typeof podCIDRType>;
  };
  /** What the controller has found out. Undefined: nothing yet, or there is none: in the embedded mode there is no cluster to ask. */
  readonly collected?: CollectedNetworks | undefined;
  /** Namespaces that have as many addresses as they may have, with how many that were. Undefined: nobody counts. */
  readonly fullNamespaces?: ReadonlyMap<string, number> | undefined;
}

export interface CollectedNetworks {
  /** "NotReady": one of the two is not known, or the source of one has trouble; what was known before is still there. */
  readonly phase: "Synced" | "NotReady";
  /** Where each of the two comes from, or what is wrong. */
  readonly reason: string;
  readonly overlayPodCIDR: readonly Prefix[];
  readonly serviceCIDR: readonly Prefix[];
}

const spec = coordinatorKeys
  .extend({
    logOptions: resolvedLogOptions.optional().meta({ description: LOG_OPTIONS }),
    podCIDRType: podCIDRType
      .default("auto")
      .meta({ description: "Source of `overlayPodCIDR` when that is empty; `none` collects nothing." }),
  })
  .meta(cel(MODE_RULE))
  .transform(({ podCIDRType, ...keys }, context) => ({ ...settingsOf(keys, context), podCIDRType }));

export const coordinatorSchema = berthObject("Coordinator", spec);

/** Throws ConfigError. */
export function decodeCoordinator(value: unknown, source: string): Coordinator {
  const { kind, metadata, spec } = decodeBerth(coordinatorSchema, value, source);
  return { kind, name: metadata.name, spec };
}

const collectedList = z.array(prefixOrIp).max(MAX_CIDRS).catch([]);

/** A list that anybody has spoilt is as good as none; a status without a phase is none. */
const collectedSchema = z.object({
  phase: z.enum(["Synced", "NotReady"]),
  reason: z.string().catch(""),
  overlayPodCIDR: collectedList,
  serviceCIDR: collectedList,
});

/** Like {@link decodeCoordinator} for an object of the API server, whose status the controller writes. */
export function decodeServedCoordinator(value: unknown, source: string): Coordinator {
  const status = typeof value === "object" && value !== null && "status" in value ? value.status : undefined;
  const collected = collectedSchema.safeParse(status).data;
  return { ...decodeCoordinator(value, source), collected, fullNamespaces: fullNamespacesOf(status) };
}

const fullSchema = z.object({ fullNamespaces: z.array(z.object({ name: z.string(), addresses: z.number() })) });

/** By name, out of a status; none of one that does not say. */
export function fullNamespacesOf(status: unknown): ReadonlyMap<string, number> {
  const { fullNamespaces = [] } = fullSchema.safeParse(status).data ?? {};
  return new Map(fullNamespaces.map(({ name, addresses }) => [name, addresses]));
}

/** Here an empty list says that nobody has named any; in a network's definition it says that there are none. */
function withoutEmpty(spec: Coordinator["spec"]): Coordinator["spec"] {
  const empty = COLLECTED_KEYS.filter((key) => spec[key]?.length === 0).map((key) => [key, undefined] as const);
  return { ...spec, ...Object.fromEntries(empty) };
}

/** The settings of the resource, first what it says, then what was collected for it: to be laid under those of a network definition. */
export function coordinatorLayers(coordinator: Coordinator | undefined): CoordinatorSettings[] {
  if (coordinator === undefined) return [];
  const { collected } = coordinator;
  const spec = withoutEmpty(coordinator.spec);
  if (collected === undefined) return [spec];
  const { overlayPodCIDR, serviceCIDR } = collected;
  const pods = spec.podCIDRType === "none" ? {} : { overlayPodCIDR };
  return [spec, { serviceCIDR, ...pods, warnings: [] }];
}
