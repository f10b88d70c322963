/**
 * An API server in memory, for allocations and whatever else has a name: a fake of the port KubeApi. It compares preconditions and counts
 * versions as the real one does, and passes the same suites (test/unit/registry/kubernetes-registry.test.ts).
 * Effects: none; a {@link Gate} decides when a call is carried out and when it is answered.
 */
import { ApiError, type KubeApi, type KubeCall, type KubeObject } from "../../host/kubernetes/kube-api.ts";

export interface StoredObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly resourceVersion: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly finalizers?: readonly string[];
    readonly deletionTimestamp?: string;
  };
  readonly spec: Readonly<Record<string, unknown>>;
}

/** What became of one object. */
export interface Written {
  readonly before: StoredObject | undefined;
  readonly after: StoredObject | undefined;
}

/** Stands between a caller and the server. `commit` carries the call out and may be called at any time, also after the answer, but once. */
export type Gate = (call: KubeCall, commit: () => KubeObject) => Promise<KubeObject>;

const OBJECT = /^(?<collection>\/.*\/v1\/[a-z]+)(?:\/(?<name>[^/]+))?(?:\/status)?$/;

function refuse(status: number, reason: string, { method, path }: KubeCall): never {
  throw new ApiError({ status, reason, operation: `${method} ${path}`, message: `${method} ${path}: ${reason}` });
}

export class MemoryApiServer {
  readonly objects = new Map<string, StoredObject>();
  /** Told of each change, in order. */
  onWritten: (written: Written) => void = () => {};
  #version = 0;
  #lastUid = 0;

  /** The server as one client sees it. */
  client(gate: Gate = async (_call, commit) => commit()): KubeApi {
    return {
      call: (call) => gate(call, () => this.#carryOut(call)),
      watch: ({ signal }) =>
        new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
      close: async () => {},
    };
  }

  /** What nobody's precondition protects: somebody's `kubectl`. */
  edit(name: string, change: (spec: StoredObject["spec"]) => StoredObject["spec"]): void {
    const before = this.objects.get(name);
    if (before !== undefined) this.#store({ ...before, spec: change(before.spec) }, before);
  }

  remove(name: string): void {
    const before = this.objects.get(name);
    if (before === undefined) return;
    this.#version++;
    this.objects.delete(name);
    this.onWritten({ before, after: undefined });
  }

  #carryOut(call: KubeCall): KubeObject {
    const { collection = "", name } = OBJECT.exec(call.path)?.groups ?? {};
    if (!collection.endsWith("/ipallocations")) return {};
    switch (call.method) {
      case "GET":
        return name === undefined ? this.#list(call) : answer(this.objects.get(name) ?? refuse(404, "NotFound", call));
      case "POST":
        return this.#create(call);
      case "PUT":
        return this.#replace(call, name ?? "");
      case "DELETE":
        return this.#delete(call, name ?? "");
      case "PATCH":
        return refuse(405, "MethodNotAllowed", call);
    }
  }

  #create(call: KubeCall): KubeObject {
    const body = bodyOf(call);
    if (this.objects.has(body.metadata.name)) refuse(409, "AlreadyExists", call);
    return this.#store({ ...body, metadata: { ...body.metadata, uid: `u${++this.#lastUid}` } }, undefined);
  }

  #replace(call: KubeCall, name: string): KubeObject {
    const before = this.objects.get(name) ?? refuse(404, "NotFound", call);
    const body = bodyOf(call);
    if (!fits(before, body.metadata)) refuse(409, "Conflict", call);
    const { uid, finalizers, deletionTimestamp } = before.metadata;
    const kept = {
      uid,
      ...(finalizers === undefined ? {} : { finalizers }),
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    };
    return this.#store({ ...body, metadata: { ...body.metadata, ...kept } }, before);
  }

  #delete(call: KubeCall, name: string): KubeObject {
    const before = this.objects.get(name) ?? refuse(404, "NotFound", call);
    const { preconditions } = JSON.parse(JSON.stringify(call.body ?? {}));
    if (!fits(before, preconditions ?? {})) refuse(409, "Conflict", call);
    if (before.metadata.finalizers?.length) {
      const metadata = { ...before.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" };
      return this.#store({ ...before, metadata }, before);
    }
    this.remove(name);
    return { kind: "Status", status: "Success" };
  }

  #list(call: KubeCall): KubeObject {
    const { fieldSelector, labelSelector } = call.query ?? {};
    const found = [...this.objects.values()].filter(
      ({ metadata, spec }) =>
        matches(fieldSelector, (key) => spec[key.replace("spec.", "")]) &&
        matches(labelSelector, (key) => metadata.labels?.[key]),
    );
    const metadata = { resourceVersion: String(this.#version) };
    if (call.accept?.includes("as=Table") === true)
      return { kind: "Table", metadata, rows: found.map((each) => ({ cells: [each.metadata.name] })) };
    return { kind: "IPAllocationList", apiVersion: "ipam.vendor.io/v1", metadata, items: found.map(answer) };
  }

  #store(object: StoredObject, before: StoredObject | undefined): KubeObject {
    const after = { ...object, metadata: { ...object.metadata, resourceVersion: String(++this.#version) } };
    this.objects.set(after.metadata.name, after);
    this.onWritten({ before, after });
    return answer(after);
  }
}

function answer(object: StoredObject): KubeObject {
  return structuredClone({ ...object });
}

/** As it would come over the wire. */
function bodyOf({ body }: KubeCall): StoredObject {
  return JSON.parse(JSON.stringify(body));
}

function fits(
  { metadata }: StoredObject,
  { uid, resourceVersion }: { uid?: string; resourceVersion?: string },
): boolean {
  return (
    (uid ?? metadata.uid) === metadata.uid && (resourceVersion ?? metadata.resourceVersion) === metadata.resourceVersion
  );
}

function matches(selector: unknown, find: (key: string) => unknown): boolean {
  if (typeof selector !== "string") return true;
  return selector.split(",").every((term) => {
    const [key = "", value] = term.split("=");
    return find(key) === value;
  });
}
