/**
 * What all resources share: the metadata of Kubernetes objects as far as Berth reads it, and the frame of its own kinds.
 * Called by every resource. Other metadata passes; a slip of a key that is read does not, unless an API server has let it pass.
 */
import { z } from "zod";
import { decodeConfig } from "../../config/config-error.ts";
import { objectName } from "../../config/fields/names.ts";
import type { Labels } from "../../config/label-selector.ts";
import { refuseSlips, textMap } from "../../lib/schema.ts";

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
  ownerReferences: z
    .array(ownerReference)
    .nullish()
    .transform((owners) => owners ?? []),
  creationTimestamp: z.string().optional().catch(undefined),
  deletionTimestamp: z.string().nullish(),
});

const METADATA_KEYS = Object.keys(metadataKeys.shape);

export const metadata = metadataKeys.transform((metadata, context) => {
  if (!isServed(metadata)) refuseSlips(metadata, METADATA_KEYS, context);
  const { name, namespace, uid, resourceVersion, labels, annotations, ownerReferences } = metadata;
  const { creationTimestamp, deletionTimestamp } = metadata;
  const times = { creationTimestamp, deletionTimestamp };
  return { name, namespace, uid, resourceVersion, labels, annotations, ownerReferences, ...times };
});

/** An API server has the object: it knows each key, also one that is new to us and looks like a slip of another. */
export function isServed({ resourceVersion }: { readonly resourceVersion?: string | undefined }): boolean {
  return resourceVersion !== undefined && resourceVersion !== "";
}

export type Metadata = z.output<typeof metadata>;

/** The API group and version of Berth's own kinds. */
export const API_VERSION = "ipam.vendor.io/v1";

/** Where they stand in the API server: `${API_PATH}/ippools`. */
export const API_PATH = `/apis/${API_VERSION}`;

/** An object of Berth's own: nothing but these keys, the status whatever it is. */
export function berthObject<K extends string, S extends z.ZodType>(kind: K, spec: S) {
  return z.strictObject({
    apiVersion: z.literal(API_VERSION),
    kind: z.literal(kind),
    metadata,
    spec,
    status: z.unknown().optional(),
  });
}

/**
 * Like decodeConfig for an object of Berth's own. A key whose value is null is one that is absent: the API server drops it before it looks.
 */
export function decodeBerth<S extends z.ZodType>(schema: S, value: unknown, source: string): z.output<S> {
  return decodeConfig(schema, withoutNulls(value), source);
}

function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([, inner]) => inner !== null);
  return Object.fromEntries(entries.map(([key, inner]) => [key, withoutNulls(inner)]));
}

/** It has a deletionTimestamp. */
export function isDeleting(object: Pick<Metadata, "deletionTimestamp">): boolean {
  return object.deletionTimestamp != null;
}
