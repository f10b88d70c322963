/**
 * Renews the node-bound token in a file: at the start, and whenever 40 to 50 percent of its lifetime have passed.
 * Effects: calls to the API server; replaces the file.
 */

import { realpath, rm } from "node:fs/promises";
import { uptime } from "node:os";
import * as z from "zod";
import { ConfigError, decodeConfig } from "../config/config-error.ts";
import { describeValue, messageOf } from "../lib/describe.ts";
import type { Log } from "../lib/log.ts";
import { PeriodicWorker } from "../lib/periodic.ts";
import { replaceFile } from "../lib/replace-file.ts";
import { orAbsent } from "../lib/schema.ts";
import { MAX_ATTEMPT_MS } from "./http/retry.ts";
import type { KubeApi } from "./kube-api.ts";
import { readNamed } from "./kubeconfig.ts";

/** Interval at which the token's file and age are checked: milliseconds. */
export const TOKEN_CHECK_MS = 30_000;

/** Longest pause after a failed renewal: milliseconds. From a second on, each is random, up to a doubling limit. */
const TOKEN_RETRY_MAX_MS = 60_000;

/** Shortest lifetime of a token that the API server issues: seconds. */
const TOKEN_MIN_S = 600;

/** Longest lifetime that the agent requests, and that deploy/host-agents.yaml permits: seconds. */
const TOKEN_MAX_S = 604_800;

const TOKEN_RETRY_FIRST_MS = 1_000;

interface TokenRenewalOptions {
  readonly api: KubeApi;
  readonly file: string;
  /** The token must be bound to this node. */
  readonly node: string;
  readonly log: Log;
  /** Returns a number in [0, 1). */
  readonly random: () => number;
  /** Time since boot that counts suspension, and that changes of the wall clock do not affect: milliseconds. */
  readonly uptimeMs?: () => number;
}

/** Rejects with ConfigError if the file has no token that can be renewed. Later failures are the worker's problems. */
export async function renewToken(options: TokenRenewalOptions): Promise<PeriodicWorker> {
  const renewal = new TokenRenewal(options);
  await renewal.read();
  const { file, log, random } = options;
  return new PeriodicWorker({
    failure: `Renewing the token in file ${describeValue(file)} failed`,
    work: () => renewal.run(),
    retryMs: (failures) =>
      Math.min(TOKEN_RETRY_FIRST_MS * 2 ** (failures - 1), TOKEN_RETRY_MAX_MS) * (0.5 + random() / 2),
    log,
  });
}

interface Renewed {
  readonly text: string;
  /** By `uptimeMs`. */
  readonly dueMs: number;
}

const answerSchema = z.looseObject({ status: z.looseObject({ token: z.string() }) });

class TokenRenewal {
  readonly #options: TokenRenewalOptions;
  readonly #uptimeMs: () => number;
  /** The token of this process. The age of any other is unknown, because the machine's wall clock may be wrong. */
  #renewed: Renewed | undefined;

  constructor(options: TokenRenewalOptions) {
    this.#options = options;
    this.#uptimeMs = options.uptimeMs ?? (() => uptime() * 1_000);
  }

  /** Throws ConfigError. */
  async read(): Promise<{ text: string; token: NodeToken }> {
    const { file, node } = this.#options;
    const source = `file ${describeValue(file)}`;
    const text = readNamed(file, source, "a file with a token").trim();
    return { text, token: requireNode(decodeNodeToken(text, source), node, source) };
  }

