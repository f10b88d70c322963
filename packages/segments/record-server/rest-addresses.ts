/**
 * The calls that the APIs of Nautobot and NetBox have in common: a list by pages, and a list in place of an object to
 * create, change or delete several at once, all or none. A {@link Dialect} has the differences.
 */
import * as z from "zod";
import { printable } from "../../../host/lib/printable.ts";
import { formatIp, parseIp } from "../../../host/net/ip.ts";
import { type HttpClient, type Query, RecordServerError } from "./http-client.ts";
import { type AddressPlace, markOf, type PodAddress, type ServerAddress } from "./pod-address.ts";

/** Most entries of one call. */
export const BATCH_SIZE = 100;

/** Longest time of a call that writes: milliseconds. A server needs some 30 ms for an entry. */
const WRITE_MS = 60_000;

/** Entries of a page: the default maximum of both products. */
const PAGE_SIZE = 500;

/** Most entries of the cluster that are read. */
const MAX_OWN = 500_000;

/** Longest reason of a refusal: characters. */
const MAX_REASON = 200;

const PATH = "/api/ipam/ip-addresses/";

/** The differences between the products. */
export interface Dialect {
  readonly product: string;
  /** Query by which the tag is looked for, and where. */
  readonly tagPath: string;
  /** Query for the entries of a space; `id`: the result of prepare. */
  inSpace(space: string, id: string | undefined): Query;
  /** Query for objects with a tag. */
  tagged(tag: { readonly name: string; readonly id: string; readonly slug: string }): Query;
  /** The path to find a space by its name; undefined for the space that needs no name. */
  spacePath(space: string): string | undefined;
  /** The fields of a new entry that differ. */
  created(space: string, tag: string): object;
}

interface RestAddressesOptions {
  readonly client: Pick<HttpClient, "request" | "requests" | "problem">;
  readonly dialect: Dialect;
  /** UID of this cluster. */
  readonly cluster: string;
  readonly tag: string;
  /** Namespaces or VRFs in which the cluster has addresses. */
  readonly spaces: readonly string[];
}

const named = z.object({
  results: z.array(z.object({ id: z.union([z.string(), z.int()]), slug: z.string().optional() })),
});

const entry = z.object({
  id: z.union([z.string(), z.int()]),
  address: z.string(),
  dns_name: z.string().nullish(),
  description: z.string().nullish(),
  tags: z.array(z.object({ id: z.union([z.string(), z.int()]) })),
});

/** NetBox from 4.7 on: the errors of entries, by position among those to create, or by id. */
const bulkErrors = z.object({
  errors: z.array(z.object({ index: z.int().optional(), id: z.int().optional(), errors: z.unknown() })),
});

const page = z.object({ count: z.int().min(0), results: z.array(entry) });

/** The server has carried out nothing of a call, because of some of its entries. */
export class RecordsRefused extends Error {
  override readonly name = "RecordsRefused";
  /**
   * Why, for each entry of the call in its order; undefined if nothing is wrong with it. Undefined as a whole if the
   * server does not say with which.
   */
  readonly reasons: readonly (string | undefined)[] | undefined;

  constructor(reasons: RecordsRefused["reasons"]) {
    super("The server refused entries");
    this.reasons = reasons;
  }
}

/** All calls reject with RecordServerError if the server does not answer as expected. */
export class RestAddresses {
  readonly #options: RestAddressesOptions;
  #tag: { readonly name: string; readonly id: string; readonly slug: string } | undefined;
  readonly #spaceIds = new Map<string, string>();

  constructor(options: RestAddressesOptions) {
    this.#options = options;
  }

  /** Sent so far. */
  get requests(): number {
    return this.#options.client.requests;
  }

  /** Why the files of token and authority cannot be read now; undefined if they can. */
  get problem(): string | undefined {
    return this.#options.client.problem;
  }

  /** Resolves names on the server. Rejects if the tag or a space is missing. */
  async prepare(signal: AbortSignal): Promise<void> {
    const { dialect, tag, spaces } = this.#options;
    const found = await this.#findNamed(dialect.tagPath, tag, signal);
    if (found === undefined) throw new Error(`${dialect.product} has no tag "${tag}"; create it`);
    this.#tag = { name: tag, ...found };
    for (const space of spaces) {
      const path = dialect.spacePath(space);
      if (path === undefined) continue;
      const id = (await this.#findNamed(path, space, signal))?.id;
      const what = `no ${path.includes("vrf") ? "VRF" : "namespace"} "${space}"`;
      if (id === undefined) throw new Error(`${dialect.product} has ${what}; create it, or name another`);
      this.#spaceIds.set(space, id);
    }
  }

  async #findNamed(path: string, name: string, signal: AbortSignal) {
    const { json } = await this.#options.client.request({ method: "GET", path, query: { name, limit: 2 }, signal });
    const [found] = decode(named, json, path).results;
    return found && { id: String(found.id), slug: found.slug ?? "" };
  }

  #requireTag() {
    if (this.#tag === undefined) throw new Error("Internal error: prepare was not called");
    return this.#tag;
  }

