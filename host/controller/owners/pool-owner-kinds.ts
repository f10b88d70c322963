/**
 * The kinds of workloads whose pods may name Subnets: their reading, and the number of addresses that they need. Of
 * other kinds only the pods are known.
 */

import * as z from "zod";
import { decodeConfig } from "../../config/config-error.ts";
import { aboveOf, applicationOf, controllerOf } from "../../ipam/owner.ts";
import type { KubeObject } from "../../kubernetes/kube-api.ts";
import type { PoolOwner } from "../../resources/fields/subnet-pool.ts";
import { decodeDaemonSet, decodeDeployment, decodeReplicated } from "../../resources/workloads/apps.ts";
import { decodeCronJob, decodeJob } from "../../resources/workloads/batch.ts";
import { type PodTemplate, type WorkloadMetadata, workloadMetadata } from "../../resources/workloads/template.ts";
import { type Need, namesSubnets, rankOf, readTemplate, type TrackedObject } from "./tracked-object.ts";

interface PoolOwnerKind {
  readonly kind: string;
  readonly apiVersion: "apps/v1" | "batch/v1";
  readonly plural: string;
  /** Whether an object of a kind that ends by itself has ended. Throws ConfigError. */
  readonly isOver?: (object: KubeObject, source: string) => boolean;
  /** Returns undefined if the pods name no Subnets. `before`: result for the previous version. Throws ConfigError. */
  readonly read: (object: KubeObject, source: string, before: TrackedObject | undefined) => TrackedObject | undefined;
}

/** Returns the kind if it is followed: its own object then has the template and number of its pods. */
export function findKind({ apiVersion, kind }: Pick<PoolOwner, "apiVersion" | "kind">): PoolOwnerKind | undefined {
  return POOL_OWNER_KINDS.find((each) => each.kind === kind && each.apiVersion === apiVersion);
}

interface Read {
  readonly metadata: WorkloadMetadata;
  readonly template: PodTemplate;
  readonly need: Partial<Need> & Pick<Need, "unit" | "count">;
  readonly objectCount?: number;
  readonly observedDigest?: string | undefined;
}

function trackedOf(application: PoolOwner, isOwner: boolean, read: Read): TrackedObject {
  const { metadata, template, need, objectCount = 1, observedDigest } = read;
  return {
    application,
    isOwner,
    objectCount,
    observedDigest,
    need: { surge: 0, isSuspended: false, overlaps: true, ...need },
    template: readTemplate(metadata.namespace, template.annotations),
    rank: isOwner ? NO_RANK : rankOf(metadata),
  };
}

const NO_RANK: TrackedObject["rank"] = [0, "", ""];

type Kind = Pick<PoolOwnerKind, "kind" | "apiVersion">;

const DEPLOYMENT: Kind = { kind: "Deployment", apiVersion: "apps/v1" };
const REPLICA_SET: Kind = { kind: "ReplicaSet", apiVersion: "apps/v1" };
const STATEFUL_SET: Kind = { kind: "StatefulSet", apiVersion: "apps/v1" };
const DAEMON_SET: Kind = { kind: "DaemonSet", apiVersion: "apps/v1" };
const JOB: Kind = { kind: "Job", apiVersion: "batch/v1" };
const CRON_JOB: Kind = { kind: "CronJob", apiVersion: "batch/v1" };

export const POOL_OWNER_KINDS: readonly PoolOwnerKind[] = [
  { ...DEPLOYMENT, plural: "deployments", read: skippingOthers(readDeployment) },
  { ...REPLICA_SET, plural: "replicasets", read: skippingOthers(readReplicaSet) },
  { ...STATEFUL_SET, plural: "statefulsets", read: skippingOthers(readStatefulSet) },
  { ...DAEMON_SET, plural: "daemonsets", read: skippingOthers(readDaemonSet) },
  { ...JOB, plural: "jobs", read: skippingOthers(readJob), isOver: isFinishedJob },
  { ...CRON_JOB, plural: "cronjobs", read: skippingOthers(readCronJob) },
];

/** Does not decode objects whose pods name no Subnets, or use the network of their node. */
function skippingOthers(read: PoolOwnerKind["read"]): PoolOwnerKind["read"] {
  return (object, source, before) => {
    const spec = inside(object.spec);
    const template = inside(inside(inside(spec.jobTemplate).spec).template ?? spec.template);
    if (!namesSubnets(inside(template.metadata).annotations)) return undefined;
    if (inside(template.spec).hostNetwork === true) return undefined;
    return read(object, source, before);
  };
}

function inside(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}

function selfOf({ apiVersion, kind }: Kind, { namespace, name, uid }: WorkloadMetadata): PoolOwner {
  return { apiVersion, kind, namespace, name, uid };
}

function readDeployment(object: KubeObject, source: string, before: TrackedObject | undefined): TrackedObject {
  const found = decodeDeployment(object, source);
  const { metadata, replicas, maxSurge, observedGeneration, present, updated, digest } = found;
  const application = selfOf(DEPLOYMENT, metadata);
  const isObserved = observedGeneration >= metadata.generation || present === 0;
  const known = before?.application.uid === application.uid ? before.observedDigest : undefined;
  const observedDigest = isObserved ? digest : known;
  // More pods than replicas exist only while a rollout replaces pods of an earlier version, or is about to.
  const isRolledOut = present > replicas || present > updated || observedDigest !== digest;
  const need = { unit: "replica", count: replicas, surge: isRolledOut ? maxSurge : 0 } as const;
  return trackedOf(application, true, { ...found, need, observedDigest });
}

