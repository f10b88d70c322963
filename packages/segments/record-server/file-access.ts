/**
 * The identity for a server of record: its address, the token in a file and the certificates that are trusted. Both
 * files are read again when they change, as a mounted Secret does.
 * Effects: reads files.
 */
import { ConfigError } from "../../../host/config/config-error.ts";
import type { Access, Credentials } from "../../../host/kubernetes/credentials.ts";
import { type Endpoint, openEndpoint } from "../../../host/kubernetes/http/endpoint.ts";
import { readNamed } from "../../../host/kubernetes/kubeconfig.ts";
import { describeValue, messageOf } from "../../../host/lib/describe.ts";

/** Time for which the files' contents are used before they are read again: milliseconds. */
const FRESH_MS = 1_000;

export interface ServerAddress {
  /** `https://ipam.example.com`, with a path if the server is below one. */
  readonly url: string;
  readonly tokenFile: string;
  /** Certificates of the authorities that are trusted instead of the public ones (PEM). */
  readonly caFile?: string | undefined;
}

/** NetBox's tokens of version 2 begin so. All other ones of both products have another scheme. */
const BEARER_TOKEN = /^nbt_/;

/** Returns the URL without a slash at its end. Throws ConfigError, which does not show a password in it. */
export function parseServerUrl(text: string): URL {
  const url = URL.parse(text);
  const isLocal = url !== null && /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname);
  const isSafe = url?.protocol === "https:" || (url?.protocol === "http:" && isLocal);
  if (url !== null && isSafe && `${url.username}${url.password}${url.search}${url.hash}` === "") return url;
  const got = text.includes("@") ? "one with a name or a password" : describeValue(text);
  const wanted = "https://HOST, with a path if the server is below one; http is for this machine alone";
  throw new ConfigError("the server's URL", [{ path: "", got, wanted }]);
}

export class FileAccess implements Pick<Credentials, "endpoint" | "current" | "refresh"> {
  /** Why the files cannot be read now, while their last valid content is used. */
  problem: string | undefined;
  readonly url: URL;
  readonly #address: ServerAddress;
  #access: Access | undefined;
  #authorities: string | undefined;
  #readAtMs = Number.NEGATIVE_INFINITY;
  #tokens: readonly string[] = [];

  /** Throws ConfigError for the URL. */
  constructor(address: ServerAddress) {
    this.#address = address;
    this.url = parseServerUrl(address.url);
  }

  get endpoint(): Endpoint | undefined {
    return this.#access?.endpoint;
  }

  /** Rejects with ConfigError if the files were never valid. */
  async current(): Promise<Access> {
    const nowMs = performance.now();
    if (this.#access !== undefined && nowMs - this.#readAtMs < FRESH_MS) return this.#access;
    return this.#read();
  }

  async refresh(used: Access): Promise<Access> {
    return this.#access === used ? this.#read() : this.current();
  }

  /** Replaces the tokens that were used lately, which a server may repeat. */
  redact(text: string): string {
    return this.#tokens.reduce((left, token) => left.replaceAll(token, "[token]"), text);
  }

  #read(): Access {
    this.#readAtMs = performance.now();
    try {
      const { tokenFile, caFile } = this.#address;
      const token = readToken(tokenFile);
      const source = `file ${describeValue(caFile)}`;
      const authorities = caFile === undefined ? "" : readNamed(caFile, source, "a file with certificates");
      const before = this.#authorities === authorities ? this.#access : undefined;
      const endpoint = before?.endpoint ?? this.#openEndpoint(authorities, source);
      this.#authorities = authorities;
      this.problem = undefined;
      // The same object means that nothing is new to a caller that was refused.
      if (before !== undefined && this.#tokens.at(-1) === token) return before;
      this.#tokens = [...this.#tokens.slice(-1), token];
      const scheme = BEARER_TOKEN.test(token) ? "Bearer" : "Token";
      this.#access = { endpoint, headers: { authorization: `${scheme} ${token}` } };
      return this.#access;
    } catch (error) {
      if (this.#access === undefined) throw error;
      this.problem = messageOf(error);
      return this.#access;
    }
  }

  #openEndpoint(authorities: string, source: string): Endpoint {
    try {
      return openEndpoint(this.url, authorities === "" ? {} : { ca: Buffer.from(authorities) }, this.endpoint);
    } catch (error) {
      const got = `a text that OpenSSL refuses (${messageOf(error)})`;
      throw new ConfigError(source, [{ path: "", got, wanted: "certificates in PEM" }]);
    }
  }
}

function readToken(file: string): string {
  const source = `file ${describeValue(file)}`;
  const token = readNamed(file, source, "a file with a token").trim();
  if (/^[!-~]{8,512}$/.test(token)) return token;
  const got = token === "" ? "an empty file" : "a text that is not a token";
  throw new ConfigError(source, [{ path: "", got, wanted: "one line of 8 to 512 visible characters: the token" }]);
}
