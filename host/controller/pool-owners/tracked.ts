/**
 * What the controller keeps of an object whose pods name Subnets: a workload, a part of one, or a pod.
 */
import type { FamilyNames, NicSubnets } from "../../config/annotations.ts";
import type { PoolNumber } from "../../config/pool-number.ts";
import type { Application } from "../../resources/fields/subnet-pool.ts";
import type { WorkloadMetadata } from "../../resources/workloads/template.ts";

/** What a pod template says of Subnets; or why that cannot be followed: a sentence without its end. */
export type SubnetTemplate =
  | {
      readonly kind: "wishes";
      readonly subnet: FamilyNames | undefined;
      /** Wins over `subnet`. */
      readonly subnets: readonly NicSubnets[] | undefined;
      /** The NetworkAttachmentDefinition of the first NIC, where the template names one: `namespace/name`. */
      readonly first: string | undefined;
      /** Those of the other NICs. */
      readonly others: readonly { readonly ifName: string; readonly attachment: string }[];
      readonly number: PoolNumber;
      readonly reclaim: boolean;
    }
  | {
      readonly kind: "fault";
      readonly message: string;
      /** What was read, since other settings may permit it. */
      readonly of?: { readonly namespace: string; readonly annotations: Readonly<Record<string, string>> };
    };

/** What is counted. */
export type Unit = "replica" | "node" | "pod" | "parallelism";

export interface Need {
  readonly unit: Unit;
  readonly count: number;
  /** Pods beyond that which may be there for a while, as old ones are replaced by new ones. */
  readonly surge: number;
  readonly isSuspended: boolean;
}

export interface Tracked {
  /** What its pods belong to: itself, or what controls it. */
  readonly application: Application;
  /** Whether it is the application. */
  readonly isApplication: boolean;
  readonly need: Need;
  /** From how many objects the need was counted: Jobs of a CronJob. */
  readonly things: number;
  readonly template: SubnetTemplate;
  /** Among the parts and the pods of one application the greatest is the newest. */
  readonly rank: Rank;
  /** Of a Deployment: digest of the template that its controller has seen, or that no pod is older than; undefined: not known. */
  readonly observedDigest: string | undefined;
}

/** Revision, time of creation, name. */
export type Rank = readonly [revision: number, created: string, name: string];

/** Controllers of ReplicaSets count the versions in an annotation each of its own: `deployment.kubernetes.io/revision`. */
const REVISION = /\/revision$/;

export function rankOf({ annotations, created, name }: WorkloadMetadata): Rank {
  const revisions = Object.entries(annotations).flatMap(([key, text]) =>
    REVISION.test(key) && /^[0-9]{1,15}$/.test(text) ? [Number(text)] : [],
  );
  return [Math.max(0, ...revisions), created, name];
}

export function compareRanks(a: Rank, b: Rank): number {
  if (a[0] !== b[0]) return a[0] - b[0];
  if (a[1] !== b[1]) return a[1] < b[1] ? -1 : 1;
  return a[2] === b[2] ? 0 : a[2] < b[2] ? -1 : 1;
}
