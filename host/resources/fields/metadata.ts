/**
 * The metadata of Kubernetes objects that Berth reads, and the outer schema of its own kinds. Unknown metadata is
 * accepted; likely misspellings are not.
 */
import * as z from "zod";
import { decodeConfig } from "../../config/config-error.ts";
import { objectName } from "../../config/fields/names.ts";
import type { Labels } from "../../config/label-selector.ts";
import { orDefault, refuseSlips, textMap } from "../../lib/schema.ts";

/** An empty `labels:` is null in YAML. */
const texts = textMap()
  .nullish()
  .transform((value): Labels => value ?? {});

const ownerReference = z
  .object({
    apiVersion: z.string(),
    kind: z.string(),
    name: z.string(),
    uid: z.string(),
    controller: z.boolean().nullish(),
  })
  .transform((owner) => ({ ...owner, controller: owner.controller ?? false }));

export type OwnerReference = Readonly<z.output<typeof ownerReference>>;

const metadataKeys = z.looseObject({
  name: objectName,
  namespace: z.string().optional(),
  uid: z.string().optional(),
  resourceVersion: z.string().optional(),
  labels: texts,
  annotations: texts,
  ownerReferences: orDefault(z.array(ownerReference), []),
  generation: z.number().optional().catch(undefined),
  creationTimestamp: z.string().optional().catch(undefined),
  deletionTimestamp: z.string().nullish(),
});

const METADATA_KEYS = Object.keys(metadataKeys.shape);

export const metadata = metadataKeys.transform((metadata, context) => {
  if (!isServed(metadata)) refuseSlips(metadata, METADATA_KEYS, context);
  const { name, namespace, uid, resourceVersion, labels, annotations, ownerReferences } = metadata;
  const { generation, creationTimestamp, deletionTimestamp } = metadata;
  const times = { generation, creationTimestamp, deletionTimestamp };
  return { name, namespace, uid, resourceVersion, labels, annotations, ownerReferences, ...times };
});

/** Returns whether an API server checked the object's keys: a likely misspelling may then be a newer key. */
export function isServed({ resourceVersion }: { readonly resourceVersion?: string | undefined }): boolean {
  return resourceVersion !== undefined && resourceVersion !== "";
}

type Metadata = z.output<typeof metadata>;

/** The API group and version of Berth's own kinds. */
export const API_VERSION = "ipam.vendor.io/v1";

/** Path of Berth's API group in the API server; `${API_PATH}/ippools` is a collection. */
export const API_PATH = `/apis/${API_VERSION}`;

/** Returns the schema of one of Berth's kinds. Other keys are refused; the status is not checked. */
export function berthObject<K extends string, S extends z.ZodType>(kind: K, spec: S) {
  return z.strictObject({
    apiVersion: z.literal(API_VERSION),
    kind: z.literal(kind),
    metadata,
    spec,
    status: z.unknown().optional(),
  });
}

/** Like decodeConfig, for Berth's own kinds. A key whose value is null counts as absent, as in the API server. */
export function decodeBerth<S extends z.ZodType>(schema: S, value: unknown, source: string): z.output<S> {
  return decodeConfig(schema, withoutNulls(value), source);
}

/** Returns the value without keys whose value is null, at any depth; itself if it has none. */
export function withoutNulls(value: unknown): unknown {
  return hasNull(value) ? copyWithoutNulls(value) : value;
}

/** Objects of the API server are decoded for each pod, and have none. */
function hasNull(value: unknown): boolean {
  if (typeof value !== "object") return false;
  return value === null || Object.values(value).some(hasNull);
}

function copyWithoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copyWithoutNulls);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([, inner]) => inner !== null);
  return Object.fromEntries(entries.map(([key, inner]) => [key, copyWithoutNulls(inner)]));
}

/** Returns whether the object has a deletionTimestamp. */
export function isDeleting(object: Pick<Metadata, "deletionTimestamp">): boolean {
  return object.deletionTimestamp != null;
}
