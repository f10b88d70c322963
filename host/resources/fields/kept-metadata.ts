/**
 * What Berth keeps of the metadata of objects that tenants write. An agent holds all pods of its node and all namespaces and network definitions of the cluster,
 * and the API server lets each of them have megabytes of labels, annotations and owners. They are cut as they came, before a schema looks at each of them:
 * the schema takes longer for thousands of entries than JSON.parse, and meanwhile no ADD is answered.
 */
import { MAX_ANNOTATION_LENGTH } from "../../config/annotations.ts";
import { MAX_ALLOCATION_TEXT } from "../ip-allocation.ts";

/** Most labels of a pod that are kept. A pool's `podAffinity` is not judged for a pod with more, and such a pool does not serve it. @limit */
export const MAX_KEPT_LABELS = 128;

/** Most annotations under `ipam.vendor.io/` that are kept of one object: more than there are. @limit */
export const MAX_KEPT_ANNOTATIONS = 32;

type Raw = Readonly<Record<string, unknown>>;

/** The object with `cut(metadata)` in place of those keys of its metadata. What is no object stays for the schema to refuse. */
export function cutMetadata(object: unknown, cut: (metadata: Raw) => Raw): unknown {
  if (!isRaw(object) || !isRaw(object.metadata)) return object;
  return { ...object, metadata: { ...object.metadata, ...cut(object.metadata) } };
}

/** Those below `prefix`, and `others` by name. One that is longer than any that is read is cut to one character more than that, and refused for it when it is read. */
export function keepAnnotations(annotations: unknown, prefix: string, others: readonly string[]): unknown {
  if (!isRaw(annotations)) return annotations;
  const own = Object.keys(annotations).filter((key) => key.startsWith(prefix));
  const named = others.filter((key) => Object.hasOwn(annotations, key));
  const kept = [...named, ...own.slice(0, MAX_KEPT_ANNOTATIONS)];
  return Object.fromEntries(kept.map((key) => [key, detach(annotations[key], MAX_ANNOTATION_LENGTH + 1)]));
}

/** Those named by `first`, then others until there are MAX_KEPT_LABELS. */
export function keepLabels(labels: unknown, first: readonly string[]): unknown {
  if (!isRaw(labels)) return labels;
  const keys = Object.keys(labels);
  if (keys.length <= MAX_KEPT_LABELS) return labels;
  const named = first.filter((key) => Object.hasOwn(labels, key));
  const kept = [...named, ...keys.filter((key) => !named.includes(key))].slice(0, MAX_KEPT_LABELS);
  return Object.fromEntries(kept.map((key) => [key, labels[key]]));
}

/** How many labels the object came with. */
export function countLabels(object: unknown): number {
  if (!isRaw(object) || !isRaw(object.metadata) || !isRaw(object.metadata.labels)) return 0;
  return Object.keys(object.metadata.labels).length;
}

/** The one that controls the object, if any: nothing else among the owners is looked at. A text longer than any object's is cut, and is no object's. */
export function keepController(owners: unknown): unknown {
  if (!Array.isArray(owners)) return owners;
  const controller: unknown = owners.find((owner) => isRaw(owner) && (owner.controller ?? false) !== false);
  if (!isRaw(controller)) return [];
  const texts = ["apiVersion", "kind", "name", "uid"].map((key) => [key, detach(controller[key], MAX_ALLOCATION_TEXT + 1)]); // biome-ignore format: one thought
  return [{ ...Object.fromEntries(texts), controller: controller.controller }];
}

/** The beginning of a text as a text of its own: a slice would hold on to all of it. */
function detach(text: unknown, most: number): unknown {
  return typeof text !== "string" || text.length <= most ? text : Buffer.from(text.slice(0, most)).toString();
}

function isRaw(value: unknown): value is Raw {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
