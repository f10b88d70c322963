/**
 * Trims the metadata of objects that tenants write. An agent caches all pods of its node and all namespaces and
 * network definitions of the cluster, and each may have megabytes of labels, annotations and owners. The raw object
 * is trimmed before decoding: decoding thousands of entries would delay ADDs.
 */

import { MAX_ANNOTATION_LENGTH } from "../../config/annotations.ts";
import type { Part } from "../../lib/prune-json.ts";
import { MAX_ALLOCATION_TEXT } from "../member.ts";

/** Most labels of a pod that a pool with `podAffinity` can serve; no more are cached. @limit */
export const MAX_CACHED_LABELS = 128;

/** Most unknown annotations under `ipam.vendor.io/` whose names are cached per object. */
const MAX_CACHED_ANNOTATIONS = 32;

/** Most annotations of a large object that are decoded. */
export const MAX_PARSED_ENTRIES = 256;

/** The parts of the metadata of every kind that are read. */
export const IDENTITY_PARTS: Readonly<Record<string, Part>> = {
  name: "all",
  namespace: "all",
  uid: "all",
  resourceVersion: "all",
  generation: "all",
  creationTimestamp: "all",
  deletionTimestamp: "all",
};

/** The part of `ownerReferences` that {@link keepController} reads. */
export const CONTROLLER_PART: Part = { containing: '"controller":true' };

type Raw = Readonly<Record<string, unknown>>;

/**
 * Returns the object with the keys of its metadata replaced by those of `trim(metadata)`. Anything else is returned
 * as it is, for the schema to refuse.
 */
export function trimMetadata(object: unknown, trim: (metadata: Raw) => Raw): unknown {
  if (!isRaw(object) || !isRaw(object.metadata)) return object;
  return { ...object, metadata: { ...object.metadata, ...trim(object.metadata) } };
}

/**
 * Returns the annotations that are `read`, and of others below `prefix`, which are mistakes, the names. A value longer
 * than allowed is cut to one character more, so that decoding it fails.
 */
export function keepAnnotations(annotations: unknown, prefix: string, read: readonly string[]): unknown {
  if (!isRaw(annotations)) return annotations;
  const named = read.filter((key) => Object.hasOwn(annotations, key));
  const mistakes = Object.keys(annotations).filter((key) => key.startsWith(prefix) && !read.includes(key));
  return Object.fromEntries([
    ...named.map((key) => [key, detach(annotations[key], MAX_ANNOTATION_LENGTH + 1)]),
    ...mistakes.slice(0, MAX_CACHED_ANNOTATIONS).map((key) => [key, typeof annotations[key] === "string" ? "" : null]),
  ]);
}

/** Returns at most MAX_CACHED_LABELS labels: those named in `first`, then others. */
export function keepLabels(labels: unknown, first: readonly string[]): unknown {
  if (!isRaw(labels)) return labels;
  const keys = Object.keys(labels);
  if (keys.length <= MAX_CACHED_LABELS) return labels;
  const named = first.filter((key) => Object.hasOwn(labels, key));
  const chosen = [...named, ...keys.filter((key) => !named.includes(key))].slice(0, MAX_CACHED_LABELS);
  return Object.fromEntries(chosen.map((key) => [key, labels[key]]));
}

/** Returns the number of labels before trimming. */
export function countLabels(object: unknown): number {
  if (!isRaw(object) || !isRaw(object.metadata) || !isRaw(object.metadata.labels)) return 0;
  return Object.keys(object.metadata.labels).length;
}

/**
 * Returns only the owner that controls the object, if any. Texts are cut to one character more than any object's name
 * or UID has, so that they match none.
 */
export function keepController(owners: unknown): unknown {
  if (!Array.isArray(owners)) return owners;
  const controller: unknown = owners.find((owner) => isRaw(owner) && (owner.controller ?? false) !== false);
  if (!isRaw(controller)) return [];
  const keys = ["apiVersion", "kind", "name", "uid"];
  const texts = keys.map((key) => [key, detach(controller[key], MAX_ALLOCATION_TEXT + 1)]);
  return [{ ...Object.fromEntries(texts), controller: controller.controller }];
}

/** Returns the start of a text as a copy: a slice would keep the whole text in memory. */
function detach(text: unknown, most: number): unknown {
  return typeof text !== "string" || text.length <= most ? text : Buffer.from(text.slice(0, most)).toString();
}

function isRaw(value: unknown): value is Raw {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
