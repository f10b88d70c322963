/** The fields of Deployment, ReplicaSet, StatefulSet and DaemonSet (apps/v1) that size the pools generated for them. */
import { hash } from "node:crypto";
import * as z from "zod";
import { decodeConfig } from "../../config/config-error.ts";
import { orAbsent } from "../../lib/schema.ts";
import { counted, observed, podTemplate, surge, wanted, workloadMetadata } from "./template.ts";

const template = { template: podTemplate };

/** Returns a digest of the pod template, which identifies a revision of the pods. */
function digestOf(value: unknown): string {
  const spec = z.object({ spec: z.object({ template: z.unknown() }) }).safeParse(value).data?.spec;
  return hash("sha256", JSON.stringify(spec?.template) ?? "", "base64");
}

const DEFAULT_SURGE = "25%";

const rollingUpdate = z.object({ maxSurge: orAbsent(surge) });

const deployment = z.object({
  metadata: workloadMetadata,
  spec: z.object({
    ...template,
    replicas: wanted,
    strategy: orAbsent(z.object({ type: orAbsent(z.string()), rollingUpdate: orAbsent(rollingUpdate) })),
  }),
  status: orAbsent(z.object({ observedGeneration: observed, replicas: counted, updatedReplicas: counted })),
});

/**
 * Decodes a Deployment. `maxSurge` is a number of pods, 0 with the strategy Recreate; `digest` is the template's.
 * Throws ConfigError.
 */
export function decodeDeployment(value: unknown, source: string) {
  const { metadata, spec, status } = decodeConfig(deployment, value, source);
  const { type = "RollingUpdate", rollingUpdate } = spec.strategy ?? {};
  const surgeOf = rollingUpdate?.maxSurge ?? surge.parse(DEFAULT_SURGE);
  return {
    metadata,
    template: spec.template,
    replicas: spec.replicas,
    digest: digestOf(value),
    maxSurge: type === "RollingUpdate" ? surgeOf(spec.replicas) : 0,
    observedGeneration: status?.observedGeneration ?? 0,
    present: status?.replicas ?? 0,
    updated: status?.updatedReplicas ?? 0,
  };
}

const replicated = z.object({
  metadata: workloadMetadata,
  spec: z.object({ ...template, replicas: wanted }),
  status: orAbsent(z.object({ replicas: counted })),
});

/** Decodes a ReplicaSet or a StatefulSet: `replicas` wanted, `present` now. Throws ConfigError. */
export function decodeReplicated(value: unknown, source: string) {
  const { metadata, spec, status } = decodeConfig(replicated, value, source);
  return { metadata, template: spec.template, replicas: spec.replicas, present: status?.replicas ?? 0 };
}

const daemonSet = z.object({
  metadata: workloadMetadata,
  spec: z.object({
    ...template,
    updateStrategy: orAbsent(z.object({ type: orAbsent(z.string()), rollingUpdate: orAbsent(rollingUpdate) })),
  }),
  status: orAbsent(
    z.object({ observedGeneration: observed, desiredNumberScheduled: counted, updatedNumberScheduled: counted }),
  ),
});

/** Decodes a DaemonSet. `desired`: nodes that should have a pod; `maxSurge`: a number of pods. Throws ConfigError. */
export function decodeDaemonSet(value: unknown, source: string) {
  const { metadata, spec, status } = decodeConfig(daemonSet, value, source);
  const { type = "RollingUpdate", rollingUpdate } = spec.updateStrategy ?? {};
  const desired = status?.desiredNumberScheduled ?? 0;
  return {
    metadata,
    template: spec.template,
    desired,
    maxSurge: type === "RollingUpdate" ? (rollingUpdate?.maxSurge?.(desired) ?? 0) : 0,
    observedGeneration: status?.observedGeneration ?? 0,
    updated: status?.updatedNumberScheduled ?? 0,
  };
}
