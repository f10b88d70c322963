/** Decodes the annotations of pods and namespaces. Precedence between them is in ipam/selection.ts. */
import * as z from "zod";
import { findClosest } from "../lib/closest.ts";
import { describeValue } from "../lib/describe.ts";
import { FAMILIES, type Family } from "../net/ip.ts";
import {
  type AnnotationSchema,
  NAMESPACE_ANNOTATIONS,
  POD_ANNOTATIONS,
  SERVICE_ANNOTATIONS,
} from "./annotation-schemas.ts";
import { ConfigError, decodeConfig, decodeJsonConfig } from "./config-error.ts";
import type { LabelSelector } from "./label-selector.ts";
import { decodeNetworkSelections, type NetworkSelection } from "./network-selection.ts";

/**
 * Longest annotation that Berth reads: UTF-16 units. Tenants write annotations, and the node's agent must not be
 * slowed down by them. @limit
 */
export const MAX_ANNOTATION_LENGTH = 16_384;

export const ANNOTATION_PREFIX = "ipam.vendor.io/";

/** The additional networks of a pod. */
export const NETWORKS_ANNOTATION = "k8s.v1.cni.cncf.io/networks";

/** The network of a pod's first NIC, if it is not the cluster's default. */
export const DEFAULT_NETWORK_ANNOTATION = "v1.multus-cni.io/default-network";

export const IPS_ANNOTATION = `${ANNOTATION_PREFIX}ips`;

export const RETAIN_ANNOTATION = `${ANNOTATION_PREFIX}retain`;

type Annotations = Readonly<Record<string, string>>;
type PodAnnotation<K extends keyof typeof POD_ANNOTATIONS> = z.output<(typeof POD_ANNOTATIONS)[K]["schema"]>;

/** Names in the order written. A list is never empty; a family without names is undefined. */
export type FamilyNames = PodAnnotation<"ippool">;

export type NicSubnets = PodAnnotation<"subnets">[number];

export type AnnotatedRoute = PodAnnotation<"routes">[number];

/** Pool names may be patterns (pattern.ts); subnet names may not. */
export interface PodAnnotations {
  readonly subnet?: FamilyNames | undefined;
  readonly subnets?: readonly NicSubnets[] | undefined;
  readonly ippool?: FamilyNames | undefined;
  /** Either every entry has an `interface` or none has; without it, the index is that of the NIC. */
  readonly ippools?: PodAnnotation<"ippools"> | undefined;
  /** For the pod, or by the names of pods of its template. */
  readonly ips?: PodAnnotation<"ips"> | undefined;
  readonly routes?: readonly AnnotatedRoute[] | undefined;
  readonly defaultRouteNic?: PodAnnotation<"default-route-nic"> | undefined;
  readonly ippoolIpNumber?: PodAnnotation<"ippool-ip-number"> | undefined;
  readonly ippoolReclaim?: boolean | undefined;
  readonly retain?: PodAnnotation<"retain"> | undefined;
  /** `k8s.v1.cni.cncf.io/networks`. */
  readonly networks?: readonly NetworkSelection[] | undefined;
  /** Why that cannot be read at all: all NICs but the first are refused. */
  readonly networksFault?: ConfigError | undefined;
  /** `v1.multus-cni.io/default-network`. */
  readonly defaultNetwork?: NetworkSelection | undefined;
}

function sourceOf(annotation: string): string {
  return `annotation ${describeValue(annotation)}`;
}

/**
 * Returns the keys of Berth's annotations that the object has. Throws ConfigError for an unknown one: it is misspelled,
 * or on the wrong kind of object.
 */
function ownKeys<K extends string>(
  annotations: Annotations,
  known: readonly K[],
  elsewhere: readonly string[],
  where: string,
): K[] {
  const names = Object.keys(annotations).filter((annotation) => annotation.startsWith(ANNOTATION_PREFIX));
  return names.map((annotation) => {
    const key = annotation.slice(ANNOTATION_PREFIX.length);
    const found = known.find((each) => each === key);
    if (found !== undefined) return found;
    const closest = findClosest(key, known);
    const wanted = elsewhere.includes(key)
      ? `it on a ${where}`
      : closest === undefined
        ? `one of ${known.map((name) => ANNOTATION_PREFIX + name).join(", ")}`
        : `"${ANNOTATION_PREFIX}${closest}"`;
    throw new ConfigError(sourceOf(annotation), [{ path: "", got: "an unknown annotation", wanted }]);
  });
}

