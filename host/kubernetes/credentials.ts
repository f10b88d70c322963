/**
 * The identity for the API server: its endpoint and the headers of each request. The client library reads service
 * accounts, tokens, certificates and exec plugins; this file decides when they are read again.
 * Effects: reads files; runs exec plugins; loads the library on first use, which costs tens of megabytes of memory.
 */

import { stat } from "node:fs/promises";
import type { RequestOptions } from "node:https";
import { isDeepStrictEqual } from "node:util";
import type { KubeConfig } from "@kubernetes/client-node/dist/config.js";
import { ConfigError } from "../config/config-error.ts";
import { untilAborted } from "../lib/abort.ts";
import { describeValue, errnoOf, messageOf } from "../lib/describe.ts";
import { type Endpoint, openEndpoint, type TlsMaterial } from "./http/endpoint.ts";
import { loadKubeconfig, loadServiceAccount, type Origin } from "./kubeconfig.ts";

/** Time for which credentials are used before their files are checked again: milliseconds. */
const CREDENTIALS_FRESH_MS = 1_000;

/** Longest time for a kubeconfig's exec plugin: milliseconds. A hanging plugin is not started again. */
const EXEC_PLUGIN_MS = 20_000;

/** RFC 6750 §2.1, with all visible characters. */
const BEARER = /^Bearer [!-~]+$/;

/** Credentials of one request. */
export interface Access {
  readonly endpoint: Endpoint;
  /** Contains secrets: never log it. */
  readonly headers: Readonly<Record<string, string>>;
}

interface CredentialsOptions {
  /** A file, or several to be merged. Default: the service account of the pod that this process runs in. */
  readonly kubeconfig?: string | readonly string[] | undefined;
  /** A context of the kubeconfig; default: its current one. */
  readonly context?: string | undefined;
  /** Root of the service account's folder; default "/". */
  readonly root?: string;
  /** Default: {@link EXEC_PLUGIN_MS}. */
  readonly patienceMs?: number;
}

/** Throws ConfigError: the file, its field, the found and the wanted value. */
export async function loadCredentials(options: CredentialsOptions = {}): Promise<Credentials> {
  const credentials = new Credentials(options);
  await credentials.current();
  return credentials;
}

/** The files' credentials, until one changes. The library remembers a plugin's token until that expires. */
interface Loaded {
  readonly library: KubeConfig;
  readonly origin: Origin;
  /** Fingerprint of all files. */
  readonly fingerprint: string;
}

/** The library's part of a request. */
interface Answer {
  readonly headers: Readonly<Record<string, string>>;
  readonly material: TlsMaterial;
}

export class Credentials {
  /** Why the files cannot be read now, while their last valid content is used. */
  problem: string | undefined;
  readonly #options: CredentialsOptions;
  /** The last that gave credentials. */
  #loaded: Loaded | undefined;
  #access: Access | undefined;
  /** The parts from which the endpoint was made. */
  #parts: unknown;
  #readAtMs = Number.NEGATIVE_INFINITY;
  #forcedAtMs = Number.NEGATIVE_INFINITY;
  /** However many calls wait, the credentials are read once. */
  #reading: Promise<Access> | undefined;
  /** Not answered yet: a hanging plugin is waited for again instead of starting another. */
  #asked: { readonly loaded: Loaded; readonly answer: Promise<Answer> } | undefined;

  constructor(options: CredentialsOptions) {
    this.#options = options;
  }

  get endpoint(): Endpoint | undefined {
    return this.#access?.endpoint;
  }

  /** `https://10.96.0.1:443`, for logs. */
  get server(): string {
    return this.endpoint === undefined ? "" : `${this.endpoint.origin}${this.endpoint.basePath}`;
  }

  /** `file "/etc/berth/kubeconfig"`, for errors. */
  get source(): string {
    return this.#loaded?.origin.source ?? "";
  }

  /** The file that has the token now; undefined: the token is not in a file of its own. */
  get tokenFile(): string | undefined {
    return this.#loaded === undefined ? undefined : tokenFileOf(this.#loaded)?.path;
  }

