/** The calls to the API server on IPAllocation objects. */
import { isDeepStrictEqual } from "node:util";
import { ConfigError } from "../../config/config-error.ts";
import {
  ApiError,
  isNotFound,
  type KubeApi,
  type KubeCall,
  type KubeObject,
  type Lane,
} from "../../kubernetes/kube-api.ts";
import { LIST_PAGE } from "../../kubernetes/list.ts";
import { API_PATH, API_VERSION } from "../../resources/fields/metadata.ts";
import {
  allocationLabels,
  allocationName,
  decodeIpAllocation,
  encodeIpAllocation,
  type IpAllocation,
  type IpAllocationSpec,
} from "../../resources/ip-allocation.ts";

/** Number of attempts at a list if its later pages expire. */
export const LIST_ATTEMPTS = 3;

/** Page size of a list of names. */
const NAMES_PAGE = 5_000;

const COLLECTION = `${API_PATH}/ipallocations`;
const POOLS = `${API_PATH}/ippools`;

/** A list as a table (meta/v1 Table). Without the objects a row is its cells, the first of which is the name. */
const TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1";

/** The lane of a call, how long it and its first attempt may take, and what ends it. */
export interface CallTerms {
  readonly lane: Lane;
  readonly patienceMs?: number;
  readonly attemptMs?: number;
  readonly isAsked?: boolean;
  readonly signal?: AbortSignal | undefined;
}

/** The terms of a call that an ADD waits for. */
export const FOR_POD: CallTerms = { lane: "pod" };

/** The object that a write expects; the API server compares both. */
interface Precondition {
  readonly uid: string;
  readonly resourceVersion: string;
}

interface Selector {
  readonly fields?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
}

export class AllocationObjects {
  readonly #api: KubeApi;

  constructor(api: KubeApi) {
    this.#api = api;
  }

