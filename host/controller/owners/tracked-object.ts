/** The controller's cache entry of an object whose pods name Subnets: a workload, a part of one, or a pod. */
import {
  ANNOTATION_PREFIX,
  type AnnotationRules,
  decodePodAnnotations,
  type FamilyNames,
  NETWORKS_ANNOTATION,
  type NicSubnets,
} from "../../config/annotations.ts";
import { ConfigError } from "../../config/config-error.ts";
import { definitionOf, META_NAMESPACE, nicNameOf } from "../../config/network-selection.ts";
import { DEFAULT_POOL_NUMBER, type PoolNumber } from "../../config/pool-number.ts";
import { compareText } from "../../lib/order.ts";
import type { PoolOwner } from "../../resources/fields/subnet-pool.ts";
import { readAnnotations } from "../../resources/pod.ts";
import type { WorkloadMetadata } from "../../resources/workloads/template.ts";
import type { DemandSettings } from "../types.ts";

/** A pod template's statement about Subnets, or the reason why it is invalid: a sentence without a full stop. */
export type SubnetTemplate =
  | {
      readonly kind: "requests";
      readonly subnet: FamilyNames | undefined;
      /** Takes precedence over `subnet`. */
      readonly subnets: readonly NicSubnets[] | undefined;
      /** The NetworkAttachmentDefinition of the first NIC, `namespace/name`, if the template names one. */
      readonly first: string | undefined;
      /** The other NICs. */
      readonly others: readonly { readonly ifName: string; readonly attachment: string }[];
      readonly number: PoolNumber;
      readonly reclaim: boolean;
    }
  | {
      readonly kind: "fault";
      readonly message: string;
      /** The source annotations: other settings may permit them. */
      readonly of?: { readonly namespace: string; readonly annotations: Readonly<Record<string, string>> };
    };

export interface Need {
  readonly unit: "replica" | "node" | "pod" | "parallelism";
  readonly count: number;
  /** Additional pods during a rollout. */
  readonly surge: number;
  readonly isSuspended: boolean;
  /** Whether a pod is replaced before it has ended. */
  readonly overlaps: boolean;
}

export interface TrackedObject {
  /** The owner of its pods: the object itself, or its controller. */
  readonly application: PoolOwner;
  /** Whether the object is the workload itself. */
  readonly isOwner: boolean;
  readonly need: Need;
  /** Number of objects behind the need: Jobs of a CronJob. */
  readonly objectCount: number;
  readonly template: SubnetTemplate;
  /** Among the parts or pods of one workload the greatest is the newest. */
  readonly rank: Rank;
  /**
   * For a Deployment, the digest of the template that its controller has seen, or that no pod is older than; undefined:
   * unknown.
   */
  readonly observedDigest: string | undefined;
  /** A pod that is being deleted, of any kind of workload. */
  readonly isEnding?: boolean;
}

/** Returns the reduced entry for lack of room: the workload keeps its pools, and gets no other. */
export function withoutTemplate(object: TrackedObject): TrackedObject {
  const message =
    "Its annotations are not used, to save memory of the controller, whose problems say which namespace holds most";
  return { ...object, template: { kind: "fault", message } };
}

/** Revision, creation time, name. */
type Rank = readonly [revision: number, created: string, name: string];

/** Each controller of ReplicaSets counts versions in an annotation of its own: `deployment.kubernetes.io/revision`. */
const REVISION = /\/revision$/;

export function rankOf({ annotations, created, name }: WorkloadMetadata): Rank {
  const revisions = Object.entries(annotations).flatMap(([key, text]) =>
    REVISION.test(key) && /^[0-9]{1,15}$/.test(text) ? [Number(text)] : [],
  );
  return [Math.max(0, ...revisions), created, name];
}

export function compareRanks(a: Rank, b: Rank): number {
  return a[0] - b[0] || compareText(a[1], b[1]) || compareText(a[2], b[2]);
}

/** Most NICs of a workload's pods for which pools are generated. */
const MAX_APPLICATION_NICS = 32;

type Annotations = Readonly<Record<string, string>>;

const SUBNET = `${ANNOTATION_PREFIX}subnet`;
const SUBNETS = `${ANNOTATION_PREFIX}subnets`;

/** Takes the annotations of an object that is not decoded yet. */
export function namesSubnets(annotations: unknown): boolean {
  if (typeof annotations !== "object" || annotations === null) return false;
  return Object.hasOwn(annotations, SUBNET) || Object.hasOwn(annotations, SUBNETS);
}

/** Reads the annotations with the settings, which may disable a family. Returns a valid template unchanged. */
export function applySettings(template: SubnetTemplate, settings: DemandSettings): SubnetTemplate {
  if (template.kind === "requests" || template.of === undefined) return template;
  return readTemplate(template.of.namespace, template.of.annotations, { ...settings, enableSubnet: true });
}

/** Reads the annotations of pods in `namespace`. `rules`: by default whatever the settings. */
export function readTemplate(namespace: string, annotations: Annotations, rules?: AnnotationRules): SubnetTemplate {
  try {
    return decodeTemplate(namespace, annotations, rules);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return { kind: "fault", message: error.message, of: { namespace, annotations: readAnnotations(annotations) } };
  }
}

function decodeTemplate(home: string, annotations: Annotations, rules?: AnnotationRules): SubnetTemplate {
  const decoded = decodePodAnnotations(annotations, rules);
  const { subnet, subnets, networks = [], defaultNetwork: first, ippoolIpNumber, ippoolReclaim } = decoded;
  if (subnets !== undefined) limit(SUBNETS, subnets.length);
  else limit(NETWORKS_ANNOTATION, networks.length + 1);
  return {
    kind: "requests",
    subnet,
    subnets,
    first: first && definitionOf(first, META_NAMESPACE),
    others: networks.flatMap((each, index) =>
      each.fault === undefined ? [{ ifName: nicNameOf(each, index), attachment: definitionOf(each, home) }] : [],
    ),
    number: ippoolIpNumber ?? DEFAULT_POOL_NUMBER,
    reclaim: ippoolReclaim ?? true,
  };
}

function limit(annotation: string, nics: number): void {
  if (nics <= MAX_APPLICATION_NICS) return;
  const mismatch = { path: "", got: `${nics} NICs`, wanted: `at most ${MAX_APPLICATION_NICS}` };
  throw new ConfigError(`annotation "${annotation}"`, [mismatch]);
}
