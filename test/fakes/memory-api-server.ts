/**
 * An API server in memory, for allocations and whatever else has a name: a fake of the port KubeApi. It compares
 * preconditions, counts versions and notifies its watches as the real one does, and passes the same suites
 * (test/unit/fakes/api-server-suite.ts, and test/unit/registry/kubernetes-registry.test.ts). An {@link Admission}
 * refuses, defaults and prunes; without one, all writes pass unchanged.
 * Effects: none; a {@link Gate} decides when a call is carried out and when it is answered, a {@link Delivery} when a
 * watch delivers.
 */
import {
  ApiError,
  ApiUnavailable,
  type KubeApi,
  type KubeCall,
  type KubeObject,
  type KubeWatch,
  type WatchEvent,
} from "../../host/kubernetes/kube-api.ts";
import { ADMINISTRATOR, ADMITS_ALL, type Admission, type Writer } from "./admission/admission.ts";
import {
  bodyOf,
  created,
  deleted,
  fieldOf,
  hasFields,
  isSelected,
  mergePatch,
  type Part,
  refuse,
  requireFit,
  type StoredObject,
  termsOf,
  updated,
} from "./memory-objects.ts";

export type { StoredObject } from "./memory-objects.ts";

/** A change of one object. */
export interface Written {
  /** Path of its collection. */
  readonly collection: string;
  readonly before: StoredObject | undefined;
  readonly after: StoredObject | undefined;
}

type Change = Omit<Written, "collection">;

/**
 * Stands between a caller and the server. `commit` carries the call out and may be called at any time, also after the
 * answer, but once.
 */
export type Gate = (call: KubeCall, commit: () => KubeObject) => Promise<KubeObject>;

/** The server cannot be reached. */
export const unreachable: Gate = () => Promise.reject(new ApiUnavailable("GET /", "No connection"));

/**
 * Stands between the server and a watch of the collection `path`: `deliver` passes the event on, and is called in
 * order.
 */
export type Delivery = (path: string, deliver: () => void, event: WatchEvent) => void;

/**
 * Paths of collections, with the kind and version of their objects, and another path of the same list: that of all
 * namespaces, of which several may have it.
 */
export type Served = Readonly<
  Record<string, { readonly apiVersion: string; readonly kind: string; readonly everywhere?: string }>
>;

/** Lets calls to these paths wait until `release`, or until their caller gives up. */
export class HeldCalls {
  readonly paths: Set<string>;
  #released = Promise.withResolvers<void>();

  constructor(...paths: string[]) {
    this.paths = new Set(paths);
  }

