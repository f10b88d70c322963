/** Calls that the hooks of the Helm chart share: absence is an answer, and waiting has a deadline. */
import { setTimeout as sleep } from "node:timers/promises";
import { isNotFound, type KubeApi, type KubeObject } from "../kubernetes/kube-api.ts";
import { listPages } from "../kubernetes/list.ts";

const PAUSE_MS = 500;

/** Yields the objects of a collection, of which there may be many; none if its kind is not installed. */
export async function* listObjects(api: KubeApi, path: string, labelSelector?: string): AsyncGenerator<ListedObject> {
  try {
    for await (const { items } of listPages(api, { path, query: { labelSelector } }))
      yield* items as unknown as ListedObject[];
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

/** The fields of any object that the hooks read. */
export interface ListedObject {
  readonly metadata: { readonly name: string; readonly finalizers?: readonly string[] };
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: Readonly<Record<string, unknown>>;
}

/** Applies the object as its only writer, taking over the fields of others. */
export function applyObject(api: KubeApi, path: string, body: object): Promise<KubeObject> {
  const query = { fieldManager: "berth", force: true };
  return api.call({ method: "PATCH", path, query, body, contentType: "application/apply-patch+yaml" });
}

/** Resolves with true as soon as `isDone` says so, with false at the deadline (of `performance.now()`). */
export async function pollUntil(deadlineMs: number, isDone: () => Promise<boolean>): Promise<boolean> {
  for (;;) {
    if (await isDone()) return true;
    if (performance.now() + PAUSE_MS > deadlineMs) return false;
    await sleep(PAUSE_MS);
  }
}
