/**
 * The resource Coordinator: the cluster's settings of the coordinator plugin (specification, Resolved B).
 * Called by the manifests and the watches; only the one named `default` counts.
 * Effects: none.
 */
import { z } from "zod";
import { coordinatorKeys, LOG_OPTIONS, MODE_RULE, resolvedLogOptions, settingsOf } from "../config/coordinator-conf.ts";
import type { CoordinatorSettings } from "../config/coordinator-settings.ts";
import { cel } from "../lib/cel.ts";
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
