/**
 * The API server's treatment of an object that is created, replaced, patched or deleted: the parts of metadata that
 * are its own, generations, finalizers, the status apart. Values in, values out; memory-api-server.ts stores them.
 * Held to a real server by test/unit/fakes/api-server-suite.ts.
 */
import { isDeepStrictEqual } from "node:util";
import { ApiError, type KubeCall, type KubeObject } from "../../host/kubernetes/kube-api.ts";

export interface StoredMetadata {
  readonly name: string;
  readonly namespace?: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation?: number;
  /** RFC 3339. */
  readonly creationTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly finalizers?: readonly string[];
  readonly deletionTimestamp?: string;
}

export interface StoredObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: StoredMetadata;
  readonly spec: Readonly<Record<string, unknown>>;
  readonly status?: Readonly<Record<string, unknown>>;
}

/** Some kinds have no specification: reading theirs is a mistake of the test. */
function asStored(object: KubeObject & { readonly metadata: StoredMetadata }): StoredObject {
  return object as KubeObject & StoredObject;
}

/** An object as it came over the wire: each part may be missing. */
export interface Sent {
  readonly metadata?: Partial<StoredMetadata>;
  readonly status?: Readonly<Record<string, unknown>>;
}

/** The seconds, as the server writes them. */
export function timeOf(ms: number): string {
  return new Date(ms).toISOString().replace(/\.[0-9]+Z$/, "Z");
}

export function refuse(status: number, reason: string, { method, path }: KubeCall): never {
  throw new ApiError({ status, reason, operation: `${method} ${path}`, message: `${method} ${path}: ${reason}` });
}

/** The body as it would come over the wire. */
export function bodyOf({ body }: KubeCall): KubeObject & Sent {
  return JSON.parse(JSON.stringify(body ?? {}));
}

/** Refuses with 409 when the preconditions are another object's, or an older version's. */
export function requireFit({ metadata }: StoredObject, wanted: Sent["metadata"], call: KubeCall): void {
  const { uid = metadata.uid, resourceVersion = metadata.resourceVersion } = wanted ?? {};
  if (uid !== metadata.uid || resourceVersion !== metadata.resourceVersion) refuse(409, "Conflict", call);
}

/** RFC 7396. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch;
  const merged: Record<string, unknown> = isRecord(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete merged[key];
    else merged[key] = mergePatch(merged[key], value);
  }
  return merged;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The written part of an object: the status, all but the status, or both for a kind without a separate one. */
export type Part = "status" | "rest" | "all";

/** A new object; its version is for the store to give. A status that is written apart cannot be created. */
export function created(
  body: KubeObject & Sent,
  uid: string,
  { part, nowMs, call }: { readonly part: Part; readonly nowMs: number; readonly call: KubeCall },
): StoredObject {
  const { status, ...others } = body;
  const rest = part === "all" && status !== undefined ? { ...others, status } : others;
  const { name, deletionTimestamp: __, ...metadata } = body.metadata ?? {};
  if (name === undefined) return refuse(422, "Invalid", call);
  const own = { name, uid, resourceVersion: "", generation: 1, creationTimestamp: timeOf(nowMs) };
  return asStored({ ...rest, metadata: { ...metadata, ...own } });
}

/**
 * The object after a write of `wanted`, a whole object. The same object: the write changes nothing, and gives no new
 * version.
 */
export function updated(before: StoredObject, wanted: KubeObject & Sent, part: Part, call: KubeCall): StoredObject {
  const { uid, resourceVersion = before.metadata.resourceVersion, deletionTimestamp } = wanted.metadata ?? {};
  requireFit(before, { resourceVersion }, call);
  if (part !== "status") {
    // It cannot be changed; a replacement's is a precondition, which its caller has checked before.
    if (uid !== undefined && uid !== before.metadata.uid) refuse(422, "Invalid", call);
    const isMarked = deletionTimestamp !== undefined && deletionTimestamp !== before.metadata.deletionTimestamp;
    if (isMarked) refuse(422, "Invalid", call);
  }
  const after = part === "status" ? withStatus(before, wanted.status) : replaced(before, wanted, part);
  const isSame = isDeepStrictEqual(after, before);
  if (isSame) return before;
  if (before.metadata.deletionTimestamp !== undefined) refuseNewFinalizers(before, after, call);
  const isOther = !isDeepStrictEqual(meaning(after, part), meaning(before, part));
  const generation = (before.metadata.generation ?? 1) + (isOther ? 1 : 0);
  return { ...after, metadata: { ...after.metadata, generation } };
}

