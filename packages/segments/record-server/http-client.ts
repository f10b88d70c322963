/**
 * JSON over HTTP with a server of record, Nautobot or NetBox: bounded in time and size, over few connections that are
 * kept, never to another server, and without a secret in an error.
 * Effects: TCP connections.
 */

import * as z from "zod";
import { closeEndpoint } from "../../../host/kubernetes/http/endpoint.ts";
import { type Sender, send } from "../../../host/kubernetes/http/request.ts";
import { describeFailure, parseRetryAfter } from "../../../host/kubernetes/http/retry.ts";
import { printable } from "../../../host/lib/printable.ts";
import { tryOr } from "../../../host/lib/try-or.ts";
import { FileAccess, type ServerAddress } from "./file-access.ts";

/** Longest time that a request may take, from the connection to the answer's last byte, unless it says otherwise. */
const REQUEST_MS = 30_000;

/** Longest time that the server may ask to wait: milliseconds. */
const MAX_RETRY_AFTER_MS = 300_000;

/** Longest part of an answer that an error repeats: characters. */
const MAX_SHOWN_ANSWER = 200;

/** Objects of a page: the default maximum of both products. */
const PAGE_SIZE = 1_000;

/** Most objects of a list that are read. */
const MAX_LISTED = 500_000;

/** A list is a parameter that is repeated. */
export type Query = Readonly<Record<string, string | number | readonly string[]>>;

export interface ServerRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Below the server's URL: `/api/ipam/prefixes/`. */
  readonly path: string;
  /** Never shown in an error. */
  readonly query?: Query | undefined;
  /** Sent as JSON. */
  readonly body?: object | undefined;
  /** Default: 30,000. */
  readonly timeoutMs?: number | undefined;
  readonly signal: AbortSignal;
}

export interface ServerAnswer {
  /** 200 to 299. */
  readonly status: number;
  /** Undefined for an empty body. */
  readonly json: unknown;
}

/** No answer, a status other than 2xx, or an unreadable answer. */
export class RecordServerError extends Error {
  override readonly name = "RecordServerError";
  /** Undefined if there was no answer: the request may have been carried out, or may be later. */
  readonly status: number | undefined;
  /** The answer's body; undefined if it is no JSON. */
  readonly json: unknown;
  /** Pause that the server demanded before the next request: milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, { status, json, retryAfterMs }: Partial<RecordServerError> = {}) {
    super(message);
    this.status = status;
    this.json = json;
    this.retryAfterMs = retryAfterMs;
  }
}

interface Listing {
  readonly items: readonly unknown[];
  /** Whether the list had the same number of objects throughout: otherwise some may be missing. */
  readonly isExact: boolean;
}

const page = z.object({
  count: z.int().min(0),
  next: z.string().nullish(),
  results: z.array(z.unknown()),
});

interface HttpClientOptions extends ServerAddress {
  readonly userAgent: string;
}

export class HttpClient {
  readonly #files: FileAccess;
  readonly #sender: Sender;
  #requests = 0;

  /** Throws ConfigError for the URL. */
  constructor({ userAgent, ...address }: HttpClientOptions) {
    this.#files = new FileAccess(address);
    this.#sender = { credentials: this.#files, userAgent };
  }

  /** Why the files of token and authority cannot be read now, while their last valid content is used. */
  get problem(): string | undefined {
    return this.#files.problem;
  }

  /** Sent so far. */
  get requests(): number {
    return this.#requests;
  }

  /**
   * Sends once. Rejects with RecordServerError, with ConfigError for files that were never valid, and with the
   * signal's reason.
   */
  async request(request: ServerRequest): Promise<ServerAnswer> {
    const { method, path, body, timeoutMs = REQUEST_MS, signal } = request;
    const { origin, basePath } = (await this.#files.current()).endpoint;
    const operation = `${method} ${origin}${basePath}${path}`;
    const deadline = AbortSignal.timeout(timeoutMs);
    const full = `${path}${formatQuery(request.query)}`;
    const sent = { method, path: full, contentType: "application/json", ...(body && { body }) };
    this.#requests++;
    let received: { readonly status: number; readonly retryAfter: string | undefined; readonly text: string };
    try {
      const answer = await send(this.#sender, sent, AbortSignal.any([signal, deadline]));
      received = { ...answer, text: await answer.body.text() };
    } catch (error) {
      signal.throwIfAborted();
      const reason = deadline.aborted ? `there was no answer within ${timeoutMs / 1000} s` : describeFailure(error);
      throw new RecordServerError(this.#files.redact(`${operation} failed: ${reason}`));
    }
    return this.#decode(operation, received);
  }

  #decode(
    operation: string,
    { status, retryAfter, text }: { status: number; retryAfter: string | undefined; text: string },
  ): ServerAnswer {
    const fail = (what: string): never => {
      const safe = this.#files.redact(text);
      const shown = printable(safe.slice(0, MAX_SHOWN_ANSWER)).trim();
      const retryAfterMs = parseRetryAfter(retryAfter, Date.now(), MAX_RETRY_AFTER_MS);
      const message = `${operation} was answered with ${status}${what}${shown === "" ? "" : `: ${shown}`}`;
      throw new RecordServerError(message, { status, json: parseOrNothing(safe), retryAfterMs });
    };
    if (status >= 300 && status < 400) return fail(", which leads elsewhere; redirects are not followed");
    if (status < 200 || status >= 300) return fail("");
    const json = parseOrNothing(text);
    if (json === undefined && text.trim() !== "") return fail(" and a text that is no JSON");
    return { status, json };
  }

  /** Returns all objects of a list, page by page. Rejects as {@link request}. */
  async list(request: Omit<ServerRequest, "method" | "body">): Promise<Listing> {
    const items: unknown[] = [];
    const counts = new Set<number>();
    let query: ServerRequest["query"] = { limit: PAGE_SIZE, ...request.query };
    while (query !== undefined) {
      const { json } = await this.request({ ...request, method: "GET", query });
      const { success, data } = page.safeParse(json);
      if (!success) throw new RecordServerError(`GET ${request.path} was answered with a JSON that is no list`);
      items.push(...data.results);
      counts.add(data.count);
      if (items.length > MAX_LISTED)
        throw new RecordServerError(`GET ${request.path} lists more than ${MAX_LISTED} objects`);
      query = data.results.length === 0 ? undefined : this.#queryOf(data.next, request.path);
    }
    return { items, isExact: counts.size === 1 && counts.has(items.length) };
  }

  /** Of the next page; only the query is used: a proxy may have changed the scheme, and another path is another's. */
  #queryOf(next: string | null | undefined, path: string): ServerRequest["query"] {
    if (next == null) return undefined;
    const url = URL.parse(next, this.#files.url);
    if (url?.host !== this.#files.url.host || !url.pathname.endsWith(path))
      throw new RecordServerError(`GET ${path} names a next page elsewhere, which is not followed`);
    const names = [...new Set(url.searchParams.keys())];
    return Object.fromEntries(names.map((name) => [name, url.searchParams.getAll(name)]));
  }

  /** Closes all connections; those with an earlier authority close when their requests have ended. */
  close(): Promise<void> {
    return closeEndpoint(this.#files.endpoint);
  }
}

function formatQuery(query: Query = {}): string {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [String(value)]).map((each: string) => [name, each]),
  );
  return pairs.length === 0 ? "" : `?${new URLSearchParams(pairs)}`;
}

function parseOrNothing(text: string): unknown {
  return tryOr(() => JSON.parse(text), undefined);
}