  /** Returns when to check again: milliseconds. */
  async run(): Promise<number> {
    const { text, token } = await this.read();
    const nowMs = this.#uptimeMs();
    if (text !== this.#renewed?.text || nowMs >= this.#renewed.dueMs) {
      this.#renewed = await this.#renew(token).catch((error: unknown) => {
        throw new Error(`${messageOf(error)}; it expires at ${formatTime(token.expiresAt)}`, { cause: error });
      });
    }
    return Math.min(Math.max(this.#renewed.dueMs - nowMs, 0), TOKEN_CHECK_MS);
  }

  async #renew(token: NodeToken): Promise<Renewed> {
    const { file, node, log, random } = this.#options;
    const requestedMs = this.#uptimeMs();
    const { status } = decodeConfig(answerSchema, await this.#request(token), "the answer to the TokenRequest");
    const source = "the token in the answer to the TokenRequest";
    const { issuedAt, expiresAt } = requireNode(decodeNodeToken(status.token, source), node, source);
    await replaceToken(file, `${status.token}\n`);
    log.info({ file, node, expiresAt: formatTime(expiresAt) }, "Renewed the token of this node");
    const lifetimeMs = (expiresAt - issuedAt) * 1_000;
    return { text: status.token, dueMs: requestedMs + lifetimeMs * (0.5 - random() / 10) };
  }

  #request({ namespace, account, node, issuedAt, expiresAt }: NodeToken) {
    const expirationSeconds = Math.round(Math.min(Math.max(expiresAt - issuedAt, TOKEN_MIN_S), TOKEN_MAX_S));
    return this.#options.api.call({
      method: "POST",
      path: `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`,
      body: {
        apiVersion: "authentication.k8s.io/v1",
        kind: "TokenRequest",
        spec: { audiences: [], expirationSeconds, boundObjectRef: { apiVersion: "v1", kind: "Node", ...node } },
      },
      patienceMs: 0,
      attemptMs: MAX_ATTEMPT_MS,
    });
  }
}

function requireNode(token: NodeToken, node: string, source: string): NodeToken {
  if (token.node.name === node) return token;
  const got = `a token that is bound to Node ${describeValue(token.node.name)}`;
  throw new ConfigError(source, [{ path: "", got, wanted: `one for ${describeValue(node)}, the name of this node` }]);
}

function formatTime(seconds: number): string {
  return new Date(seconds * 1_000).toISOString();
}

/** A link leads to the file that is replaced. */
async function replaceToken(link: string, content: string): Promise<void> {
  const path = await realpath(link);
  const temporary = `${path}.new`;
  await rm(temporary, { force: true });
  await replaceFile(path, { content, mode: 0o600, temporary });
}

/** Times are seconds since 1970, by the API server's clock. */
interface NodeToken {
  readonly namespace: string;
  readonly account: string;
  readonly node: { readonly name: string; readonly uid: string };
  readonly issuedAt: number;
  readonly expiresAt: number;
}

const named = z.looseObject({ name: z.string(), uid: z.string() });
const schema = z.looseObject({
  iat: z.number(),
  exp: z.number(),
  "kubernetes.io": z.looseObject({
    namespace: z.string(),
    serviceaccount: named,
    node: orAbsent(named),
    pod: orAbsent(named),
  }),
});

/** `source` names the token in errors, which never show it. Throws ConfigError. */
function decodeNodeToken(text: string, source: string): NodeToken {
  const { iat, exp, "kubernetes.io": claims } = decodeConfig(schema, payloadOf(text, source), source);
  const { namespace, serviceaccount, node, pod } = claims;
  const wanted = "a token that is bound to a Node";
  if (pod !== undefined)
    throw new ConfigError(source, [{ path: "", got: "a token of a pod, which its kubelet renews", wanted }]);
  if (node === undefined) throw new ConfigError(source, [{ path: "", got: "a token that names no node", wanted }]);
  return {
    namespace,
    account: serviceaccount.name,
    node: { name: node.name, uid: node.uid },
    issuedAt: iat,
    expiresAt: exp,
  };
}

/** RFC 7519 §7.2: the second of three parts. */
function payloadOf(text: string, source: string): unknown {
  const parts = text.trim().split(".");
  try {
    if (parts.length === 3) return JSON.parse(Buffer.from(parts[1] ?? "", "base64url").toString());
  } catch {
    // The error of JSON.parse would show the token.
  }
  throw new ConfigError(source, [{ path: "", got: "a text that is not a JSON Web Token", wanted: "a token" }]);
}
