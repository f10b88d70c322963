/** The calls to the API server on IPAllocation objects. */
import { isDeepStrictEqual } from "node:util";
import { isConfigError } from "../../config/config-error.ts";
import { ApiError, callIfThere, type KubeApi, type KubeCall, type KubeObject } from "../../kubernetes/kube-api.ts";
import { LIST_PAGE } from "../../kubernetes/list.ts";
import { versionOf } from "../../kubernetes/mirror.ts";
import { insteadOf } from "../../lib/try-or.ts";
import { API_PATH, API_VERSION } from "../../resources/fields/metadata.ts";
import {
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

/** A list as a table (meta/v1 Table). Without the objects a row is its cells, the name first. */
const TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1";

/** The lane of a call, its time limit and that of its first attempt, its signal, and the observer of its attempts. */
export type CallTerms = Required<Pick<KubeCall, "lane">> &
  Pick<KubeCall, "patienceMs" | "attemptMs" | "isAsked" | "signal" | "onUnanswered">;

/** The terms of a call that an ADD waits for. */
export const FOR_POD: CallTerms = { lane: "pod" };

/** The object that a write expects; the API server compares both. */
type Precondition = Pick<IpAllocation, "uid" | "resourceVersion">;

type Api = Pick<KubeApi, "call" | "history">;

interface Selector {
  readonly fields?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
}

/** Returns undefined if there is none. */
export async function readAllocation(api: Api, name: string, terms: CallTerms): Promise<IpAllocation | undefined> {
  const found = await callIfThere(api, { ...terms, method: "GET", path: `${COLLECTION}/${name}` });
  return found && decode(found);
}

/**
 * Rejects with a conflict if the name is taken, even by an earlier attempt of this very call. No precondition prevents
 * a late attempt from creating the object once more after it was deleted.
 */
export async function createAllocation(api: Api, spec: IpAllocationSpec, terms: CallTerms): Promise<IpAllocation> {
  const body = encodeIpAllocation(spec);
  return decodeWritten(await ask(api, { ...terms, method: "POST", path: COLLECTION, body }), spec, body);
}

export async function replaceAllocation(
  api: Api,
  spec: IpAllocationSpec,
  { uid, resourceVersion }: Precondition,
  terms: CallTerms,
): Promise<IpAllocation> {
  const body = encodeIpAllocation(spec, { uid, resourceVersion });
  const path = `${COLLECTION}/${body.metadata.name}`;
  return decodeWritten(await api.call({ ...terms, method: "PUT", path, body }), spec, body);
}

/** Returns the object if a finalizer holds it, else undefined. Rejects with a conflict if it has changed. */
export async function deleteAllocation(
  api: Api,
  name: string,
  { uid, resourceVersion }: Precondition,
  terms: CallTerms,
): Promise<IpAllocation | undefined> {
  const body = { apiVersion: "v1", kind: "DeleteOptions", preconditions: { uid, resourceVersion } };
  const answer = await callIfThere(api, { ...terms, method: "DELETE", path: `${COLLECTION}/${name}`, body });
  return answer === undefined || recordOf(answer.metadata).deletionTimestamp === undefined ? undefined : decode(answer);
}

/** Omits objects that cannot be decoded: they must not be taken over. */
export function listAllocations(api: Api, selector: Selector, terms: CallTerms): Promise<readonly IpAllocation[]> {
  return collect(api, selector, terms, ({ items }) => arrayOf(items).flatMap(decodeIfKnown));
}

export function listNodeAllocations(api: Api, node: string, terms: CallTerms): Promise<readonly IpAllocation[]> {
  return listAllocations(api, { fields: { "spec.node": node } }, terms);
}

/** Returns all names of a pool, as of a moment after the call. */
export function listAllocationNames(api: Api, pool: string, terms: CallTerms): Promise<readonly string[]> {
  const asTable = { ...terms, accept: TABLE, query: { includeObject: "None", limit: NAMES_PAGE } };
  const nameIn = (row: unknown): string => String(arrayOf(recordOf(row).cells)[0]);
  return collect(api, { fields: { "spec.pool": pool } }, asTable, ({ rows }) => arrayOf(rows).map(nameIn));
}

/** Asks the agents to show their cooling addresses of the pool. `waiting`: more pods that wait for a block of it. */
export async function markPoolWanted(api: Api, pool: string, terms: CallTerms, waiting?: number): Promise<void> {
  const body = { status: { wanted: new Date().toISOString(), waiting: waiting ?? null } };
  await api.call({ ...terms, method: "PATCH", path: `${POOLS}/${pool}/status`, body });
}

/** Returns all pages, as of one moment. If later ones are compacted away meanwhile, reads all of them again. */
async function collect<T>(
  api: Api,
  { fields, labels }: Selector,
  terms: CallTerms & Pick<KubeCall, "accept" | "query">,
  read: (page: KubeObject) => readonly T[],
): Promise<readonly T[]> {
  const query = { limit: LIST_PAGE, ...terms.query, fieldSelector: join(fields), labelSelector: join(labels) };
  for (let attempt = 1; ; attempt++) {
    try {
      return await readPages(api, { ...terms, method: "GET", path: COLLECTION, query }, read);
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 410) || attempt === LIST_ATTEMPTS) throw error;
    }
  }
}

/** A list and a create are answered as of a later moment. */
async function ask(api: Api, call: KubeCall): Promise<KubeObject> {
  const before = api.history?.version;
  const answer = await api.call(call);
  api.history?.answered(versionOf(answer), before);
  return answer;
}

async function readPages<T>(api: Api, call: KubeCall, read: (page: KubeObject) => readonly T[]): Promise<readonly T[]> {
  const found: T[] = [];
  let token: string | undefined;
  do {
    const paged = { ...call, query: { ...call.query, continue: token } };
    // Later pages are as old as the first.
    const page = await (token === undefined ? ask(api, paged) : api.call(paged));
    for (const each of read(page)) found.push(each);
    token = String(recordOf(page.metadata).continue ?? "");
  } while (token !== "");
  return found;
}

/**
 * Decodes the answer to a write of `spec`, which was `sent` in the API's form. If the server has stored it unchanged,
 * as mostly, only the metadata is new, and nothing is checked again: checking takes longer than the comparison. A
 * workload or a quarantine is decoded.
 */
function decodeWritten(
  answer: KubeObject,
  spec: IpAllocationSpec,
  sent: ReturnType<typeof encodeIpAllocation>,
): IpAllocation {
  const { name, uid, resourceVersion, creationTimestamp: createdAt, deletionTimestamp } = recordOf(answer.metadata);
  const isPlain = spec.workload === undefined && spec.quarantine === undefined && deletionTimestamp == null;
  const isStored = isPlain && isDeepStrictEqual(answer.spec, sent.spec) && name === sent.metadata.name;
  if (!isStored || typeof uid !== "string" || typeof resourceVersion !== "string" || typeof createdAt !== "string")
    return decode(answer);
  return { kind: "IPAllocation", name, uid, resourceVersion, createdAt, deleting: false, spec };
}

function decode(object: unknown): IpAllocation {
  const complete = { apiVersion: API_VERSION, kind: "IPAllocation", ...recordOf(object) };
  return decodeIpAllocation(complete, "API server");
}

function decodeIfKnown(object: unknown): readonly IpAllocation[] {
  return insteadOf(isConfigError, [], () => [decode(object)]);
}

function join(selector: Readonly<Record<string, string>> = {}): string | undefined {
  const terms = Object.entries(selector).map(([key, value]) => `${key}=${value}`);
  return terms.join(",") || undefined;
}

function arrayOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}
