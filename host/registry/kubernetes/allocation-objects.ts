/**
 * The calls on IPAllocation objects that the cluster's registry makes, with values in and out.
 * Called by publisher.ts, foreign-objects.ts and survey.ts.
 * Effects: those of the API server's calls.
 */
import { isNotFound, type KubeApi, type KubeCall, type KubeObject, type Lane } from "../../kubernetes/kube-api.ts";
import {
  allocationLabels,
  allocationName,
  decodeIpAllocation,
  encodeIpAllocation,
  type IpAllocation,
  type IpAllocationSpec,
} from "../../resources/ip-allocation.ts";
import { LIST_PAGE, NAMES_PAGE } from "../limits.ts";

const COLLECTION = "/apis/ipam.vendor.io/v1/ipallocations";
const POOLS = "/apis/ipam.vendor.io/v1/ippools";

/** The rows of a list as a table (meta/v1 Table); without the objects a row is its cells, and the first is the name. */
const TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1";

/** How long, and for whom, a call may take. */
export interface CallTerms {
  readonly lane: Lane;
  readonly patienceMs?: number;
  readonly signal?: AbortSignal;
}

/** What a change is allowed to change: both are compared by the API server. */
export interface Precondition {
  readonly uid: string;
  readonly resourceVersion: string;
}

export interface Selector {
  readonly fields?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
}

export class AllocationObjects {
  readonly #api: KubeApi;

  constructor(api: KubeApi) {
    this.#api = api;
  }

  /** Undefined when there is none. */
  async get(name: string, terms: CallTerms): Promise<IpAllocation | undefined> {
    try {
      return decode(await this.#api.call({ ...terms, method: "GET", path: `${COLLECTION}/${name}` }));
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  /** Rejects with a conflict when the name is taken, by an earlier attempt of this very call, too. */
  async create(spec: IpAllocationSpec, terms: CallTerms): Promise<IpAllocation> {
    const body = encodeIpAllocation(spec, metadataOf(spec));
    return decode(await this.#api.call({ ...terms, method: "POST", path: COLLECTION, body }));
  }

  async replace(
    spec: IpAllocationSpec,
    { uid, resourceVersion }: Precondition,
    terms: CallTerms,
  ): Promise<IpAllocation> {
    const metadata = { ...metadataOf(spec), uid, resourceVersion };
    const body = encodeIpAllocation(spec, metadata);
    return decode(await this.#api.call({ ...terms, method: "PUT", path: `${COLLECTION}/${metadata.name}`, body }));
  }

  /** Rejects with a conflict when it is not this version of this object. */
  async delete(name: string, { uid, resourceVersion }: Precondition, terms: CallTerms): Promise<void> {
    const body = { apiVersion: "v1", kind: "DeleteOptions", preconditions: { uid, resourceVersion } };
    try {
      await this.#api.call({ ...terms, method: "DELETE", path: `${COLLECTION}/${name}`, body });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  async list(selector: Selector, terms: CallTerms): Promise<readonly IpAllocation[]> {
    const found: IpAllocation[] = [];
    await this.#pages(selector, terms, {}, ({ items }) => {
      for (const item of arrayOf(items)) found.push(decode(item));
    });
    return found;
  }

  /** All names of a pool, as of a moment after the call. */
  async listNames(pool: string, terms: CallTerms): Promise<readonly string[]> {
    const names: string[] = [];
    const asTable = { accept: TABLE, query: { includeObject: "None", limit: NAMES_PAGE } };
    await this.#pages({ fields: { "spec.pool": pool } }, terms, asTable, ({ rows }) => {
      for (const row of arrayOf(rows)) names.push(String(arrayOf(recordOf(row).cells)[0]));
    });
    return names;
  }

  /** Tells whoever holds addresses of the pool that cool to say so. */
  async markWanted(pool: string, since: string, terms: CallTerms): Promise<void> {
    const body = { status: { wanted: since } };
    await this.#api.call({ ...terms, method: "PATCH", path: `${POOLS}/${pool}/status`, body });
  }

  async #pages(
    { fields, labels }: Selector,
    terms: CallTerms,
    form: { readonly accept?: string; readonly query?: KubeCall["query"] },
    onPage: (page: KubeObject) => void,
  ): Promise<void> {
    let token: string | undefined;
    do {
      const query = { limit: LIST_PAGE, ...form.query, fieldSelector: join(fields), labelSelector: join(labels), continue: token }; // biome-ignore format: one thought
      const page = await this.#api.call({ ...terms, ...form, method: "GET", path: COLLECTION, query });
      onPage(page);
      token = String(recordOf(page.metadata).continue ?? "");
    } while (token !== "");
  }
}

/** The names of what is preconditioned. */
function metadataOf(spec: IpAllocationSpec) {
  return { name: allocationName(spec.ip, spec.addressSpace), labels: allocationLabels(spec) };
}

function decode(object: unknown): IpAllocation {
  const complete = { apiVersion: "ipam.vendor.io/v1", kind: "IPAllocation", ...recordOf(object) };
  return decodeIpAllocation(complete, "API server");
}

function join(selector: Readonly<Record<string, string>> | undefined): string | undefined {
  if (selector === undefined) return undefined;
  return Object.entries(selector).map(([key, value]) => `${key}=${value}`).join(","); // biome-ignore format: one thought
}

function arrayOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}