  /** Returns credentials that are at most a second old; the last valid ones if files cannot be read now. */
  current(): Promise<Access> {
    if (this.#access !== undefined && performance.now() - this.#readAtMs < CREDENTIALS_FRESH_MS)
      return Promise.resolve(this.#access);
    this.#reading ??= this.#read(false);
    return this.#reading;
  }

  /**
   * After `used` was refused with 401: reads everything again, unless it has changed since. Returns the same object
   * if nothing has changed.
   */
  async refresh(used: Access): Promise<Access> {
    await this.#reading?.catch(() => {});
    if (this.#access !== undefined && this.#access !== used) return this.#access;
    if (this.#reading === undefined) {
      const nowMs = performance.now();
      // A token that stays refused must not run an exec plugin for every call; changed files are read in any case.
      const isForced = nowMs - this.#forcedAtMs >= CREDENTIALS_FRESH_MS;
      if (isForced) this.#forcedAtMs = nowMs;
      this.#reading = this.#read(isForced);
    }
    return this.#reading;
  }

  /** One read at a time. The last valid content stays meanwhile: a file may be half written. */
  async #read(isForced: boolean): Promise<Access> {
    try {
      const loaded = await this.#load(isForced);
      this.#access = this.#accessOf(loaded, await this.#ask(loaded));
      this.#loaded = loaded;
      this.problem = undefined;
      return this.#access;
    } catch (error) {
      if (this.#access === undefined) throw error;
      this.problem = messageOf(error);
      return this.#access;
    } finally {
      this.#readAtMs = performance.now();
      this.#reading = undefined;
    }
  }

  async #load(isForced: boolean): Promise<Loaded> {
    const before = this.#asked?.loaded ?? (isForced ? undefined : this.#loaded);
    if (before !== undefined && (await fingerprintOf(before.origin)) === before.fingerprint) return before;
    const { kubeconfig, context, root = "" } = this.#options;
    const { KubeConfig: Library } = await import("@kubernetes/client-node/dist/config.js");
    const library = new Library();
    const origin =
      kubeconfig === undefined ? loadServiceAccount(library, root) : await loadKubeconfig(library, kubeconfig, context);
    return { library, origin, fingerprint: await fingerprintOf(origin) };
  }

  async #ask(loaded: Loaded): Promise<Answer> {
    if (this.#asked?.loaded !== loaded) {
      const answer = ask(loaded).finally(() => {
        if (this.#asked?.answer === answer) this.#asked = undefined;
      });
      this.#asked = { loaded, answer };
    }
    const { answer } = this.#asked;
    const { patienceMs = EXEC_PLUGIN_MS } = this.#options;
    const signal = AbortSignal.timeout(patienceMs);
    return untilAborted(answer, signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
      const wanted = `an answer within ${patienceMs / 1000} s`;
      throw new ConfigError(loaded.origin.source, [{ path: "exec", got: "a program that has not ended", wanted }]);
    });
  }

  #accessOf({ library, origin }: Loaded, { headers, material }: Answer): Access {
    const before = this.#access;
    const server = library.getCurrentCluster()?.server ?? "";
    const parts = { server, material };
    const isSame = before !== undefined && isDeepStrictEqual(parts, this.#parts);
    // The same object means that nothing is new to a caller that was refused.
    if (isSame && isDeepStrictEqual(headers, before.headers)) return before;
    const endpoint = isSame ? before.endpoint : this.#openEndpoint(new URL(server), material, origin);
    this.#parts = parts;
    return { endpoint, headers };
  }

  #openEndpoint(url: URL, material: TlsMaterial, { source }: Origin): Endpoint {
    try {
      return openEndpoint(url, material, this.endpoint);
    } catch (error) {
      const given = ["ca", "cert", "key"].filter((part) => part in material).join(", ");
      const got = `${given} that OpenSSL refuses (${messageOf(error)})`;
      throw new ConfigError(source, [{ path: "", got, wanted: "certificates and a key in PEM that belong together" }]);
    }
  }
}

/** Identity and time of the files. Reading reports a missing file. */
async function fingerprintOf({ files }: Origin): Promise<string> {
  const states = await Promise.all(
    files.map(async ({ path }) => {
      const state = await stat(path, { bigint: true }).catch(() => undefined);
      return state === undefined ? "missing" : [state.ino, state.size, state.mtimeNs, state.ctimeNs].join(".");
    }),
  );
  return states.join(" ");
}

function tokenFileOf({ origin }: Loaded) {
  return origin.files.find(({ field }) => field.endsWith("tokenFile"));
}

/** Throws ConfigError. */
async function ask(loaded: Loaded): Promise<Answer> {
  const { library, origin } = loaded;
  const options: RequestOptions = {};
  try {
    await library.applyToHTTPSOptions(options);
  } catch (error) {
    throw new ConfigError(origin.source, [faultOf(error, loaded)]);
  }
  const { auth, headers: given, ca, cert, key, rejectUnauthorized, servername } = options;
  const headers = {
    ...(auth == null ? {} : { authorization: `Basic ${Buffer.from(auth).toString("base64")}` }),
    ...Object.fromEntries(
      Object.entries(given ?? {}).map(([name, value]) => [name.toLowerCase(), String(value).trim()]),
    ),
  };
  const { authorization = "" } = headers;
  const tokenFile = tokenFileOf(loaded);
  if (tokenFile !== undefined && !BEARER.test(authorization)) {
    const got = /^(?:Bearer)?$/.test(authorization) ? "an empty file" : "a text that is not a token";
    throw new ConfigError(origin.source, [{ path: tokenFile.field, got, wanted: "a file with a token" }]);
  }
  if (library.getCurrentUser()?.exec != null && authorization === "" && cert === undefined) {
    const fault = { path: "exec", got: "neither token nor certificate", wanted: "an ExecCredential" };
    throw new ConfigError(origin.source, [fault]);
  }
  const material = Object.fromEntries(
    Object.entries({ ca, cert, key, rejectUnauthorized, servername }).filter(([, value]) => value !== undefined),
  );
  return { headers, material };
}

/** Describes a file that cannot be read, or an exec plugin that failed. */
function faultOf(error: unknown, { library, origin }: Loaded) {
  const path = error instanceof Error && "path" in error ? error.path : undefined;
  const file = origin.files.find((one) => one.path === path);
  if (file !== undefined)
    return { path: file.field, got: `a file that cannot be read (${errnoOf(error)})`, wanted: "a readable file" };
  const command: unknown = library.getCurrentUser()?.exec?.command;
  if (command === undefined) return { path: "", got: messageOf(error), wanted: "usable credentials" };
  const got = `a failure of ${describeValue(command)} (${describeFailure(error)})`;
  return { path: "exec", got, wanted: "a program that prints an ExecCredential" };
}

function describeFailure(error: unknown): string {
  // The error of JSON.parse contains the text, which may be a bare token.
  if (error instanceof SyntaxError) return "an output that is no JSON";
  // The library reads fields of the status unchecked; an error of `spawn` has a code.
  if (error instanceof TypeError && errnoOf(error) === undefined) return "an output without a status";
  return describeValue(messageOf(error).trim());
}
