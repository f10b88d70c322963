/**
 * Nautobot's API for single addresses, tags, namespaces and VRFs over HTTP, as far as the product calls it; with
 * `product: "netbox"`, NetBox's, as its documentation has it. It passes the suite of the real Nautobot
 * (test/world/address-suite.ts).
 */
import { randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import { formatIp, parseIp } from "../../../../host/net/ip.ts";
import { parsePrefix, prefixContains } from "../../../../host/net/prefix.ts";
import type { Product } from "../../record-server/prefix-server.ts";
import { JsonServer } from "./json-server.ts";

/** An entry as it is stored. */
interface Entry {
  id: string;
  ip: string;
  length: number;
  space: string;
  dnsName: string;
  description: string;
  status: unknown;
  tags: readonly string[];
}

interface Answer {
  readonly status: number;
  readonly json?: unknown;
  /** In place of JSON. */
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

type Body = Readonly<Record<string, unknown>>;

const MISSING = "Related object not found using the provided attributes";

export class AddressApi extends JsonServer {
  readonly entries = new Map<string, Entry>();
  /** The identities of entries that other objects need. */
  readonly needed = new Set<string>();
  /** By name: the identity. */
  readonly tags = new Map([["berth", "1"]]);
  /** Namespaces or VRFs by name. */
  readonly spaces: Map<string, string>;
  prefixes: readonly string[] = ["10.6.0.0/16", "fd00:6::/64"];
  /** `POST /api/ipam/ip-addresses/`, with queries. */
  readonly requests: string[] = [];
  /** Answers in place of the server, before it does anything; or "lost": the answer is lost after it was done. */
  misbehave: (method: string, path: string, entries: number) => Answer | "lost" | "hang" | undefined = () => undefined;
  #serial = 0;

  constructor(product?: Product) {
    super(product);
    this.spaces = new Map(this.product === "nautobot" ? [["Global", "g"]] : [["blue", "7"]]);
  }

  static start(product?: Product): Promise<AddressApi> {
    return new AddressApi(product).listen();
  }

  /** As an administrator. */
  async call(method: string, path: string, body?: unknown): Promise<unknown> {
    const { status, json } = this.#answer(method, new URL(path, this.url), body);
    if (status >= 300) throw new Error(`${method} ${path} failed with ${status}: ${JSON.stringify(json)}`);
    return json;
  }

  protected async serve(method: string, url: URL, body: unknown, response: ServerResponse): Promise<void> {
    this.requests.push(`${method} ${url.pathname}${url.search}`);
    const other = this.misbehave(method, url.pathname, Array.isArray(body) ? body.length : 0);
    if (other === "hang") return;
    const own = other === undefined || other === "lost" ? this.#answer(method, url, body) : other;
    if (other === "lost") {
      response.destroy();
      return;
    }
    response.writeHead(own.status, { "content-type": "application/json", ...own.headers });
    response.end(own.text ?? (own.json === undefined ? "" : JSON.stringify(own.json)));
  }

  #answer(method: string, url: URL, body: unknown): Answer {
    const [, collection, id] = /^\/api\/((?:ipam|extras)\/[-a-z]+)\/(?:([^/]+)\/)?$/.exec(url.pathname) ?? [];
    const names = new Map([
      ["extras/tags", this.tags],
      ["ipam/namespaces", this.spaces],
      ["ipam/vrfs", this.spaces],
    ]).get(collection ?? "");
    if (names !== undefined) {
      const name = url.searchParams.get("name") ?? "";
      const found = names.get(name);
      const results = found === undefined ? [] : [{ id: this.#shownId(found), name, slug: name.toLowerCase() }];
      return { status: 200, json: { count: results.length, next: null, results } };
    }
    if (collection !== "ipam/ip-addresses") return { status: 404, json: { detail: "Not found." } };
    if (method === "GET") return id === undefined ? this.#list(url) : this.#show(id);
    const list = (Array.isArray(body) ? body : [id === undefined ? body : { ...Object(body), id }]) as Body[];
    if (method === "POST") return this.#create(list, Array.isArray(body));
    if (method === "PATCH") return this.#change(list, id === undefined);
    if (list.some((each) => this.needed.has(String(each.id))))
      return { status: 409, json: { detail: "Unable to delete object. 1 dependent objects were found: vip" } };
    for (const each of list) this.entries.delete(String(each.id));
    return { status: 204 };
  }

  #shownId(id: string): string | number {
    return this.product === "netbox" ? Number(id) : id;
  }

  #show(id: string): Answer {
    const found = this.entries.get(id);
    return found === undefined
      ? { status: 404, json: { detail: "Not found." } }
      : { status: 200, json: this.#json(found) };
  }

  #json({ id, ip, length, dnsName, description, status, tags }: Entry): object {
    return {
      ...{ id: this.#shownId(id), address: `${ip}/${length}`, dns_name: dnsName, description, status },
      tags: tags.map((name) => ({ id: this.#shownId(this.tags.get(name) ?? "0") })),
    };
  }

  #list({ searchParams }: URL): Answer {
    const one = (name: string) => searchParams.get(name) ?? undefined;
    const places = new Set(searchParams.getAll("address"));
    const tag = one("tag") ?? [...this.tags].find(([, id]) => id === one("tags"))?.[0];
    const vrf = one("vrf_id");
    const space = one("namespace") ?? (vrf === "null" ? "" : [...this.spaces].find(([, id]) => id === vrf)?.[0]);
    const isAsked = (entry: Entry) =>
      (space === undefined || entry.space === space) &&
      (places.size === 0 || places.has(entry.ip)) &&
      (tag === undefined || entry.tags.includes(tag)) &&
      entry.description.toLowerCase().includes((one("description__ic") ?? "").toLowerCase());
    const matches = [...this.entries.values()].filter(isAsked);
    const [limit, offset] = [Number(one("limit") ?? 50), Number(one("offset") ?? 0)];
    const results = matches.slice(offset, offset + limit).map((each) => this.#json(each));
    return { status: 200, json: { count: matches.length, next: null, previous: null, results } };
  }

  #create(list: readonly Body[], isList: boolean): Answer {
    const faults = list.map((body) => this.#faultOf(body));
    if (faults.some((fault) => Object.keys(fault).length > 0))
      return { status: 400, json: isList ? faults : faults[0] };
    const made = list.map((body) => {
      const [ip = "", length = ""] = String(body.address).split("/");
      this.#serial++;
      const entry = {
        id: this.product === "netbox" ? String(this.#serial) : randomUUID(),
        ...{ ip: canonical(ip), length: Number(length), space: spaceName(body, this.product) },
        ...{ dnsName: String(body.dns_name ?? "").toLowerCase(), description: String(body.description ?? "") },
        ...{ status: body.status, tags: tagsOf(body) },
      };
      this.entries.set(entry.id, entry);
      return this.#json(entry);
    });
    return { status: 201, json: isList ? made : made[0] };
  }

  #change(list: readonly Body[], isList: boolean): Answer {
    for (const body of list) {
      const fault = dnsFault(body);
      if (Object.keys(fault).length > 0) return { status: 400, json: fault };
    }
    const changed = list.flatMap((body) => {
      const entry = this.entries.get(String(body.id));
      if (entry === undefined) return [];
      const length = /\/(\d+)$/.exec(String(body.address ?? ""))?.[1];
      if (length !== undefined) entry.length = Number(length);
      if (typeof body.dns_name === "string") entry.dnsName = body.dns_name.toLowerCase();
      if (typeof body.description === "string") entry.description = body.description;
      if (body.status !== undefined) entry.status = body.status;
      if (Array.isArray(body.tags)) entry.tags = tagsOf(body);
      return [this.#json(entry)];
    });
    return { status: 200, json: isList ? changed : changed[0] };
  }

  /** As the real server has them: by field; empty if nothing is wrong. */
  #faultOf(body: Body): Readonly<Record<string, readonly string[]>> {
    const missing = tagsOf(body).filter((name) => !this.tags.has(name));
    if (missing.length > 0) return { tags: [`${MISSING}: {'name': '${missing[0]}'}`] };
    if (Object.keys(dnsFault(body)).length > 0 || this.product === "netbox") return dnsFault(body);
    const space = spaceName(body, this.product);
    if (!this.spaces.has(space)) return { namespace: [`${MISSING}: {'name': '${space}'}`] };
    const host = canonical(String(body.address).split("/")[0] ?? "");
    const ip = parseIp(host);
    const parents = this.prefixes.flatMap((text) => parsePrefix(text) ?? []);
    if (ip === undefined || !parents.some((parent) => prefixContains(parent, ip)))
      return { namespace: [`No suitable parent Prefix for ${host} exists in Namespace ${space}`] };
    const isThere = [...this.entries.values()].some((entry) => entry.ip === host && entry.space === space);
    return isThere ? { __all__: ["IP address with this Parent and Host already exists."] } : {};
  }
}

function canonical(text: string): string {
  const ip = parseIp(text);
  return ip === undefined ? text : formatIp(ip);
}

function dnsFault(body: Body): Readonly<Record<string, readonly string[]>> {
  const wanted = "Only alphanumeric characters, hyphens, periods, and underscores are allowed in DNS names";
  return /^[-\w.]*$/.test(String(body.dns_name ?? "")) ? {} : { dns_name: [wanted] };
}

function tagsOf({ tags }: Body): readonly string[] {
  return Array.isArray(tags) ? tags.map((tag) => String(Object(tag).name)) : [];
}

function spaceName(body: Body, product: Product): string {
  const named = product === "nautobot" ? body.namespace : body.vrf;
  return typeof named === "string" ? named : String(Object(named).name ?? "");
}
