/**
 * Deployment, ReplicaSet, StatefulSet and DaemonSet (apps/v1), as far as the pools of their pods need it.
 */
import { createHash } from "node:crypto";
import { z } from "zod";
import { decodeConfig } from "../../config/config-error.ts";
import { orAbsent } from "../../lib/schema.ts";
import { counted, observed, podTemplate, surge, wanted, workloadMetadata } from "./template.ts";

const template = { template: podTemplate };

/** Digest of the whole template: another one is another version of the pods. */
function digestOf(value: unknown): string {
  const spec = z.object({ spec: z.object({ template: z.unknown() }) }).safeParse(value).data?.spec;
  return createHash("sha256")
    .update(JSON.stringify(spec?.template) ?? "")
    .digest("base64");
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

export type Deployment = ReturnType<typeof decodeDeployment>;

/** `maxSurge` in pods; 0 for the strategy Recreate. `digest` is that of the template. Throws ConfigError. */
export function decodeDeployment(value: unknown, source: string) {
  const { metadata, spec, status } = decodeConfig(deployment, value, source);
  const { type = "RollingUpdate", rollingUpdate } = spec.strategy ?? {};
  const surgeOf = rollingUpdate?.maxSurge ?? surge.parse(DEFAULT_SURGE);
  return {
    ...{ metadata, template: spec.template, replicas: spec.replicas, digest: digestOf(value) },
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

export type Replicated = ReturnType<typeof decodeReplicated>;

/** A ReplicaSet or a StatefulSet: how many pods it wants, and how many there are. Throws ConfigError. */
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

export type DaemonSet = ReturnType<typeof decodeDaemonSet>;

/** `desired` is the number of nodes that are to have a pod; `maxSurge` in pods. Throws ConfigError. */
export function decodeDaemonSet(value: unknown, source: string) {
  const { metadata, spec, status } = decodeConfig(daemonSet, value, source);
  const { type = "RollingUpdate", rollingUpdate } = spec.updateStrategy ?? {};
  const desired = status?.desiredNumberScheduled ?? 0;
  return {
    ...{ metadata, template: spec.template, desired },
    maxSurge: type === "RollingUpdate" ? (rollingUpdate?.maxSurge?.(desired) ?? 0) : 0,
    observedGeneration: status?.observedGeneration ?? 0,
    updated: status?.updatedNumberScheduled ?? 0,
  };
}
