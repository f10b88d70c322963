/**
 * What Berth keeps of the metadata of objects that tenants write. An agent holds all pods of its node and all namespaces and network definitions of the cluster,
 * and the API server lets each of them have megabytes of labels, annotations and owners.
 * Called by the decoders of pods and namespaces.
 * Effects: none.
 */
import { MAX_ANNOTATION_LENGTH } from "../../config/limits.ts";
import { MAX_ALLOCATION_TEXT, MAX_KEPT_ANNOTATIONS, MAX_KEPT_LABELS } from "../limits.ts";
import type { OwnerReference } from "./metadata.ts";

type Texts = Readonly<Record<string, string>>;

/** Those below `prefix`, and `others` by name. One that is longer than any that is read is cut to one character more than that, and refused for it when it is read. */
export function keepAnnotations(annotations: Texts, prefix: string, others: readonly string[]): Texts {
  const own = Object.keys(annotations).filter((key) => key.startsWith(prefix));
  const named = others.filter((key) => Object.hasOwn(annotations, key));
  const kept = [...named, ...own.slice(0, MAX_KEPT_ANNOTATIONS)];
  return Object.fromEntries(kept.map((key) => [key, detach(annotations[key] ?? "", MAX_ANNOTATION_LENGTH + 1)]));
}

/** Those named by `first`, then others until there are MAX_KEPT_LABELS. */
export function keepLabels(labels: Texts, first: readonly string[]): Texts {
  const keys = Object.keys(labels);
  if (keys.length <= MAX_KEPT_LABELS) return labels;
  const named = first.filter((key) => Object.hasOwn(labels, key));
  const kept = [...named, ...keys.filter((key) => !named.includes(key))].slice(0, MAX_KEPT_LABELS);
  return Object.fromEntries(kept.map((key) => [key, labels[key] ?? ""]));
}

/** The one that controls the object, if any: nothing else among the owners is looked at. A text longer than any object's is cut, and is no object's. */
export function keepController(owners: readonly OwnerReference[]): OwnerReference[] {
  const controller = owners.find((owner) => owner.controller);
  if (controller === undefined) return [];
  const { apiVersion, kind, name, uid } = controller;
  const short = (text: string): string => detach(text, MAX_ALLOCATION_TEXT + 1);
  return [{ apiVersion: short(apiVersion), kind: short(kind), name: short(name), uid: short(uid), controller: true }];
}

/** The beginning of a text as a text of its own: a slice would hold on to all of it. */
function detach(text: string, most: number): string {
  return text.length <= most ? text : Buffer.from(text.slice(0, most)).toString();
}
