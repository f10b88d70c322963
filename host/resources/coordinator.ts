/** The kind Coordinator: the settings of the coordinator plugin for a cluster, or for an agent without one. */
import * as z from "zod";
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
import { berthObject, decodeBerth } from "./fields/metadata.ts";

const podCIDRType = z.enum(["auto", "cluster", "calico", "cilium", "none"]);

/** Name of the only Coordinator that is used. */
export const COORDINATOR_NAME = "default";

/** The rest of the statement about an object with another name. */
export const IS_IGNORED = `is ignored: only the one named "${COORDINATOR_NAME}" is used. Move its settings there and delete it`;

export interface Coordinator {
  readonly kind: "Coordinator";
  readonly name: string;
  /** The object's settings. Those of a network definition take precedence; defaults fill unset ones. */
  readonly spec: CoordinatorSettings & {
    /** The source of the cluster's pod networks for the controller. */
    readonly podCIDRType: z.output<typeof podCIDRType>;
  };
  /** The networks that the controller collected; undefined before that, and in the embedded mode. */
  readonly collected?: Readonly<z.output<typeof collectedSchema>> | undefined;
  /** Namespaces that have reached their limit, with their number of addresses. Undefined in the embedded mode. */
  readonly fullNamespaces?: ReadonlyMap<string, number> | undefined;
}

const spec = coordinatorKeys
  .extend({
    logOptions: resolvedLogOptions.optional().meta({ description: LOG_OPTIONS }),
    podCIDRType: podCIDRType
      .default("auto")
      .meta({ description: "Source of `overlayPodCIDR` if that is empty. `none` collects nothing." }),
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

/** A malformed list counts as empty, a status without a phase as absent. */
const collectedSchema = z.object({
  /** "NotReady": one of the two lists is unknown, or its source failed; the lists keep their previous entries. */
  phase: z.enum(["Synced", "NotReady"]),
  /** The source of each of the two lists, or the fault. */
  reason: z.string().catch(""),
  overlayPodCIDR: collectedList,
  serviceCIDR: collectedList,
});

/**
 * Like {@link decodeCoordinator}, with the status, which the controller writes; its absent parts stay as `before`.
 * Throws ConfigError.
 */
export function decodeServedCoordinator(value: unknown, source: string, before?: Coordinator): Coordinator {
  const status = typeof value === "object" && value !== null && "status" in value ? value.status : undefined;
  const said = Object(status);
  return {
    ...decodeCoordinator(value, source),
    collected: collectedSchema.safeParse(status).data ?? before?.collected,
    fullNamespaces: said.fullNamespaces === undefined ? before?.fullNamespaces : fullNamespacesOf(status),
  };
}

const fullSchema = z.object({ fullNamespaces: z.array(z.object({ name: z.string(), addresses: z.number() })) });

/** Returns the numbers of addresses by namespace from a status; empty if the status is absent or malformed. */
export function fullNamespacesOf(status: unknown): ReadonlyMap<string, number> {
  const { fullNamespaces = [] } = fullSchema.safeParse(status).data ?? {};
  return new Map(fullNamespaces.map(({ name, addresses }) => [name, addresses]));
}

/** In the resource an empty list means "not set"; in a network definition it means "none". */
function withoutEmpty(spec: Coordinator["spec"]): Coordinator["spec"] {
  const empty = COLLECTED_KEYS.filter((key) => spec[key]?.length === 0).map((key) => [key, undefined] as const);
  return { ...spec, ...Object.fromEntries(empty) };
}

/** Returns the resource's settings, then the collected ones: below a network definition's, strongest first. */
export function coordinatorLayers(coordinator: Coordinator | undefined): CoordinatorSettings[] {
  if (coordinator === undefined) return [];
  const { collected } = coordinator;
  const spec = withoutEmpty(coordinator.spec);
  if (collected === undefined) return [spec];
  const { overlayPodCIDR, serviceCIDR } = collected;
  const pods = spec.podCIDRType === "none" ? {} : { overlayPodCIDR };
  return [spec, { serviceCIDR, ...pods, warnings: [] }];
}

/** Returns the name of a pod's first NIC, whichever plugin serves it. */
export function firstNicOf(coordinator: Coordinator | undefined): string {
  return coordinator?.spec.podDefaultCniNic ?? "eth0";
}
