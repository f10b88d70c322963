/**
 * The API server for a dry run: reads are real, and writes are sent with `dryRun=All`, so that the server admits or
 * refuses them and stores nothing. Written objects are remembered for later calls on the same object; lists do not
 * show it.
 */
import { ApiError, type KubeApi, type KubeCall, type KubeObject } from "./kube-api.ts";

/** Resource versions of objects that only the dry run has begin here: no server counts as far. */
const FIRST_VERSION = 2 ** 52;

interface Metadata {
  readonly name?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly deletionTimestamp?: string;
}

export class DryRunApi implements KubeApi {
  readonly #api: KubeApi;
  /** By path: the objects that the dry run created or changed, and undefined for those that it deleted. */
  readonly #written = new Map<string, KubeObject | undefined>();
  #lastVersion = FIRST_VERSION;

  constructor(api: KubeApi) {
    this.#api = api;
  }

  async call(call: KubeCall): Promise<KubeObject> {
    const path = call.method === "POST" ? `${call.path}/${metadataOf(call.body).name}` : call.path;
    return this.#written.has(path) ? this.#answer(call, path) : this.#ask(call, path);
  }

  watch(): Promise<void> {
    return Promise.reject(new Error("A dry run watches nothing"));
  }

  /** The server is the caller's. */
  async close(): Promise<void> {}

  async #ask(call: KubeCall, path: string): Promise<KubeObject> {
    if (call.method === "GET") return this.#api.call(call);
    const answer = await this.#api.call({ ...call, query: { ...call.query, dryRun: "All" } });
    if (call.method === "POST" || call.method === "PUT") return this.#store(path, answer);
    if (call.method === "DELETE" && metadataOf(answer).deletionTimestamp === undefined)
      this.#written.set(path, undefined);
    return answer;
  }

  /** As the server would, if it had stored the dry run's writes. */
  #answer(call: KubeCall, path: string): KubeObject {
    const object = this.#written.get(path);
    const { method, body } = call;
    if (method === "POST") {
      if (object !== undefined) throw refusal(409, "AlreadyExists", call);
      return this.#store(path, { ...body });
    }
    if (object === undefined) throw refusal(404, "NotFound", call);
    if (method === "GET") return object;
    const { preconditions } = (body ?? {}) as { readonly preconditions?: Metadata };
    const { uid, resourceVersion } = method === "DELETE" ? (preconditions ?? {}) : metadataOf(body);
    const now = metadataOf(object);
    const isSame = (uid ?? now.uid) === now.uid && (resourceVersion ?? now.resourceVersion) === now.resourceVersion;
    if (!isSame) throw refusal(409, "Conflict", call);
    if (method !== "DELETE") return this.#store(path, { ...object, ...body });
    this.#written.set(path, undefined);
    return { kind: "Status", status: "Success" };
  }

  #store(path: string, object: KubeObject): KubeObject {
    const { uid = `dry-run-${this.#lastVersion}`, ...metadata } = metadataOf(object);
    const stored = { ...object, metadata: { ...metadata, uid, resourceVersion: String(++this.#lastVersion) } };
    this.#written.set(path, stored);
    return stored;
  }
}

function metadataOf(object: unknown): Metadata {
  const { metadata } = (object ?? {}) as { readonly metadata?: Metadata };
  return metadata ?? {};
}

function refusal(status: number, reason: string, { method, path }: KubeCall): ApiError {
  const operation = `${method} ${path}`;
  return new ApiError({ status, reason, operation, message: `${operation}: ${reason}` });
}
