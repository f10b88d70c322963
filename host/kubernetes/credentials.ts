/**
 * The identity for the API server: its address, the TLS material and the headers of each request. The client library reads kubeconfigs, service
 * accounts, tokens, certificates and exec plugins; this file decides when they are read again.
 * Effects: reads files; runs exec plugins; loads the library on first use, which costs tens of megabytes of memory.
 */

import { X509Certificate } from "node:crypto";
import { stat } from "node:fs/promises";
import { createSecureContext, type SecureContext } from "node:tls";
import type { KubeConfig } from "@kubernetes/client-node/dist/config.js";
import { ConfigError } from "../config/config-error.ts";
import { messageOf } from "../lib/describe.ts";
import { type Connection, readKubeconfig } from "./kubeconfig.ts";
import { LibraryCredentials, type Material } from "./library-credentials.ts";

/** How long credentials are used before their files are checked again: milliseconds. */
const CREDENTIALS_FRESH_MS = 1_000;

/** The server, how to verify it, and the client's certificate. The same object as long as connections may be kept. */
export interface Endpoint {
  /** `https://10.96.0.1:443`, without a path. */
  readonly origin: string;
  /** Prefix of each path, usually "". */
  readonly basePath: string;
  readonly tls: {
    readonly secureContext: SecureContext;
    readonly rejectUnauthorized: boolean;
    readonly servername: string | undefined;
  };
}

/** Credentials of one request. */
export interface Access {
  readonly endpoint: Endpoint;
  /** Contains secrets: never log it. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface Credentials {
  /** `https://10.96.0.1:443`, for logs. */
  readonly server: string;
  /** `file "/etc/berth/kubeconfig"`, for errors. */
  readonly source: string;
  /** The file that has the token now; absent: the token is not in a file of its own. */
  readonly tokenFile: string | undefined;
  /** Why the files cannot be read now, while their last valid content is used. */
  readonly problem: string | undefined;
  /** Returns credentials that are at most a second old; the last valid ones if files cannot be read now. */
  current(): Promise<Access>;
  /** After `used` was refused with 401: reads everything again, unless it has changed since. Returns the same object if nothing has changed. */
  refresh(used: Access): Promise<Access>;
}

interface CredentialsOptions {
  /** A file, or several to be merged. Default: the service account of the pod that this process runs in. */
  readonly kubeconfig?: string | readonly string[] | undefined;
  /** A context of the kubeconfig; default: its current one. */
  readonly context?: string | undefined;
  /** Root of the service account's folder; default "/". */
  readonly root?: string;
  /** Default: the process's environment. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/** Throws ConfigError: the file, its field, what was found and what is wanted. */
export async function loadCredentials(options: CredentialsOptions = {}): Promise<Credentials> {
  const files = new CredentialFiles(options);
  const { endpoint } = await files.current();
  return {
    server: `${endpoint.origin}${endpoint.basePath}`,
    source: files.source,
    get tokenFile() {
      return files.tokenFile;
    },
    get problem() {
      return files.problem;
    },
    current: () => files.current(),
    refresh: (used) => files.refresh(used),
  };
}

/** Credentials as read last; valid until one of their files changes. */
interface Loaded {
  readonly connection: Connection;
  readonly library: KubeConfig;
  /** Fingerprint of all files. */
  readonly fingerprint: string;
}

class CredentialFiles {
  problem: string | undefined;
  readonly #options: CredentialsOptions;
  #loaded: Loaded | undefined;
  #access: Access | undefined;
  /** The inputs of the endpoint, to notice changes. */
  #endpointKey = "";
  #readAtMs = Number.NEGATIVE_INFINITY;
  #forcedAtMs = Number.NEGATIVE_INFINITY;
  #reading: Promise<Access> | undefined;
  readonly #library = new LibraryCredentials();
  /** However many calls are refused at once, the credentials are read once. */
  #renewing: Promise<Access> | undefined;

  constructor(options: CredentialsOptions) {
    this.#options = options;
  }

  get source(): string {
    return this.#loaded?.connection.source ?? "";
  }

  get tokenFile(): string | undefined {
    return this.#loaded?.connection.files.find(({ field }) => field.endsWith("tokenFile"))?.path;
  }

