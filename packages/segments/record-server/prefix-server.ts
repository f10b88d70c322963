/**
 * Prefixes of a server of record, and those within them that Berth makes: the calls of Nautobot and NetBox, which
 * differ in how a prefix's network of equal addresses is called, in statuses, and in how a lack of room is answered.
 */
import * as z from "zod";
import { decodeConfig } from "../../../host/config/config-error.ts";
import { orElse } from "../../../host/lib/try-or.ts";
import { formatPrefix, type Prefix, parsePrefix } from "../../../host/net/prefix.ts";
import type { Change, Child, LeaseServer, Mark, Parent } from "../blocks/lease-server.ts";
import { formatMark, parseMark } from "./child-prefix.ts";
import { type HttpClient, RecordServerError, type ServerAnswer, type ServerRequest } from "./http-client.ts";

/** Most attempts to read a list that others change. */
const MAX_READS = 5;

/** The prefix from which blocks are taken. */
interface ParentPrefix extends Parent {
  readonly id: string;
  /** The fields that another prefix must have to be in the same network. */
  readonly network: { readonly query: Readonly<Record<string, string>>; readonly body: object };
}

const prefixText = z.string().transform((text, context): Prefix => {
  const prefix = parsePrefix(text);
  if (prefix !== undefined) return prefix;
  context.addIssue({ code: "custom", message: "a prefix" });
  return z.NEVER;
});
const id = z.union([z.string(), z.int()]).transform(String);
const reference = z.object({ id, name: z.string().optional() });

const prefix = z.object({
  id,
  prefix: prefixText,
  created: z.string().nullish(),
  description: z.string().nullish(),
  namespace: reference.nullish(),
  vrf: reference.nullish(),
});
const prefixes = z.array(prefix);
const addresses = z.array(z.object({ address: prefixText, description: z.string().nullish() }));

type ListedPrefix = z.output<typeof prefix>;

interface Listed<T> {
  readonly path: string;
  readonly schema: z.ZodType<T>;
}

const PREFIXES: Listed<z.output<typeof prefixes>> = { path: "/api/ipam/prefixes/", schema: prefixes };
const ADDRESSES: Listed<z.output<typeof addresses>> = { path: "/api/ipam/ip-addresses/", schema: addresses };

export type Product = "nautobot" | "netbox";

interface Dialect {
  /** NetBox cannot be asked for a VRF by its name, but answers with it. */
  readonly inSpace: (space: string) => Readonly<Record<string, string>>;
  readonly isInSpace: (listed: ListedPrefix, space: string) => boolean;
  readonly networkOf: (parent: ListedPrefix) => ParentPrefix["network"];
  readonly status: string;
  /** The answer if no part is free. */
  readonly noRoom: number;
  /** The parameter of addresses within a prefix. */
  readonly within: string;
  /** Leaves the objects that an answer refers to out of it. */
  readonly brief: Readonly<Record<string, string>>;
}

const DIALECTS: Readonly<Record<Product, Dialect>> = {
  nautobot: {
    inSpace: (namespace) => ({ namespace }),
    isInSpace: () => true,
    networkOf: ({ namespace }) => ({
      query: namespace == null ? {} : { namespace: namespace.id },
      body: namespace == null ? {} : { namespace: namespace.id },
    }),
    status: "Active",
    noRoom: 204,
    within: "prefix",
    brief: { depth: "0" },
  },
  netbox: {
    inSpace: (space) => (space === "" ? { vrf_id: "null" } : {}),
    isInSpace: ({ vrf }, space) => (vrf?.name ?? "") === space,
    networkOf: ({ vrf }) => ({
      query: { vrf_id: vrf?.id ?? "null" },
      body: { vrf: vrf == null ? null : Number(vrf.id) },
    }),
    status: "active",
    noRoom: 409,
    within: "parent",
    brief: {},
  },
};

interface PrefixServerOptions {
  readonly client: Pick<HttpClient, "request" | "list">;
  readonly product: Product;
  /** Name of Nautobot's namespace or NetBox's VRF; "" for none. */
  readonly space: string;
  readonly source: PrefixSource;
}

/** Where blocks are taken of. */
interface PrefixSource {
  readonly addressSpace: string;
  readonly prefix: Prefix;
  /** Length of each block. */
  readonly blockSize: number;
}

/** The key of a ConfigMap under which its leases are remembered, which no range's name equals. */
export function keyOfPrefix({ addressSpace, prefix }: PrefixSource): string {
  return `prefix_${formatPrefix(prefix).replaceAll(/[:/]/g, "-")}_${addressSpace}`;
}

export class PrefixServer implements LeaseServer<ParentPrefix> {
  readonly hasOwnList = false;
  readonly #options: PrefixServerOptions;
  readonly #dialect: Dialect;

  constructor(options: PrefixServerOptions) {
    this.#options = options;
    this.#dialect = DIALECTS[options.product];
  }

