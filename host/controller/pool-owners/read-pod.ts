/**
 * Pods of workloads of other kinds than those that are followed: they are all that is known of such a workload.
 */
import { z } from "zod";
import { decodeConfig } from "../../config/config-error.ts";
import { applicationOf, controllerOf } from "../../ipam/owner.ts";
import type { KubeObject } from "../../kubernetes/kube-api.ts";
import { workloadMetadata } from "../../resources/workloads/template.ts";
import { namesSubnets, readTemplate } from "./read-template.ts";
import { rankOf, type Tracked } from "./tracked.ts";

/** Those that run or will run, on a network of their own; who has ended counts as gone. */
export const LIVE_PODS = "status.phase!=Succeeded,status.phase!=Failed,spec.hostNetwork=false";

const schema = z.object({ metadata: workloadMetadata });

/** Controllers whose pods are counted by their own object; and the Node, whose pods are no workload's. */
const COUNTED: ReadonlySet<string> = new Set([
  ...["apps/v1 ReplicaSet", "apps/v1 StatefulSet", "apps/v1 DaemonSet", "batch/v1 Job", "v1 Node"],
]);

/** The metadata are enough. Undefined for a pod that names no Subnets, or is counted by its controller. Throws ConfigError. */
export function readPod(object: KubeObject, source: string): Tracked | undefined {
  const raw = object.metadata;
  if (typeof raw !== "object" || raw === null || !("annotations" in raw)) return undefined;
  if (!namesSubnets(raw.annotations) || isCounted(raw)) return undefined;
  const { metadata } = decodeConfig(schema, object, source);
  const owner = controllerOf(metadata);
  const application = owner && applicationOf(metadata.namespace, owner);
  if (application === undefined) return undefined;
  const isLeaving = "deletionTimestamp" in raw && raw.deletionTimestamp != null;
  return {
    ...{ application, isApplication: false, things: 1, observedDigest: undefined },
    need: { unit: "pod", count: isLeaving ? 0 : 1, surge: 0, isSuspended: false },
    template: readTemplate(metadata.namespace, metadata.annotations),
    rank: rankOf(metadata),
  };
}

/** Most pods are: they are not worth decoding. */
function isCounted(metadata: object): boolean {
  const owners: unknown = "ownerReferences" in metadata ? metadata.ownerReferences : undefined;
  if (!Array.isArray(owners)) return true;
  const owner = owners.find((each) => each?.controller === true);
  return owner === undefined || COUNTED.has(`${owner.apiVersion} ${owner.kind}`);
}