function withStatus({ status: _, ...before }: StoredObject, status: StoredObject["status"]): StoredObject {
  return status === undefined ? before : { ...before, status };
}

/** All but the server's own fields, and a status that is written apart. */
function replaced(before: StoredObject, wanted: KubeObject & Sent, part: Part): StoredObject {
  const { uid, resourceVersion, name, generation, creationTimestamp, deletionTimestamp } = before.metadata;
  const {
    generation: _,
    creationTimestamp: __,
    deletionTimestamp: ___,
    finalizers,
    ...metadata
  } = wanted.metadata ?? {};
  const own = { name, uid, resourceVersion, generation, creationTimestamp, deletionTimestamp };
  const kept = Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined));
  const held = finalizers === undefined || finalizers.length === 0 ? {} : { finalizers };
  const whole = { ...wanted, metadata: { ...metadata, ...held, ...kept, name, uid, resourceVersion } };
  return part === "all" ? asStored(whole) : withStatus(asStored(whole), before.status);
}

function refuseNewFinalizers(before: StoredObject, after: StoredObject, call: KubeCall): void {
  const known = before.metadata.finalizers ?? [];
  if (after.metadata.finalizers?.some((name) => !known.includes(name))) refuse(422, "Invalid", call);
}

/** Returns the part whose changes a generation counts. */
function meaning({ metadata: _, status, ...rest }: StoredObject, part: Part): object {
  return part === "all" ? { ...rest, status } : rest;
}

/** Whom a finalizer keeps. Undefined: it goes at once. The same object: it is on its way already. */
export function deleted(before: StoredObject, nowMs: number): StoredObject | undefined {
  const { metadata } = before;
  if (!metadata.finalizers?.length) return undefined;
  if (metadata.deletionTimestamp !== undefined) return before;
  const generation = (metadata.generation ?? 1) + 1;
  return { ...before, metadata: { ...metadata, generation, deletionTimestamp: timeOf(nowMs) } };
}

interface Term {
  readonly key: string;
  readonly path: readonly string[];
  readonly isEqual: boolean;
  readonly value: string | undefined;
}

/** The terms of selectors that were asked for. There are as many as nodes at most. */
const terms = new Map<string, readonly Term[]>();

/** `metadata.name=a,spec.node!=n1`, `app=web` */
export function termsOf(selector: unknown): readonly Term[] {
  if (typeof selector !== "string") return [];
  return terms.getOrInsertComputed(selector, () => selector.split(",").map(readTerm));
}

function readTerm(text: string): Term {
  const [, key = "", operator, value] = /^(.+?)(!?=)(.*)$/.exec(text) ?? [];
  return { key, path: key.split("."), isEqual: operator === "=", value };
}

export function isSelected(selector: unknown, find: (key: string) => unknown): boolean {
  // A truth value that is absent is false.
  return termsOf(selector).every(({ key, isEqual, value }) => (String(find(key) ?? false) === value) === isEqual);
}

export function hasFields(object: StoredObject, selector: unknown): boolean {
  return termsOf(selector).every(({ path, isEqual, value }) => (fieldOf(object, path) === value) === isEqual);
}

/** As a selector compares it. */
export function fieldOf(object: StoredObject, path: Term["path"]): string {
  let value: unknown = object;
  for (const part of path) value = isRecord(value) ? value[part] : undefined;
  return String(value ?? false);
}