function readReplicaSet(object: KubeObject, source: string): TrackedObject | undefined {
  const found = decodeReplicated(object, source);
  const { metadata, replicas, present } = found;
  const owner = aboveOf("ReplicaSet", metadata);
  if (owner === undefined) {
    const need = { unit: "replica", count: replicas } as const;
    return trackedOf(selfOf(REPLICA_SET, metadata), true, { ...found, need });
  }
  const application = applicationOf(metadata.namespace, owner);
  const count = Math.max(replicas, present);
  // A Deployment keeps the empty ReplicaSets of earlier versions.
  if (application === undefined || (count === 0 && isOf(DEPLOYMENT, application))) return undefined;
  return trackedOf(application, false, { ...found, need: { unit: "replica", count } });
}

function isOf({ kind, apiVersion }: Kind, application: Pick<PoolOwner, "kind" | "apiVersion">): boolean {
  return application.kind === kind && application.apiVersion === apiVersion;
}

function readStatefulSet(object: KubeObject, source: string): TrackedObject {
  const found = decodeReplicated(object, source);
  // A member's next pod has its name.
  const need = { unit: "replica", count: found.replicas, overlaps: false } as const;
  return trackedOf(selfOf(STATEFUL_SET, found.metadata), true, { ...found, need });
}

function readDaemonSet(object: KubeObject, source: string): TrackedObject {
  const found = decodeDaemonSet(object, source);
  const { metadata, desired, maxSurge, observedGeneration, updated } = found;
  const isRolledOut = desired > 0 && (observedGeneration < metadata.generation || updated < desired);
  const overlaps = maxSurge > 0;
  const need = { unit: "node", count: desired, surge: isRolledOut ? maxSurge : 0, overlaps } as const;
  return trackedOf(selfOf(DAEMON_SET, metadata), true, { ...found, need });
}

function readJob(object: KubeObject, source: string): TrackedObject | undefined {
  const found = decodeJob(object, source);
  const { metadata, parallelism, suspended: isSuspended, isFinished } = found;
  if (isFinished) return undefined;
  const need = { unit: "parallelism", count: isSuspended ? 0 : parallelism, isSuspended } as const;
  const owner = aboveOf("Job", metadata);
  if (owner === undefined) return trackedOf(selfOf(JOB, metadata), true, { ...found, need });
  const application = applicationOf(metadata.namespace, owner);
  return application && trackedOf(application, false, { ...found, need });
}

function isFinishedJob(object: KubeObject, source: string): boolean {
  return decodeJob(object, source).isFinished;
}

function readCronJob(object: KubeObject, source: string): TrackedObject {
  const found = decodeCronJob(object, source);
  const { metadata, parallelism, suspended: isSuspended, active } = found;
  // The pool is ready before the next run starts.
  const objectCount = isSuspended ? active : Math.max(1, active);
  const need = { unit: "parallelism", count: parallelism * objectCount, isSuspended } as const;
  return trackedOf(selfOf(CRON_JOB, metadata), true, { ...found, need, objectCount });
}

/** Pods that run or will run, on a network of their own; finished pods count as gone. */
export const LIVE_PODS = "status.phase!=Succeeded,status.phase!=Failed,spec.hostNetwork=false";

const schema = z.object({ metadata: workloadMetadata });

/** Controllers whose own object counts their pods, and the Node, whose pods belong to no workload. */
const COUNTED: ReadonlySet<string> = new Set([
  ...["apps/v1 ReplicaSet", "apps/v1 StatefulSet", "apps/v1 DaemonSet", "batch/v1 Job", "v1 Node"],
]);

/**
 * Needs only the metadata. Returns undefined for a pod that names no Subnets, or is counted by its controller and not
 * ending. Throws ConfigError.
 */
export function readPod(object: KubeObject, source: string): TrackedObject | undefined {
  const raw = object.metadata;
  if (typeof raw !== "object" || raw === null || !("annotations" in raw)) return undefined;
  const isEnding = "deletionTimestamp" in raw && raw.deletionTimestamp != null;
  const counted = isCounted(raw);
  if (!namesSubnets(raw.annotations) || (counted && !isEnding)) return undefined;
  const { metadata } = decodeConfig(schema, object, source);
  const owner = controllerOf(metadata);
  const application = owner && applicationOf(metadata.namespace, owner);
  if (application === undefined || (counted && findKind(application) === undefined)) return undefined;
  return {
    application,
    isOwner: false,
    objectCount: 1,
    observedDigest: undefined,
    need: { unit: "pod", count: isEnding ? 0 : 1, surge: 0, isSuspended: false, overlaps: true },
    template: counted ? NO_TEMPLATE : readTemplate(metadata.namespace, metadata.annotations),
    rank: rankOf(metadata),
    isEnding,
  };
}

/** Of a pod that demands nothing. */
const NO_TEMPLATE: TrackedObject["template"] = { kind: "fault", message: "" };

/** True for most pods, which then need not be decoded. */
function isCounted(metadata: object): boolean {
  const owners: unknown = "ownerReferences" in metadata ? metadata.ownerReferences : undefined;
  if (!Array.isArray(owners)) return true;
  const owner = owners.find((each) => each?.controller === true);
  return owner === undefined || COUNTED.has(`${owner.apiVersion} ${owner.kind}`);
}
