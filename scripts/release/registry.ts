/**
 * A registry by its API (distribution-spec 1.1): the calls that a push needs. It logs in when it is asked to, with a
 * password or with the token that the registry's issuer gives for it.
 */

import { tryOr } from "../../host/lib/try-or.ts";
import type { Credentials } from "./credentials.ts";
import { type Descriptor, digestOf, INDEX, MANIFEST } from "./oci.ts";

const DOCKER = "application/vnd.docker.distribution.manifest";
/** Whatever a tag may stand for. */
const ANY_MANIFEST = [MANIFEST, INDEX, `${DOCKER}.v2+json`, `${DOCKER}.list.v2+json`, "*/*"].join(", ");
const MAX_MESSAGE_CHARACTERS = 300;

const PLACE = /^([a-zA-Z0-9.-]+(?::\d+)?|\[[0-9a-fA-F:]+\](?::\d+)?)((?:\/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*)\/?$/;
const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])(?::\d+)?$/;

export interface Place {
  readonly host: string;
  /** Of repositories: `network/`, or empty. */
  readonly prefix: string;
  readonly isLoopback: boolean;
}

/** Returns the parts of `registry.example:5000/network`, undefined for another text. */
export function parsePlace(text: string): Place | undefined {
  const [, host, path = ""] = PLACE.exec(text) ?? [];
  if (host === undefined) return undefined;
  return { host, prefix: path === "" ? "" : `${path.slice(1)}/`, isLoopback: LOOPBACK.test(host) };
}

interface Call {
  readonly method: "GET" | "HEAD" | "POST" | "PUT";
  readonly repository: string;
  /** Below the repository, or a whole address on any host. */
  readonly path: string;
  readonly type?: string;
  readonly body?: Uint8Array;
}

interface Content {
  readonly mediaType: string;
  readonly content: Buffer;
}

export class Registry {
  readonly host: string;
  readonly #base: URL;
  readonly #credentials: Credentials | undefined;
  /** The header `Authorization` of each repository. */
  readonly #authorizations = new Map<string, string>();

  constructor(host: string, isPlain: boolean, credentials?: Credentials) {
    this.host = host;
    this.#base = new URL(`${isPlain ? "http" : "https"}://${host}/v2/`);
    this.#credentials = credentials;
  }

  async hasBlob(repository: string, digest: string): Promise<boolean> {
    return (await this.#call({ method: "HEAD", repository, path: `blobs/${digest}` }, 200, 404)).status === 200;
  }

  async pushBlob(repository: string, digest: string, body: Buffer): Promise<void> {
    const opened = await this.#call({ method: "POST", repository, path: "blobs/uploads/" }, 202);
    const place = new URL(opened.headers.get("location") ?? "", opened.url);
    place.searchParams.set("digest", digest);
    const type = "application/octet-stream";
    await this.#call({ method: "PUT", repository, path: place.href, type, body }, 201);
  }

  /** Undefined if there is none; `reference` is a tag or a digest. */
  async findManifest(repository: string, reference: string): Promise<Buffer | undefined> {
    const answer = await this.#call({ method: "GET", repository, path: `manifests/${reference}` }, 200, 404);
    return answer.status === 200 ? Buffer.from(await answer.arrayBuffer()) : undefined;
  }

  async pushManifest(repository: string, reference: string, { mediaType, content }: Content): Promise<void> {
    const path = `manifests/${reference}`;
    const answer = await this.#call({ method: "PUT", repository, path, type: mediaType, body: content }, 201);
    const [wanted, found] = [digestOf(content), answer.headers.get("docker-content-digest")];
    if (found !== null && found !== wanted)
      throw new Error(`${this.host}/${repository} has stored ${wanted} as ${found}: it changes what is pushed`);
  }

  /** Whether the registry itself lists a manifest's referrers. */
  async knowsReferrers(repository: string, digest: string): Promise<boolean> {
    const answer = await this.#call({ method: "GET", repository, path: `referrers/${digest}` }, 200, 404);
    return answer.status === 200 && answer.headers.get("content-type")?.startsWith(INDEX) === true;
  }

  /** Throws unless the status is one of these. */
  async #call(call: Call, ...wanted: readonly number[]): Promise<Response> {
    let answer = await this.#fetch(call);
    const challenge = answer.headers.get("www-authenticate");
    if (answer.status === 401 && challenge !== null) {
      await answer.body?.cancel();
      this.#authorizations.set(call.repository, await this.#logIn(call.repository, challenge));
      answer = await this.#fetch(call);
    }
    if (wanted.includes(answer.status)) return answer;
    throw new Error(`${call.method} ${withoutQuery(answer.url)}: ${await this.#explain(answer)}`);
  }

