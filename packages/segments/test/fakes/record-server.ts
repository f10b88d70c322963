/**
 * Nautobot's API for prefixes and addresses over HTTP, as far as the product calls it; with `product: "netbox"`,
 * NetBox's, as its documentation has it. It passes the suite of the real Nautobot (test/world/prefix-suite.ts).
 */
import { randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import { formatIp } from "../../../../host/net/ip.ts";
import {
  firstIp,
  formatPrefix,
  type Prefix,
  parsePrefix,
  prefixContains,
  prefixesOverlap,
} from "../../../../host/net/prefix.ts";
import type { Product } from "../../record-server/prefix-server.ts";
import { JsonServer } from "./json-server.ts";

interface Stored {
  readonly id: string | number;
  readonly [key: string]: unknown;
}

/** Content of the server, also of its backup. */
interface Content {
  readonly prefixes: readonly Stored[];
  readonly addresses: readonly Stored[];
}

interface Answer {
  readonly status: number;
  readonly json?: unknown;
}

const NAMESPACE = "11111111-aaaa-4aaa-8aaa-111111111111";

export class FakeRecordServer extends JsonServer {
  /** Called before a request is carried out; may wait, or throw: then the connection is closed without an answer. */
  before: (method: string, path: string) => Promise<void> | void = () => {};
  /** Called after it; the answer is lost if it throws. */
  after: (method: string, path: string) => Promise<void> | void = () => {};
  /** A rule of the server that changes descriptions. */
  describes: (description: unknown) => unknown = (description) => description;
  /** The answer to requests that would create an object. */
  refusal: Answer | undefined;
  /** `POST /api/ipam/prefixes/`, …, without queries. */
  readonly requests: string[] = [];
  content: Content = { prefixes: [], addresses: [] };
  #serial = 0;

  static start(product?: Product): Promise<FakeRecordServer> {
    return new FakeRecordServer(product).listen();
  }

  protected async serve(method: string, url: URL, body: Stored | undefined, response: ServerResponse): Promise<void> {
    this.requests.push(`${method} ${url.pathname}`);
    await this.before(method, url.pathname);
    const answer = this.#answer(method, url, body);
    await this.after(method, url.pathname);
    response.writeHead(answer.status, { "content-type": "application/json" });
    response.end(answer.json === undefined || answer.status === 204 ? "" : JSON.stringify(answer.json));
  }

  #answer(method: string, url: URL, body: Stored | undefined): Answer {
    const [, collection, id, action] =
      /^\/api\/ipam\/(prefixes|ip-addresses)\/(?:([^/]+)\/)?(?:(.*)\/)?$/.exec(url.pathname) ?? [];
    const key = collection === "prefixes" ? "prefixes" : "addresses";
    if (collection === undefined) return { status: 404, json: { detail: "Not found." } };
    if (id === undefined && method === "GET") return { status: 200, json: this.#list(key, url) };
    if (method === "POST" && this.refusal !== undefined) return this.refusal;
    if (id === undefined && method === "POST") return this.#make(key, body ?? { id: 0 });
    const found = this.content[key].find((each) => String(each.id) === id);
    if (found === undefined) return { status: 404, json: { detail: "No Prefix matches the given query." } };
    if (action === "available-prefixes" && method === "POST") return this.#allocate(found, body ?? { id: 0 });
    if (method !== "DELETE") return { status: 405, json: { detail: "Method not allowed." } };
    this.content = { ...this.content, [key]: this.content[key].filter((each) => each !== found) };
    return { status: 204 };
  }

  #list(key: keyof Content, url: URL): object {
    const parameter = (name: string) => url.searchParams.get(name) ?? undefined;
    const exact = key === "prefixes" ? parameter("prefix") : undefined;
    const within = prefixOf(
      parameter(key === "prefixes" ? "within" : this.product === "nautobot" ? "prefix" : "parent"),
    );
    const matches = this.content[key].filter((each) => {
      const prefix = prefixOf(each.prefix ?? each.address);
      if (prefix === undefined) return false;
      if (exact !== undefined) return formatPrefix(prefix) === exact;
      if (within === undefined) return true;
      return prefixContains(within, prefix.ip) && (key === "addresses" || prefix.length > within.length);
    });
    const [limit, offset] = [Number(parameter("limit") ?? 50), Number(parameter("offset") ?? 0)];
    url.searchParams.set("offset", String(offset + limit));
    const next = matches.length > offset + limit ? url.href : null;
    return { count: matches.length, next, previous: null, results: matches.slice(offset, offset + limit) };
  }

  #make(key: keyof Content, body: Stored): Answer {
    const prefix = prefixOf(body.prefix ?? body.address);
    if (prefix === undefined) return { status: 400, json: { prefix: ["This field is required."] } };
    const canonical = { ip: firstIp(prefix), length: prefix.length };
    const text = key === "prefixes" ? formatPrefix(canonical) : formatPrefix(prefix);
    const isThere = this.content[key].some((each) => (each.prefix ?? each.address) === text);
    if (isThere && this.product === "nautobot")
      return {
        status: 400,
        json: { __all__: ["Prefix with this Namespace, Network and Prefix length already exists."] },
      };
    this.#serial++;
    const id = this.product === "nautobot" ? randomUUID() : this.#serial;
    const created = new Date(1_800_000_000_000 + this.#serial).toISOString();
    const network = this.product === "nautobot" ? { namespace: { id: NAMESPACE } } : { vrf: null };
    const object = {
      tags: [],
      ...body,
      description: this.describes(body.description ?? ""),
      ...network,
      [key === "prefixes" ? "prefix" : "address"]: text,
      id,
      created,
    };
    this.content = { ...this.content, [key]: [...this.content[key], object] };
    return { status: 201, json: object };
  }

  #allocate(parent: Stored, { prefix_length: length, ...body }: Stored): Answer {
    const prefix = prefixOf(parent.prefix);
    if (prefix === undefined || typeof length !== "number")
      return { status: 400, json: { prefix_length: ["invalid"] } };
    const free = findFree(
      prefix,
      length,
      this.content.prefixes.flatMap((each) => prefixOf(each.prefix) ?? []),
    );
    const detail = "Insufficient space is available to accommodate the requested prefix size(s)";
    if (free === undefined) return { status: this.product === "nautobot" ? 204 : 409, json: { detail } };
    return this.#make("prefixes", { ...body, prefix: formatPrefix(free) });
  }
}

function prefixOf(text: unknown): Prefix | undefined {
  return typeof text === "string" ? parsePrefix(text) : undefined;
}

function findFree(parent: Prefix, length: number, taken: readonly Prefix[]): Prefix | undefined {
  const step = 1n << BigInt((parent.ip.family === 4 ? 32 : 128) - length);
  const children = taken.filter((each) => each.length > parent.length && prefixContains(parent, each.ip));
  for (let index = 0n; index < 2n ** BigInt(length - parent.length); index++) {
    const prefix = parsePrefix(`${formatIp({ ...parent.ip, value: parent.ip.value + index * step })}/${length}`);
    if (prefix !== undefined && !children.some((each) => prefixesOverlap(each, prefix))) return prefix;
  }
  return undefined;
}