  /** Returns undefined if there is none. */
  async get(name: string, terms: CallTerms): Promise<IpAllocation | undefined> {
    try {
      return decode(await this.#api.call({ ...terms, method: "GET", path: `${COLLECTION}/${name}` }));
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  /**
   * Rejects with a conflict if the name is taken, even by an earlier attempt of this very call. `onUnanswered`: as in
   * {@link KubeCall}; no precondition prevents a late attempt from creating the object once more after it was
   * deleted.
   */
  async create(spec: IpAllocationSpec, terms: CallTerms, onUnanswered: () => void): Promise<IpAllocation> {
    const body = encodeIpAllocation(spec, metadataOf(spec));
    const answer = await this.#api.call({ ...terms, onUnanswered, method: "POST", path: COLLECTION, body });
    return decodeWritten(answer, spec, body);
  }

  async replace(
    spec: IpAllocationSpec,
    { uid, resourceVersion }: Precondition,
    terms: CallTerms,
  ): Promise<IpAllocation> {
    const metadata = { ...metadataOf(spec), uid, resourceVersion };
    const body = encodeIpAllocation(spec, metadata);
    const path = `${COLLECTION}/${metadata.name}`;
    return decodeWritten(await this.#api.call({ ...terms, method: "PUT", path, body }), spec, body);
  }

  /**
   * Returns the object if a finalizer holds it, otherwise undefined. Rejects with a conflict if the object has changed.
   */
  async delete(
    name: string,
    { uid, resourceVersion }: Precondition,
    terms: CallTerms,
  ): Promise<IpAllocation | undefined> {
    const body = { apiVersion: "v1", kind: "DeleteOptions", preconditions: { uid, resourceVersion } };
    try {
      const answer = await this.#api.call({ ...terms, method: "DELETE", path: `${COLLECTION}/${name}`, body });
      return recordOf(answer.metadata).deletionTimestamp === undefined ? undefined : decode(answer);
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  /** Omits objects that cannot be decoded: they must not be taken over. */
  list(selector: Selector, terms: CallTerms): Promise<readonly IpAllocation[]> {
    return this.#collect(selector, terms, {}, ({ items }) => arrayOf(items).flatMap(decodeIfKnown));
  }

  /** Returns all names of a pool, as of a moment after the call. */
  listNames(pool: string, terms: CallTerms): Promise<readonly string[]> {
    const asTable = { accept: TABLE, query: { includeObject: "None", limit: NAMES_PAGE } };
    const nameIn = (row: unknown): string => String(arrayOf(recordOf(row).cells)[0]);
    return this.#collect({ fields: { "spec.pool": pool } }, terms, asTable, ({ rows }) => arrayOf(rows).map(nameIn));
  }

  /** Asks the agents to show their cooling addresses of the pool. `waiting`: more pods that wait for a block of it. */
  async markWanted(pool: string, since: string, terms: CallTerms, waiting?: number): Promise<void> {
    const body = { status: { wanted: since, waiting: waiting ?? null } };
    await this.#api.call({ ...terms, method: "PATCH", path: `${POOLS}/${pool}/status`, body });
  }

  /** Returns all pages, as of one moment. If later ones are compacted away meanwhile, reads all of them again. */
  async #collect<T>(
    { fields, labels }: Selector,
    terms: CallTerms,
    form: Form,
    read: (page: KubeObject) => readonly T[],
  ): Promise<readonly T[]> {
    const query = { limit: LIST_PAGE, ...form.query, fieldSelector: join(fields), labelSelector: join(labels) };
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#pages({ ...terms, ...form, method: "GET", path: COLLECTION, query }, read);
      } catch (error) {
        if (!(error instanceof ApiError && error.status === 410) || attempt === LIST_ATTEMPTS) throw error;
      }
    }
  }

  async #pages<T>(call: KubeCall, read: (page: KubeObject) => readonly T[]): Promise<readonly T[]> {
    const found: T[] = [];
    let token: string | undefined;
    do {
      const page = await this.#api.call({ ...call, query: { ...call.query, continue: token } });
      for (const each of read(page)) found.push(each);
      token = String(recordOf(page.metadata).continue ?? "");
    } while (token !== "");
    return found;
  }
}

/** The form of a list's answer. */
type Form = Pick<KubeCall, "accept" | "query">;

function nameOf({ ip, addressSpace }: IpAllocationSpec): string {
  return allocationName(ip, addressSpace);
}

function metadataOf(spec: IpAllocationSpec) {
  return { name: nameOf(spec), labels: allocationLabels(spec) };
}

/**
 * Decodes the answer to a write of `spec`, which was `sent` in the API's form. If the server has stored what was
 * sent, only the metadata is new, and nothing is checked again: that is what most answers are, and checking takes
 * longer than the comparison. A workload or a quarantine is decoded.
 */
function decodeWritten(answer: KubeObject, spec: IpAllocationSpec, sent: { readonly spec: object }): IpAllocation {
  const { name, uid, resourceVersion, creationTimestamp: createdAt, deletionTimestamp } = recordOf(answer.metadata);
  const isPlain = spec.workload === undefined && spec.quarantine === undefined && deletionTimestamp == null;
  const isStored = isPlain && isDeepStrictEqual(answer.spec, sent.spec) && name === nameOf(spec);
  if (!isStored || typeof uid !== "string" || typeof resourceVersion !== "string" || typeof createdAt !== "string")
    return decode(answer);
  return { kind: "IPAllocation", name, uid, resourceVersion, createdAt, deleting: false, spec };
}

function decode(object: unknown): IpAllocation {
  const complete = { apiVersion: API_VERSION, kind: "IPAllocation", ...recordOf(object) };
  return decodeIpAllocation(complete, "API server");
}

function decodeIfKnown(object: unknown): readonly IpAllocation[] {
  try {
    return [decode(object)];
  } catch (error) {
    if (error instanceof ConfigError) return [];
    throw error;
  }
}

function join(selector: Readonly<Record<string, string>> | undefined): string | undefined {
  if (selector === undefined) return undefined;
  const terms = Object.entries(selector).map(([key, value]) => `${key}=${value}`);
  return terms.join(",");
}

function arrayOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}