  /** Yields all entries with the tag and the cluster's mark, page by page. */
  async *listOwn(signal: AbortSignal): AsyncGenerator<readonly ServerAddress[]> {
    const { dialect, spaces, cluster } = this.#options;
    for (const space of spaces) {
      const query = {
        ...dialect.inSpace(space, this.#spaceIds.get(space)),
        ...dialect.tagged(this.#requireTag()),
        description__ic: markOf(cluster),
      };
      let offset = 0;
      for (;;) {
        const { count, results } = await this.#page({ ...query, limit: PAGE_SIZE, offset }, signal);
        if (count > MAX_OWN) throw new RecordServerError(`The server lists ${count} entries of this cluster`);
        yield this.#decode(results, space).filter(({ isOwn }) => isOwn);
        offset += results.length;
        if (offset >= count) break;
        // Else the entries of a page that was cut would be taken for deleted ones.
        if (results.length === 0) throw new RecordServerError(`The server lists ${offset} of ${count} entries`);
      }
    }
  }

  /** Returns all entries, everybody's, that are at these addresses of one space; at most BATCH_SIZE. */
  async findAt(places: readonly AddressPlace[], signal: AbortSignal): Promise<readonly ServerAddress[]> {
    const [first] = places;
    if (first === undefined) return [];
    const query = {
      ...this.#options.dialect.inSpace(first.space, this.#spaceIds.get(first.space)),
      address: places.map(({ ip }) => ip),
      limit: PAGE_SIZE,
    };
    const { count, results } = await this.#page(query, signal);
    if (results.length < count) throw new RecordServerError(`The server shows ${results.length} of ${count} entries`);
    return this.#decode(results, first.space);
  }

  /** Creates all or none of one space. Rejects with RecordsRefused if the server says that some are wrong. */
  async create(addresses: readonly PodAddress[], signal: AbortSignal): Promise<readonly ServerAddress[]> {
    const [first] = addresses;
    if (first === undefined) return [];
    const common = this.#options.dialect.created(first.space, this.#requireTag().name);
    const body = addresses.map((address) => ({ ...common, ...bodyOf(address) }));
    const json = await this.#write("POST", body, signal);
    return this.#decode(decode(z.array(entry), json, PATH), first.space);
  }

  /** Changes all or none. Rejects as {@link create}. */
  async update(addresses: readonly (PodAddress & { readonly id: string })[], signal: AbortSignal): Promise<void> {
    await this.#write(
      "PATCH",
      addresses.map((address) => ({ id: this.#idOf(address.id), ...bodyOf(address) })),
      signal,
    );
  }

  /** Deletes those that are there still, or none. Rejects as {@link create}. */
  async remove(ids: readonly string[], signal: AbortSignal): Promise<void> {
    const body = ids.map((id) => ({ id: this.#idOf(id) }));
    await this.#write("DELETE", body, signal);
  }

  /** NetBox's are numbers. */
  #idOf(id: string): string | number {
    return /^\d+$/.test(id) ? Number(id) : id;
  }

  async #write(method: "POST" | "PATCH" | "DELETE", body: readonly Entry[], signal: AbortSignal): Promise<unknown> {
    if (body.length > BATCH_SIZE) throw new Error("Internal error: a call with too many entries");
    try {
      return (await this.#options.client.request({ method, path: PATH, body, timeoutMs: WRITE_MS, signal })).json;
    } catch (error) {
      // 409: other objects need an entry that is to be deleted.
      if (!(error instanceof RecordServerError) || (error.status !== 400 && error.status !== 409)) throw error;
      throw new RecordsRefused(reasonsOf(error.json, body));
    }
  }

  async #page(query: Query, signal: AbortSignal) {
    const { json } = await this.#options.client.request({ method: "GET", path: PATH, query, signal });
    return decode(page, json, PATH);
  }

  #decode(results: readonly z.output<typeof entry>[], space: string): readonly ServerAddress[] {
    const tag = this.#requireTag();
    const mark = markOf(this.#options.cluster);
    return results.flatMap(({ id, address, dns_name, description, tags }) => {
      const [host = "", length] = address.split("/");
      const ip = parseIp(host);
      if (ip === undefined) return [];
      const text = description ?? "";
      const isOwn = text.includes(mark) && tags.some((each) => String(each.id) === tag.id);
      return {
        ...{ id: String(id), space, ip: formatIp(ip), isOwn },
        ...{ prefixLength: Number(length), dnsName: dns_name ?? "", description: text },
      };
    });
  }
}

function bodyOf({ ip, prefixLength, dnsName, description }: PodAddress): object {
  return { address: `${ip}/${prefixLength}`, dns_name: dnsName, description };
}

function decode<T>(schema: z.ZodType<T>, json: unknown, path: string): T {
  const { success, data } = schema.safeParse(json);
  if (success) return data;
  throw new RecordServerError(`${path} was answered with a JSON that is not what its documentation describes`);
}

interface Entry {
  readonly id?: string | number;
}

function listOf(json: unknown, body: readonly Entry[]): readonly unknown[] {
  const { data } = bulkErrors.safeParse(json);
  if (data === undefined) return Array.isArray(json) ? json : [json];
  return body.map((entry, at) => data.errors.find(({ index, id = "" }) => index === at || id === entry.id)?.errors);
}

/**
 * Returns the reasons by entry, of an answer that is a list in the order of the call, of objects of the wrong fields,
 * empty for an entry without any. Such an object alone is about one of them.
 */
function reasonsOf(json: unknown, body: readonly Entry[]): RecordsRefused["reasons"] {
  const { length } = body;
  const list = listOf(json, body);
  if (list.length !== length) return undefined;
  const reasons = list.map((each) => {
    const texts = Object.entries(Object(each)).map(([field, text]) => `${field}: ${[text].flat().join(" ")}`);
    return texts.length === 0 ? undefined : printable(texts.join("; ").slice(0, MAX_REASON));
  });
  if (reasons.some((reason) => reason !== undefined)) return reasons;
  return length === 1 ? ["no reason is given"] : undefined;
}