  current(): Promise<Access> {
    if (this.#access !== undefined && performance.now() - this.#readAtMs < CREDENTIALS_FRESH_MS)
      return Promise.resolve(this.#access);
    this.#reading ??= this.#read(false);
    return this.#reading;
  }

  async refresh(used: Access): Promise<Access> {
    if (this.#access !== undefined && this.#access !== used) return this.#access;
    this.#renewing ??= this.#renew(used).finally(() => {
      this.#renewing = undefined;
    });
    return this.#renewing;
  }

  async #renew(used: Access): Promise<Access> {
    await this.#reading?.catch(() => {});
    if (this.#access !== undefined && this.#access !== used) return this.#access;
    const nowMs = performance.now();
    // A token that stays refused must not run an exec plugin for every call; changed files are read in any case.
    const isForced = nowMs - this.#forcedAtMs >= CREDENTIALS_FRESH_MS;
    if (isForced) this.#forcedAtMs = nowMs;
    this.#reading ??= this.#read(isForced);
    return this.#reading;
  }

  /** One read at a time. The last valid content stays in use while nothing better can be read: a file may be half written. */
  async #read(isForced: boolean): Promise<Access> {
    try {
      const loaded = await this.#load(isForced);
      const access = await this.#accessOf(loaded);
      this.#loaded = loaded;
      this.#access = access;
      this.problem = undefined;
      return access;
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
    const before = this.#loaded;
    if (!isForced && before !== undefined && (await fingerprintOf(before.connection)) === before.fingerprint)
      return before;
    const connection = await this.#connection();
    // First the fingerprint, then the content: a change in between is read once more, never missed.
    const fingerprint = await fingerprintOf(connection);
    const { KubeConfig: Library } = await import("@kubernetes/client-node/dist/config.js");
    const library = new Library();
    library.loadFromClusterAndUser(connection.cluster, connection.user);
    return { connection, library, fingerprint };
  }

  #connection(): Promise<Connection> | Connection {
    const { kubeconfig, context, root = "", env = process.env } = this.#options;
    return kubeconfig === undefined ? connectionInCluster(root, env) : readKubeconfig(kubeconfig, context);
  }

  async #accessOf({ connection, library }: Loaded): Promise<Access> {
    const { cluster, source } = connection;
    const { headers, tls } = await this.#library.read(library, connection);
    const key = [cluster.server, cluster.skipTLSVerify, tls.servername, tls.ca, tls.cert, tls.key]
      .map(String)
      .join("\n");
    const previous = this.#access;
    if (previous !== undefined && key === this.#endpointKey) {
      // The same object means that nothing is new to a caller that was refused.
      if (JSON.stringify(headers) === JSON.stringify(previous.headers)) return previous;
      return { endpoint: previous.endpoint, headers };
    }
    const endpoint = endpointOf(cluster.server, tls, source);
    this.#endpointKey = key;
    return { endpoint, headers };
  }
}

function endpointOf(server: string, tls: Material, source: string): Endpoint {
  const { ca, cert, key, rejectUnauthorized = true, servername } = tls;
  const { origin, pathname } = new URL(server);
  const given = Object.entries({ ca, cert, key }).filter(([, value]) => value !== undefined);
  try {
    // OpenSSL accepts a file without a certificate as an authority that signed nothing.
    if (typeof ca === "string" || ca instanceof Uint8Array) new X509Certificate(ca);
    const secureContext = createSecureContext(Object.fromEntries(given));
    const basePath = pathname.replace(/\/+$/, "");
    return { origin, basePath, tls: { secureContext, rejectUnauthorized, servername } };
  } catch (error) {
    const got = `${given.map(([name]) => name).join(", ")} that OpenSSL refuses (${messageOf(error)})`;
    throw new ConfigError(source, [{ path: "", got, wanted: "certificates and a key in PEM that belong together" }]);
  }
}

const ACCOUNT_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount";

/** As the kubelet presents it to the container. */
function connectionInCluster(root: string, env: Readonly<Record<string, string | undefined>>): Connection {
  const source = "service account of the pod";
  const require = (name: string): string => {
    const value = env[name];
    if (value !== undefined && value !== "") return value;
    const wanted = "an address: outside a cluster name a kubeconfig";
    throw new ConfigError(source, [{ path: name, got: "nothing", wanted }]);
  };
  const host = require("KUBERNETES_SERVICE_HOST");
  const port = require("KUBERNETES_SERVICE_PORT");
  const caFile = `${root}${ACCOUNT_FOLDER}/ca.crt`;
  const tokenFile = `${root}${ACCOUNT_FOLDER}/token`;
  return {
    source,
    cluster: {
      name: "in-cluster",
      server: `https://${host.includes(":") ? `[${host}]` : host}:${port}`,
      caFile,
      skipTLSVerify: false,
    },
    user: { name: "service-account", authProvider: { name: "tokenFile", config: { tokenFile } } },
    files: [
      { field: "ca.crt", path: caFile },
      { field: "tokenFile", path: tokenFile },
    ],
  };
}

/** Identity and time of the files. Reading reports a missing file. */
async function fingerprintOf({ files }: Connection): Promise<string> {
  const states = await Promise.all(
    files.map(async ({ path }) => {
      const state = await stat(path, { bigint: true }).catch(() => undefined);
      return state === undefined ? "missing" : [state.ino, state.size, state.mtimeNs, state.ctimeNs].join(".");
    }),
  );
  return states.join(" ");
}