  /** Rejects unless the server has the prefix once. */
  async findParent(signal: AbortSignal): Promise<ParentPrefix> {
    const { prefix, addressSpace, blockSize } = this.#options.source;
    const text = formatPrefix(prefix);
    const query = { prefix: text, ...this.#dialect.inSpace(this.#options.space) };
    const found = (await this.#list(PREFIXES, query, signal)).filter((each) =>
      this.#dialect.isInSpace(each, this.#options.space),
    );
    const [first] = found;
    if (first === undefined) throw new RecordServerError(`The server has no prefix ${text}`, { status: 404 });
    if (found.length > 1)
      throw new Error(`The server has the prefix ${text} ${found.length} times in its namespace or VRF`);
    const network = this.#dialect.networkOf(first);
    return { id: first.id, subnet: prefix, addressSpace, blockSize, excluded: [], network };
  }

  /** Returns all prefixes within, of whomever. */
  async children({ subnet, network }: ParentPrefix, signal: AbortSignal): Promise<readonly Child[]> {
    return (await this.#list(PREFIXES, { within: formatPrefix(subnet), ...network.query }, signal)).map(childOf);
  }

  /** Lets the server choose a free part, and make it. */
  async ask(
    { id, blockSize }: ParentPrefix,
    { mark }: { readonly mark: Mark },
    signal: AbortSignal,
  ): Promise<"range" | undefined> {
    const { noRoom, status } = this.#dialect;
    const body = { prefix_length: blockSize, status, description: formatMark(mark) };
    const path = `${PREFIXES.path}${id}/available-prefixes/`;
    const answer = await this.#unless(noRoom, { method: "POST", path, body, signal });
    if (answer === undefined || answer.status === noRoom) return "range";
    const made = childOf(decodeConfig(prefix, answer.json, `The answer to POST ${path}`));
    if (made.mark?.request === mark.request) return undefined;
    // It would never be found again, and more would be asked for until there is no room.
    await this.remove(made, signal);
    throw new Error(`The server changes the description of ${formatPrefix(made.prefix)}: "${body.description}"`);
  }

  async write(
    parent: ParentPrefix,
    { remove, make, mayBeThere }: Change,
    signal: AbortSignal,
  ): Promise<"refused" | undefined> {
    const [child, made] = [remove[0], make[0]];
    if (child !== undefined) await this.remove(child, signal);
    else if (made !== undefined) return this.make(parent, made.prefix, { mark: made.mark, mayBeThere }, signal);
    return undefined;
  }

  async make(
    { network }: ParentPrefix,
    prefix: Prefix,
    { mark, mayBeThere }: { readonly mark: Mark; readonly mayBeThere: boolean },
    signal: AbortSignal,
  ): Promise<"refused" | undefined> {
    const { status } = this.#dialect;
    const body = { prefix: formatPrefix(prefix), status, description: formatMark(mark), ...network.body };
    const expected = mayBeThere ? 400 : undefined;
    const made = await this.#unless(expected, { method: "POST", path: PREFIXES.path, body, signal });
    return made === undefined ? "refused" : undefined;
  }

  async remove({ id }: Child, signal: AbortSignal): Promise<void> {
    await this.#unless(404, { method: "DELETE", path: `${PREFIXES.path}${id}/`, signal });
  }

  async addresses(
    { network }: ParentPrefix,
    { prefix, cluster }: { readonly prefix: Prefix; readonly cluster: string },
    signal: AbortSignal,
  ): Promise<readonly Prefix[]> {
    const query = { [this.#dialect.within]: formatPrefix(prefix), ...network.query };
    const written = await this.#list(ADDRESSES, query, signal);
    return written
      .filter(({ description }) => description?.includes(`[berth ${cluster}]`) !== true)
      .map(({ address }) => address);
  }

  /** Reads a list again that changed meanwhile: a prefix that is missing in it would be taken for a free one. */
  async #list<T>(
    { path, schema }: Listed<T>,
    query: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<T> {
    const full = { ...query, ...this.#dialect.brief };
    for (let reads = 0; reads < MAX_READS; reads++) {
      const { items, isExact } = await this.#options.client.list({ path, query: full, signal });
      if (isExact) return decodeConfig(schema, items, `The answer to GET ${path}`);
    }
    throw new RecordServerError(`GET ${path} was changed by others ${MAX_READS} times; trying again later`);
  }

  /** Returns undefined for a refusal with this status. */
  async #unless(expected: number | undefined, request: ServerRequest): Promise<ServerAnswer | undefined> {
    const isExpected = (error: unknown): boolean =>
      error instanceof RecordServerError && expected !== undefined && error.status === expected;
    return await this.#options.client.request(request).catch(orElse(isExpected, undefined));
  }
}

function childOf({ id, prefix, created, description }: ListedPrefix): Child {
  return { id, prefix, created: created ?? "", mark: parseMark(description ?? "") };
}