  /** The header of a login goes to the registry only, and not to a store elsewhere to which it leads. */
  async #fetch({ method, repository, path, type, body }: Call): Promise<Response> {
    const address = new URL(path, new URL(`${repository}/`, this.#base));
    const headers = new Headers(method === "GET" ? { accept: ANY_MANIFEST } : {});
    if (type !== undefined) headers.set("content-type", type);
    const authorization = this.#authorizations.get(repository);
    if (authorization !== undefined && address.origin === this.#base.origin)
      headers.set("authorization", authorization);
    return reach(method, address, { headers, ...(body === undefined ? {} : { body: new Uint8Array(body) }) });
  }

  async #logIn(repository: string, challenge: string): Promise<string> {
    const basic = this.#credentials && formatBasic(this.#credentials);
    const [scheme = ""] = challenge.split(" ");
    if (scheme.toLowerCase() === "basic") {
      if (basic === undefined) throw new Error(`${this.host} wants a login, and there are no credentials for it`);
      return basic;
    }
    const fields = new Map(
      [...challenge.matchAll(/(\w+)="([^"]*)"/g)].map(([, name = "", value = ""]) => [name, value]),
    );
    const issuer = new URL(fields.get("realm") ?? "", this.#base);
    if (issuer.protocol !== "https:" && this.#base.protocol === "https:")
      throw new Error(`${this.host} has its tokens from ${issuer.origin}, where a password could be read on the way`);
    const service = fields.get("service");
    if (service !== undefined) issuer.searchParams.set("service", service);
    issuer.searchParams.set("scope", `repository:${repository}:pull,push`);
    const answer = await reach("GET", issuer, { headers: basic === undefined ? {} : { authorization: basic } });
    if (answer.status !== 200) throw new Error(`GET ${withoutQuery(answer.url)}: ${await this.#explain(answer)}`);
    const { token, access_token } = (await answer.json()) as { token?: string; access_token?: string };
    return `Bearer ${token ?? access_token}`;
  }

  /** Returns the status with the registry's words, and a hint. */
  async #explain(answer: Response): Promise<string> {
    const text = await answer.text();
    const [first] = firstErrors(text);
    const words = first === undefined ? text.trim() : `${first.code} ${first.message}`;
    const said = `${answer.status} ${words}`.slice(0, MAX_MESSAGE_CHARACTERS).trim();
    if (answer.status === 401)
      return this.#credentials === undefined
        ? `${said}; there are no credentials for ${this.host}`
        : `${said}; the credentials of user "${this.#credentials.user}" are refused`;
    if (answer.status === 403 || answer.status === 405) return `${said}; pushing is not permitted there`;
    return said;
  }
}

function formatBasic({ user, password }: Credentials): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;
}

function firstErrors(text: string): { code?: string; message?: string }[] {
  return tryOr(() => JSON.parse(text).errors ?? [], []);
}

/** Queries may have secrets of a store. */
const withoutQuery = (address: string): string => address.replace(/\?.*/s, "");

async function reach(method: string, address: URL, options: RequestInit): Promise<Response> {
  try {
    return await fetch(address, { method, ...options });
  } catch (error) {
    const { cause } = error as { cause?: Error & { code?: string } };
    const reason = cause?.code ?? cause?.message ?? String(error);
    throw new Error(`${method} ${withoutQuery(address.href)}: no answer (${reason})`);
  }
}

/** Returns the tag that stands in for a list of referrers where the registry has none (distribution-spec 1.1). */
export const referrersTag = (digest: string): string => digest.replace(":", "-");

/** Returns the index behind that tag with an entry more, or undefined if it has it. */
export function withReferrer(index: Buffer | undefined, entry: Descriptor): Buffer | undefined {
  const manifests: Descriptor[] = index === undefined ? [] : JSON.parse(index.toString()).manifests;
  if (manifests.some(({ digest }) => digest === entry.digest)) return undefined;
  return Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: INDEX, manifests: [...manifests, entry] }));
}