  readonly gate: Gate = async ({ path, signal }, commit) => {
    if (!this.paths.has(path)) return commit();
    const ended = Promise.withResolvers<never>();
    const end = (): void => ended.reject(signal?.reason);
    signal?.addEventListener("abort", end);
    await Promise.race([this.#released.promise, ended.promise]);
    signal?.removeEventListener("abort", end);
    return commit();
  };

  release(): void {
    this.paths.clear();
    this.#released.resolve();
  }
}

export const ALLOCATIONS = "/apis/ipam.vendor.io/v1/ipallocations";

const ONLY_ALLOCATIONS: Served = { [ALLOCATIONS]: { apiVersion: "ipam.vendor.io/v1", kind: "IPAllocation" } };

interface Watching extends KubeWatch {
  readonly delivery: Delivery;
}

interface Collection {
  readonly path: string;
  readonly objects: Map<string, StoredObject>;
  /** All that has happened to it since the last compaction, with the versions. */
  readonly history: (Written & { readonly version: number })[];
  readonly watches: Set<Watching>;
  /** By field, `spec.nodeName`, of those that lists have selected by. */
  readonly indexes: Map<string, FieldIndex>;
}

/** The names of the objects with each value of a field. */
interface FieldIndex {
  readonly path: readonly string[];
  readonly names: Map<string, Set<string>>;
}

/** Most restores whose versions are told apart. */
const HISTORIES = 16;

/** A list of fewer objects looks at all of them. */
const INDEXED_OBJECTS = 1_000;

export interface MemoryApiServerOptions {
  /** Calls to other collections are answered with nothing. Default: allocations only. */
  readonly serves?: Served;
  /** Every other path is a collection, too, empty at first. */
  readonly isOpen?: boolean;
  /** Wall clock, for time stamps. */
  readonly nowMs?: () => number;
  /** Default: admits all. */
  readonly admission?: Admission;
}

export class MemoryApiServer {
  /** The allocations. */
  readonly objects: Map<string, StoredObject>;
  /** Told of each change, in order, before any watch is. */
  onWritten: (written: Written) => void = () => {};
  /** Most objects on a page of a list, whatever its limit. */
  maxPage = Number.POSITIVE_INFINITY;
  readonly #serves: Served;
  readonly #isOpen: boolean;
  readonly #nowMs: () => number;
  readonly #admission: Admission;
  readonly #collections = new Map<string, Collection>();
  /**
   * Lists of which pages were read, by the continue token: later pages are of the same moment. `items`: all of the
   * list; `start`: of the next page.
   */
  readonly #rests = new Map<
    string,
    { readonly version: number; readonly items: readonly StoredObject[]; readonly start: number }
  >();
  #version = 0;
  #restores = 0;
  /** Watches begin at this version or a later one. */
  #compacted = 0;
  #lastUid = 0;
  #lastRest = 0;
  /** Whose call is carried out. */
  #writer = ADMINISTRATOR;

  constructor({
    serves = ONLY_ALLOCATIONS,
    isOpen = false,
    nowMs = () => Date.UTC(2026, 0, 1),
    admission = ADMITS_ALL,
  }: MemoryApiServerOptions = {}) {
    this.#serves = serves;
    this.#admission = admission;
    this.#isOpen = isOpen;
    this.#nowMs = nowMs;
    for (const path of Object.keys({ ...serves, ...ONLY_ALLOCATIONS })) this.#serve(path);
    this.objects = this.#collection(ALLOCATIONS).objects;
  }

  /** The server as one client sees it. */
  client(
    gate: Gate = async (_call, commit) => commit(),
    delivery: Delivery = (_path, deliver) => queueMicrotask(deliver),
    writer = ADMINISTRATOR,
  ): KubeApi {
    return {
      call: async (call) => {
        try {
          return await gate(call, () => this.#commit(call, writer));
        } catch (error) {
          if (!(error instanceof ApiError)) call.onUnanswered?.();
          throw error;
        }
      },
      watch: (watch) => this.#watch({ ...watch, delivery }),
    };
  }

  /** Number of open watches. */
  get watches(): number {
    return new Set([...this.#collections.values()].flatMap(({ watches }) => [...watches])).size;
  }

  /** The objects of a collection that is served, by name. */
  collection(path: string): ReadonlyMap<string, StoredObject> {
    return this.#collection(path).objects;
  }

  /** A write without a precondition, as by `kubectl` or from a backup. */
  put(path: string, name: string, object: object): StoredObject {
    const collection = this.#collection(path);
    const { metadata, ...rest } = Object(object);
    const { everywhere: _, ...type } = { everywhere: "", ...this.#serves[path] };
    const uid = collection.objects.get(name)?.metadata.uid ?? `uid-${name}`;
    const whole = { ...type, ...rest, metadata: { uid, ...metadata, name } } as StoredObject;
    const stored = this.#admission.shape(path, whole, false);
    this.#admit(collection, { before: collection.objects.get(name), after: stored });
    this.#store(collection, stored);
    return collection.objects.get(name) as StoredObject;
  }

  /** A write without a precondition, as by `kubectl`, to an allocation. */
  edit(name: string, change: (spec: StoredObject["spec"]) => StoredObject["spec"]): void {
    const before = this.objects.get(name);
    if (before !== undefined) this.put(ALLOCATIONS, name, { ...before, spec: change(before.spec) });
  }

  /** Whatever its finalizers, and whatever policies say. */
  remove(name: string, path = ALLOCATIONS): void {
    const before = this.#collection(path).objects.get(name);
    if (before !== undefined) this.#remove(this.#collection(path), before);
  }

  /**
   * Forgets all events so far, as after five minutes: a watch from there, and the rest of a list, are refused with
   * 410.
   */
  compact(): void {
    this.compactTo(this.#version);
  }

  /** Forgets the events up to this version. */
  compactTo(version: number): void {
    this.#compacted = Math.max(this.#compacted, version);
    for (const [token, rest] of this.#rests) if (rest.version <= version) this.#rests.delete(token);
    for (const { history } of this.#collections.values()) {
      const kept = history.findIndex((written) => written.version > version);
      history.splice(0, kept < 0 ? history.length : kept);
    }
  }

  /** Version of the last write. */
  get version(): number {
    return this.#version;
  }

  /** A copy of all objects as they are now, as etcd's backup. */
  snapshot(): ReadonlyMap<string, ReadonlyMap<string, StoredObject>> {
    return new Map([...this.#collections].map(([path, { objects }]) => [path, new Map(objects)]));
  }

  /**
   * These collections (default: all) become as in the copy: later writes are lost, and no watch hears of it. Versions
   * go back, too, and are given again; a watch from one that is not reached yet is silent. Break the open ones.
   */
  restore(copy: ReturnType<MemoryApiServer["snapshot"]>, paths: Iterable<string> = copy.keys()): void {
    this.compact();
    const versions = [...copy.values()].flatMap((objects) => [...objects.values()].map(versionOf));
    this.#version = Math.max(0, ...versions);
    this.#restores++;
    this.#compacted = this.#version;
    for (const path of paths) {
      const { objects, indexes } = this.#collection(path);
      objects.clear();
      indexes.clear();
      for (const [name, object] of copy.get(path) ?? []) objects.set(name, object);
    }
  }

  #serve(path: string): Collection {
    const collection = { path, objects: new Map(), history: [], watches: new Set<Watching>(), indexes: new Map() };
    this.#collections.set(path, collection);
    return collection;
  }

  #collection(path: string): Collection {
    const [found] = this.#collectionsAt(path);
    if (found === undefined) throw new Error(`The fake serves no ${path}`);
    return found;
  }

  /** One, or those of all namespaces that have this path. */
  #collectionsAt(path: string): Collection[] {
    const own = this.#collections.get(path);
    if (own !== undefined) return [own];
    const all = Object.entries(this.#serves).flatMap(([each, { everywhere }]) =>
      everywhere === path ? (this.#collections.get(each) ?? []) : [],
    );
    return all.length > 0 || !this.#isOpen ? all : [this.#serve(path)];
  }

  /** The one whose list is asked for, else the innermost that has the path. */
  #collectionOf({ method, path, query }: KubeCall): Collection | undefined {
    const all = [...this.#collections.values()];
    const whole = all.find((each) => path === each.path || path === this.#serves[each.path]?.everywhere);
    if (whole !== undefined || (this.#isOpen && method === "GET" && query?.limit !== undefined))
      return whole ?? this.#serve(path);
    const [inner] = all
      .filter((each) => path.startsWith(`${each.path}/`))
      .toSorted((a, b) => b.path.length - a.path.length);
    return inner;
  }

  #commit(call: KubeCall, writer: Writer): KubeObject {
    this.#writer = writer;
    try {
      return this.#carryOut(call);
    } finally {
      this.#writer = ADMINISTRATOR;
    }
  }

  #carryOut(call: KubeCall): KubeObject {
    const collection = this.#collectionOf(call);
    if (collection === undefined) return {};
    const isList = call.path === this.#serves[collection.path]?.everywhere;
    const [name, part] = isList ? [] : call.path.slice(collection.path.length + 1).split("/");
    if (name === undefined || name === "")
      return call.method === "GET" ? this.#list(this.#collectionsAt(call.path), call) : this.#create(collection, call);
    const hasStatus = this.#admission.hasStatus(collection.path);
    if (part !== undefined && (part !== "status" || !hasStatus)) refuse(404, "NotFound", call);
    const written = part ?? (hasStatus ? "rest" : "all");
    const before = collection.objects.get(name) ?? refuse(404, "NotFound", call);
    switch (call.method) {
      case "GET":
        return answer(before);
      case "PUT": {
        const body = bodyOf(call);
        // Some kinds are replaced only by writers that name the version they replace.
        if (body.metadata?.resourceVersion === undefined) refuse(422, "Invalid", call);
        requireFit(before, body.metadata, call);
        return this.#update(collection, before, { wanted: body, part: written, call });
      }
      case "PATCH": {
        const wanted = Object(mergePatch(before, bodyOf(call)));
        return this.#update(collection, before, { wanted, part: written, call });
      }
      case "DELETE":
        return this.#delete(collection, before, call);
      case "POST":
        return refuse(405, "MethodNotAllowed", call);
    }
  }

  #create(collection: Collection, call: KubeCall): KubeObject {
    const body = this.#shape(collection, { ...this.#serves[collection.path], ...bodyOf(call) }, call);
    const part = this.#admission.hasStatus(collection.path) ? "rest" : "all";
    const object = created(body, `u${++this.#lastUid}`, { part, nowMs: this.#nowMs(), call });
    this.#admit(collection, { before: undefined, after: object });
    if (collection.objects.has(object.metadata.name)) refuse(409, "AlreadyExists", call);
    return this.#store(collection, object);
  }

  #shape<T extends object>({ path }: Collection, object: T, { query }: KubeCall): T {
    return this.#admission.shape(path, object, query?.fieldValidation === "Strict");
  }

  #admit({ path }: Collection, { before: oldObject, after: object }: Change, part?: Part): void {
    const operation = oldObject === undefined ? "CREATE" : object === undefined ? "DELETE" : "UPDATE";
    const status = part === "status" ? part : undefined;
    this.#admission.admit({ collection: path, operation, part: status, writer: this.#writer, object, oldObject });
  }

  #update(
    collection: Collection,
    before: StoredObject,
    { wanted, part, call }: { readonly wanted: KubeObject; readonly part: Part; readonly call: KubeCall },
  ): KubeObject {
    const after = updated(before, this.#shape(collection, wanted, call), part, call);
    this.#admit(collection, { before, after }, part);
    if (after === before) return answer(before);
    const { deletionTimestamp, finalizers = [] } = after.metadata;
    if (deletionTimestamp === undefined || finalizers.length > 0) return this.#store(collection, after);
    // The watches get it as it was stored.
    this.#remove(collection, before);
    return answer(after);
  }

  #delete(collection: Collection, before: StoredObject, call: KubeCall): KubeObject {
    const { preconditions } = JSON.parse(JSON.stringify(call.body ?? {}));
    requireFit(before, preconditions, call);
    this.#admit(collection, { before, after: undefined });
    const after = deleted(before, this.#nowMs());
    if (after !== undefined) return after === before ? answer(before) : this.#store(collection, after);
    this.#remove(collection, before);
    return { kind: "Status", status: "Success" };
  }

  /**
   * Returns the objects that may have the fields: found by an index, or a list for each of thousands of nodes would
   * look at all pods each time.
   */
  #candidates({ objects, indexes }: Collection, fieldSelector: unknown): readonly StoredObject[] {
    const term = termsOf(fieldSelector).find(({ isEqual }) => isEqual);
    if (term === undefined || objects.size < INDEXED_OBJECTS) return [...objects.values()];
    const { key, path, value = "" } = term;
    const index: FieldIndex = indexes.get(key) ?? { path, names: new Map() };
    if (!indexes.has(key)) for (const each of objects.values()) enter(index, each);
    indexes.set(key, index);
    return [...(index.names.get(value) ?? [])].flatMap((name) => objects.get(name) ?? []);
  }

  #list(collections: readonly Collection[], call: KubeCall): KubeObject {
    const { fieldSelector, labelSelector } = call.query ?? {};
    const token = call.query?.continue;
    const rest = token === undefined ? undefined : this.#rests.get(String(token));
    if (token !== undefined && rest === undefined) refuse(410, "Expired", call);
    const { version, items, start } = rest ?? {
      version: this.#version,
      start: 0,
      items: collections
        .flatMap((collection) => this.#candidates(collection, fieldSelector))
        .filter(
          (each) => hasFields(each, fieldSelector) && isSelected(labelSelector, (key) => each.metadata.labels?.[key]),
        )
        .sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1)),
    };
    const limit = Math.min(Number(call.query?.limit ?? items.length), this.maxPage);
    const end = start + limit;
    const page = items.slice(start, end);
    const next = end >= items.length ? undefined : String(++this.#lastRest);
    if (next !== undefined) this.#rests.set(next, { version, items, start: end });
    const metadata = { resourceVersion: String(version), ...(next === undefined ? {} : { continue: next }) };
    if (call.accept?.includes("as=Table") === true)
      return { kind: "Table", metadata, rows: page.map((each) => ({ cells: [each.metadata.name] })) };
    const { kind = "", apiVersion = "" } = this.#serves[collections[0]?.path ?? ""] ?? {};
    return { kind: `${kind}List`, apiVersion, metadata, items: page.map(answer) };
  }

  #store(collection: Collection, object: StoredObject): KubeObject {
    const before = collection.objects.get(object.metadata.name);
    const after = { ...object, metadata: { ...object.metadata, resourceVersion: String(this.#nextVersion()) } };
    collection.objects.set(after.metadata.name, after);
    for (const index of collection.indexes.values()) {
      if (before !== undefined) leave(index, before);
      enter(index, after);
    }
    this.#notify(collection, { before, after });
    return answer(after);
  }

  #remove(collection: Collection, before: StoredObject): void {
    this.#nextVersion();
    collection.objects.delete(before.metadata.name);
    for (const index of collection.indexes.values()) leave(index, before);
    this.#notify(collection, { before, after: undefined });
  }

  /**
   * With so few versions an object would often have one again that it had before a restore, by chance. Each history has
   * its own.
   */
  #nextVersion(): number {
    const step = this.#restores === 0 ? 1 : HISTORIES;
    this.#version = Math.floor(this.#version / step) * step + step + (this.#restores % step);
    return this.#version;
  }

  #notify(collection: Collection, change: Change): void {
    const written = { collection: collection.path, version: this.#version, ...change };
    collection.history.push(written);
    this.onWritten(written);
    for (const watch of [...collection.watches]) send(watch, written);
  }

  #watch(watch: Watching): Promise<void> {
    const collections = this.#collectionsAt(watch.path);
    if (collections.length === 0) throw new Error(`The fake serves no ${watch.path}`);
    const from = Number(watch.query.resourceVersion ?? 0);
    return new Promise((_resolve, reject) => {
      if (watch.signal.aborted) return reject(watch.signal.reason);
      if (watch.query.resourceVersion !== undefined && from < this.#compacted)
        return reject(
          new ApiError({ status: 410, reason: "Expired", operation: `WATCH ${watch.path}`, message: "It is too old" }),
        );
      watch.signal.addEventListener("abort", () => {
        for (const { watches } of collections) watches.delete(watch);
        reject(watch.signal.reason);
      });
      for (const { watches } of collections) watches.add(watch);
      watch.onOpen?.();
      const missed = collections.flatMap(({ history }) => history.filter(({ version }) => version > from));
      for (const written of missed.sort((a, b) => a.version - b.version)) send(watch, written);
    });
  }
}

function versionOf({ metadata }: StoredObject): number {
  return Number(metadata.resourceVersion);
}

function enter({ path, names }: FieldIndex, object: StoredObject): void {
  const value = fieldOf(object, path);
  const own = names.get(value) ?? new Set();
  names.set(value, own.add(object.metadata.name));
}

function leave({ path, names }: FieldIndex, object: StoredObject): void {
  const value = fieldOf(object, path);
  const own = names.get(value);
  own?.delete(object.metadata.name);
  if (own?.size === 0) names.delete(value);
}

/** By its selector's view of the change: an object that leaves the selection is gone. */
function send(watch: Watching, { before, after, version }: Collection["history"][number]): void {
  const { fieldSelector } = watch.query;
  const was = before !== undefined && hasFields(before, fieldSelector);
  const is = after !== undefined && hasFields(after, fieldSelector);
  const object = is ? after : was ? before : undefined;
  if (object === undefined) return;
  const metadata = { ...object.metadata, resourceVersion: String(version) };
  const type = is ? (was ? "MODIFIED" : "ADDED") : "DELETED";
  const event = { type, object: structuredClone({ ...object, metadata }) } as const;
  const deliver = () => {
    if (!watch.signal.aborted) watch.onEvent(event);
  };
  watch.delivery(watch.path, deliver, event);
}

/** Returns the object's place in a list: by namespace and name. */
function keyOf({ metadata }: StoredObject): string {
  return `${metadata.namespace ?? ""}/${metadata.name}`;
}

function answer(object: StoredObject): KubeObject {
  return structuredClone({ ...object });
}