function readText(annotations: Annotations, annotation: string): string | undefined {
  const text = annotations[annotation];
  if (text === undefined || text.length <= MAX_ANNOTATION_LENGTH) return text;
  const mismatch = { path: "", got: "a longer text", wanted: `at most ${MAX_ANNOTATION_LENGTH} characters` };
  throw new ConfigError(sourceOf(annotation), [mismatch]);
}

/** Returns the decoded value of an annotation that the object has. */
function readAnnotation(annotations: Annotations, key: string, { format, schema }: AnnotationSchema): unknown {
  const decodeText = format === "JSON" ? decodeJsonConfig : decodeConfig;
  return decodeText(schema, readText(annotations, ANNOTATION_PREFIX + key) ?? "", sourceOf(ANNOTATION_PREFIX + key));
}

/** The settings that decide whether the names of a family are read. */
export interface EnabledFamilies {
  readonly enableIPv4: boolean;
  readonly enableIPv6: boolean;
}

export function isEnabled(family: Family, { enableIPv4, enableIPv6 }: EnabledFamilies): boolean {
  return family === 4 ? enableIPv4 : enableIPv6;
}

/** The settings that decide which annotations, and which of their fields, take effect. */
export interface AnnotationRules extends EnabledFamilies {
  readonly enableSubnet: boolean;
}

export const ALL_ENABLED: AnnotationRules = { enableIPv4: true, enableIPv6: true, enableSubnet: true };

/** Replaces a disabled family's names unvalidated: the family counts as named, and its names are unused. */
const ignoredNames = (_key: string): unknown => ["ignored"];
/** The same for an address of the annotation `ips`. */
const ignoredIp = (key: string): unknown => (key === "ipv4" ? "0.0.0.0" : "::");

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns the object with a placeholder as the value of each of `keys` that it has. */
export function ignoreNames(value: unknown, keys: readonly string[], placeholderOf = ignoredNames): unknown {
  if (!isRecord(value)) return value;
  const ignored = keys.filter((key) => Object.hasOwn(value, key)).map((key) => [key, placeholderOf(key)] as const);
  return { ...value, ...Object.fromEntries(ignored) };
}

/** Returns the annotation's schema without validation of disabled families. */
function tolerant(key: string, annotation: AnnotationSchema, rules: AnnotationRules): AnnotationSchema {
  const disabled = FAMILIES.flatMap((family) => (isEnabled(family, rules) ? [] : `ipv${family}`));
  if (disabled.length === 0) return annotation;
  const ignore = (entry: unknown): unknown => ignoreNames(entry, disabled, key === "ips" ? ignoredIp : ignoredNames);
  const prepare = (value: unknown): unknown => (Array.isArray(value) ? value.map(ignore) : ignore(value));
  /** In `ips` an object has lists of entries by the names of pods. */
  const prepareAll = (value: unknown): unknown =>
    key === "ips" && isRecord(value)
      ? Object.fromEntries(Object.entries(value).map(([pod, list]) => [pod, prepare(list)]))
      : prepare(value);
  return { ...annotation, schema: z.preprocess(prepareAll, annotation.schema) };
}

const POD_KEYS = Object.keys(POD_ANNOTATIONS) as (keyof typeof POD_ANNOTATIONS)[];
const NAMESPACE_KEYS = Object.keys(NAMESPACE_ANNOTATIONS) as (keyof typeof NAMESPACE_ANNOTATIONS)[];
const SERVICE_KEYS = Object.keys(SERVICE_ANNOTATIONS);

/** Annotations that name pools, Subnets or addresses by family. */
const NAMING_KEYS: readonly string[] = ["subnet", "subnets", "ippool", "ippools", "ips"];

/** The values of annotations of Subnets that are present while Subnets are disabled. */
const WITHOUT_SUBNETS: Readonly<Record<string, unknown>> = {
  subnet: {},
  subnets: [],
  "ippool-ip-number": undefined,
  "ippool-reclaim": undefined,
};

/** Returns the field of {@link PodAnnotations}, and its value. */
function decodePodAnnotation(annotations: Annotations, key: keyof typeof POD_ANNOTATIONS, rules: AnnotationRules) {
  const field = key.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase());
  if (!rules.enableSubnet && Object.hasOwn(WITHOUT_SUBNETS, key)) return [field, WITHOUT_SUBNETS[key]];
  const annotation = POD_ANNOTATIONS[key];
  const schema = NAMING_KEYS.includes(key) ? tolerant(key, annotation, rules) : annotation;
  return [field, readAnnotation(annotations, key, schema)];
}

