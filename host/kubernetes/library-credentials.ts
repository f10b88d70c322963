/**
 * Lets the client library put its credentials into a request that is never sent: headers and TLS material.
 * Effects: reads files; runs exec plugins.
 */
import type { KubeConfig } from "@kubernetes/client-node/dist/config.js";
import { ConfigError } from "../config/config-error.ts";
import { describeValue, errnoOf, messageOf } from "../lib/describe.ts";
import { openDeadline } from "./http/deadline.ts";
import type { Connection } from "./kubeconfig.ts";

/** How long a kubeconfig's exec plugin may take: milliseconds. A hanging plugin is not started a second time. */
const EXEC_PLUGIN_MS = 20_000;

/** RFC 6750 §2.1, with all visible characters. */
const BEARER = /^Bearer [!-~]+$/;

export interface Material {
  readonly ca?: unknown;
  readonly cert?: unknown;
  readonly key?: unknown;
  readonly rejectUnauthorized?: boolean;
  readonly servername?: string;
}

interface LibraryAnswer {
  readonly headers: Record<string, string>;
  readonly tls: Material;
}

/** One plugin at a time: the next read of the same user waits for a hanging plugin instead of starting another. */
export class LibraryCredentials {
  readonly #patienceMs: number;
  #asked: { readonly user: string; readonly answer: Promise<LibraryAnswer> } | undefined;

  constructor(patienceMs = EXEC_PLUGIN_MS) {
    this.#patienceMs = patienceMs;
  }

  /** Rejects with ConfigError, also if there is no answer in time. */
  async read(library: KubeConfig, connection: Connection): Promise<LibraryAnswer> {
    const user = JSON.stringify(connection.user);
    if (this.#asked?.user !== user) {
      const answer = ask(library, connection).finally(() => {
        if (this.#asked?.answer === answer) this.#asked = undefined;
      });
      this.#asked = { user, answer };
    }
    const { answer } = this.#asked;
    const deadline = openDeadline(this.#patienceMs, []);
    const tooLong = new Promise<never>((_, reject) => {
      deadline.signal.addEventListener("abort", () => reject(this.#unanswered(connection)), { once: true });
    });
    try {
      return await Promise.race([answer, tooLong]);
    } finally {
      deadline.end();
    }
  }

  #unanswered({ source }: Connection): ConfigError {
    const wanted = `an answer within ${this.#patienceMs / 1000} s`;
    return new ConfigError(source, [{ path: "exec", got: "a program that has not ended", wanted }]);
  }
}

/** Throws ConfigError. */
async function ask(library: KubeConfig, connection: Connection): Promise<LibraryAnswer> {
  const headers: Record<string, string> = {};
  let tls: Material = {};
  // Private in the library's types. It would create a dispatcher, and so a connection, per request.
  Object.assign(library, {
    createDispatcher: (_: unknown, material: Material) => {
      tls = material;
      return undefined;
    },
  });
  const request = {
    setHeaderParam: (name: string, value: string) => {
      headers[name.toLowerCase()] = value.trim();
    },
  };
  const { source, user } = connection;
  try {
    // The library calls nothing else of a request.
    await library.applySecurityAuthentication(request as Parameters<KubeConfig["applySecurityAuthentication"]>[0]);
  } catch (error) {
    throw new ConfigError(source, [faultOf(error, connection)]);
  }
  const tokenFile = connection.files.find(({ field }) => field.endsWith("tokenFile"));
  const { authorization = "" } = headers;
  if (tokenFile !== undefined && !BEARER.test(authorization)) {
    const got = /^(?:Bearer)?$/.test(authorization) ? "an empty file" : "a text that is not a token";
    throw new ConfigError(source, [{ path: tokenFile.field, got, wanted: "a file with a token" }]);
  }
  if (user.exec !== undefined && headers.authorization === undefined && tls.cert === undefined)
    throw new ConfigError(source, [
      { path: "exec", got: "neither token nor certificate", wanted: "an ExecCredential" },
    ]);
  return { headers, tls };
}

/** Describes a file that cannot be read, or an exec plugin that failed. */
function faultOf(error: unknown, { files, user }: Connection) {
  const path = error instanceof Error && "path" in error ? error.path : undefined;
  const file = files.find((one) => one.path === path);
  if (file !== undefined)
    return { path: file.field, got: `a file that cannot be read (${errnoOf(error)})`, wanted: "a readable file" };
  const exec: unknown = user.exec;
  const command = typeof exec === "object" && exec !== null && "command" in exec ? exec.command : undefined;
  if (command === undefined) return { path: "", got: messageOf(error), wanted: "usable credentials" };
  // The error of JSON.parse contains the text, which may be a bare token.
  const what = error instanceof SyntaxError ? "an output that is no JSON" : describeValue(messageOf(error).trim());
  const got = `a failure of ${describeValue(command)} (${what})`;
  return { path: "exec", got, wanted: "a program that prints an ExecCredential" };
}