/**
 * Decodes a pod's annotations. Fields of disabled families are not validated, nor the annotations of Subnets if that
 * feature is disabled: the result only says that they are present. Throws ConfigError whose source is `annotation
 * "<key>"`. Faults of the annotations that Multus reads are in the result.
 */
export function decodePodAnnotations(annotations: Annotations, rules = ALL_ENABLED): PodAnnotations {
  const keys = ownKeys(annotations, POD_KEYS, NAMESPACE_KEYS, "namespace");
  const others = readNetworks(annotations, NETWORKS_ANNOTATION);
  const first = readNetworks(annotations, DEFAULT_NETWORK_ANNOTATION, 1);
  return {
    ...Object.fromEntries(keys.map((key) => decodePodAnnotation(annotations, key, rules))),
    networks: others instanceof ConfigError ? undefined : others,
    networksFault: others instanceof ConfigError ? others : undefined,
    defaultNetwork: first instanceof ConfigError ? { name: "", fault: first } : first?.[0],
  };
}

/** These annotations are not Berth's: a fault in one refuses the NICs that it concerns. */
function readNetworks(annotations: Annotations, annotation: string, most?: number) {
  if (annotations[annotation] === undefined) return undefined;
  try {
    return decodeNetworkSelections(readText(annotations, annotation) ?? "", sourceOf(annotation), most);
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
}

/** Decodes the default pools of a namespace. Those of a disabled family are not validated. Throws ConfigError. */
export function decodeNamespaceAnnotations(annotations: Annotations, rules = ALL_ENABLED): FamilyNames {
  const own = ownKeys(annotations, NAMESPACE_KEYS, POD_KEYS, "pod").map((key) => {
    const [family, isRead] = key === "default-ipv4-ippool" ? ["ipv4", rules.enableIPv4] : ["ipv6", rules.enableIPv6];
    return [family, isRead ? readAnnotation(annotations, key, NAMESPACE_ANNOTATIONS[key]) : ignoredNames(key)];
  });
  return Object.fromEntries(own);
}

/** Throws ConfigError for an annotation of Berth's that a Service with these `others` does not have. */
export function refuseUnknown(annotations: Annotations, others: readonly string[]): void {
  ownKeys(annotations, [...SERVICE_KEYS, ...others], POD_KEYS, "pod");
}

/** The pods of a Service: those that the selector selects, on the network of the definition `namespace/name`. */
export interface ServiceTarget {
  readonly network: string;
  readonly selector: LabelSelector;
}

/** Decodes a Service's annotations; returns undefined if it has neither. Throws ConfigError. */
export function decodeServiceAnnotations(annotations: Annotations): ServiceTarget | undefined {
  if (!SERVICE_KEYS.some((key) => Object.hasOwn(annotations, ANNOTATION_PREFIX + key))) return undefined;
  const read = <K extends keyof typeof SERVICE_ANNOTATIONS>(key: K) => {
    const annotation = ANNOTATION_PREFIX + key;
    const { schema } = SERVICE_ANNOTATIONS[key];
    return decodeConfig(schema, readText(annotations, annotation), sourceOf(annotation)) as z.output<
      (typeof SERVICE_ANNOTATIONS)[K]["schema"]
    >;
  };
  return { network: read("service-network"), selector: read("service-selector") };
}

interface FamilyRules extends EnabledFamilies {
  readonly allowSingleFamily: boolean;
}

/**
 * Throws ConfigError unless `entry` names every enabled family, or one enabled family where `allowSingleFamily` is set.
 * `path` is the entry's place in the annotation: "" or `[1]`.
 */
export function requireFamilies(annotation: string, path: string, entry: FamilyNames, rules: FamilyRules): void {
  const families = FAMILIES.filter((family) => isEnabled(family, rules));
  const missing = families.filter((family) => entry[`ipv${family}`] === undefined);
  const isHalf = missing.length < families.length;
  const [first] = missing;
  if (first === undefined || (rules.allowSingleFamily && isHalf)) return;
  const fieldOf = (family: Family) => (path === "" ? `ipv${family}` : `${path}.ipv${family}`);
  const reasons = missing.map((each) => `field "${fieldOf(each)}" is required because enableIPv${each} is true`);
  const mismatch = { path: fieldOf(first), got: "nothing", wanted: "a list of names" };
  const remedy = isHalf ? "; name both families, or set allowSingleFamily: true in vendor-conf" : "";
  const text = reasons.join(rules.allowSingleFamily ? ", or " : "; ");
  throw new ConfigError(sourceOf(annotation), [mismatch], `${text}${remedy}`);
}
