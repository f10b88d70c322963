/**
 * Authorizes callers of the servers of metrics and of the address map: the API server reviews the caller's bearer
 * token, and whether its user has a right. For scrapes it is to `get` the path `/metrics`, which is what
 * kube-rbac-proxy asks. Answers are remembered for a while.
 */
import { hash } from "node:crypto";
import * as z from "zod";
import type { KubeApi } from "../kubernetes/kube-api.ts";
import { BoundedMap } from "../lib/bounded-map.ts";
import { messageOf } from "../lib/describe.ts";
import type { Log } from "../lib/log.ts";
import { answerJson, type HttpAnswer, isOpen, type ServerSettings } from "./listen.ts";

/** Time for which a caller that has the right is let in without another review: milliseconds. */
const ALLOWED_MEMORY_MS = 60_000;

/** Time for which a caller that does not have it is refused without another review: milliseconds. */
export const REFUSED_MEMORY_MS = 10_000;

/** Most remembered callers of each kind. Refused ones do not push out allowed ones. */
const MAX_REMEMBERED_CALLERS = 64;

/** Most reviews at once; further callers are told to come back. A caller can make up tokens as fast as it likes. */
export const MAX_REVIEWS = 4;

/** Longest time that a review may take: milliseconds. */
const REVIEW_PATIENCE_MS = 5_000;

/** Longest token that is reviewed: characters. */
const MAX_TOKEN_LENGTH = 16_384;

/** `unknown`: the token names no user; `busy`: too many reviews run. */
type Access = "allowed" | "refused" | "unknown" | "busy";

interface Remembered {
  readonly access: "allowed" | "refused" | "unknown";
  readonly untilMs: number;
}

const user = z.object({
  username: z.string().default(""),
  uid: z.string().default(""),
  groups: z.array(z.string()).default([]),
  extra: z.record(z.string(), z.array(z.string())).default({}),
});

const tokenReview = z.object({
  status: z.object({
    authenticated: z.boolean().default(false),
    user: user.optional(),
    /** The requested audiences that the token has. */
    audiences: z.array(z.string()).default([]),
  }),
});

const accessReview = z.object({ status: z.object({ allowed: z.boolean().default(false) }) });

/** The right in a SubjectAccessReview. */
export type Right =
  | { readonly nonResourceAttributes: { readonly path: string; readonly verb: string } }
  | {
      readonly resourceAttributes: {
        readonly group: string;
        readonly resource: string;
        readonly verb: string;
        readonly namespace?: string;
      };
    };

interface CallerAccessOptions extends Pick<ServerSettings, "address" | "isInsecure"> {
  /** Reviews tokens; undefined without a cluster. */
  readonly api: Pick<KubeApi, "call"> | undefined;
  /** Monotonic: milliseconds. */
  readonly nowMs: () => number;
  readonly log: Log;
  /** Audience of the tokens; undefined: the API server's own. */
  readonly audience?: string;
}

/** Lets callers into a server: all of one that is open, else those whose token is reviewed. */
export class CallerAccess {
  readonly #options: CallerAccessOptions;
  readonly #allowed = new BoundedMap<string, Remembered>(MAX_REMEMBERED_CALLERS);
  readonly #others = new BoundedMap<string, Remembered>(MAX_REMEMBERED_CALLERS);
  readonly #running = new Map<string, Promise<Remembered>>();

  constructor(options: CallerAccessOptions) {
    this.#options = options;
  }

  /**
   * `authorization` is the header of the request. Returns the answer to a caller without the right, which is 403 with
   * the text `forbidden` for one that is known; undefined if it has the right. Never rejects.
   */
  async refusal(authorization: string | undefined, right: Right, forbidden: string): Promise<HttpAnswer | undefined> {
    if (isOpen(this.#options)) return undefined;
    try {
      switch (await this.#check(authorization, right)) {
        case "allowed":
          return undefined;
        case "refused":
          return answerJson(403, { error: forbidden });
        case "busy":
          return answerJson(503, { error: "Too many tokens are being reviewed; try again" });
        case "unknown":
          return answerJson(401, { error: "A bearer token of the cluster is needed" });
      }
    } catch (error) {
      this.#options.log.debug({ err: error }, "Reviewing the token of a caller failed");
      return answerJson(503, { error: `The API server did not review the token: ${messageOf(error)}` });
    }
  }

  /** Rejects when the API server does not answer, or refuses the review. */
  async #check(authorization: string | undefined, right: Right): Promise<Access> {
    const token = /^Bearer +(\S+)$/i.exec(authorization ?? "")?.[1];
    if (token === undefined || token.length > MAX_TOKEN_LENGTH) return "unknown";
    const key = hash("sha256", `${token} ${JSON.stringify(right)}`, "base64");
    const known = this.#allowed.get(key) ?? this.#others.get(key);
    if (known !== undefined && known.untilMs > this.#options.nowMs()) return known.access;
    const running = this.#running.get(key);
    if (running === undefined && this.#running.size >= MAX_REVIEWS) return "busy";
    const review = running ?? this.#review(key, token, right).finally(() => this.#running.delete(key));
    this.#running.set(key, review);
    return (await review).access;
  }

  async #review(key: string, token: string, right: Right): Promise<Remembered> {
    const access = await this.#ask(token, right);
    const isAllowed = access === "allowed";
    const remembered = { access, untilMs: this.#options.nowMs() + (isAllowed ? ALLOWED_MEMORY_MS : REFUSED_MEMORY_MS) };
    this.#allowed.delete(key);
    (isAllowed ? this.#allowed : this.#others).set(key, remembered);
    return remembered;
  }

  async #ask(token: string, right: Right): Promise<Remembered["access"]> {
    const { api, audience } = this.#options;
    if (api === undefined) return "unknown";
    const create = (group: string, kind: string, spec: object) => {
      const path = `/apis/${group}/v1/${kind.toLowerCase()}s`;
      const body = { apiVersion: `${group}/v1`, kind, spec };
      return api.call({ method: "POST", path, body, patienceMs: REVIEW_PATIENCE_MS });
    };
    const audiences = audience === undefined ? {} : { audiences: [audience] };
    const { status } = tokenReview.parse(await create("authentication.k8s.io", "TokenReview", { token, ...audiences }));
    if (!status.authenticated || status.user === undefined) return "unknown";
    // An authenticator that does not know audiences lets every token pass.
    if (audience !== undefined && !status.audiences.includes(audience)) return "unknown";
    const { username, uid, groups, extra } = status.user;
    const spec = { user: username, uid, groups, extra, ...right };
    const answer = accessReview.parse(await create("authorization.k8s.io", "SubjectAccessReview", spec));
    return answer.status.allowed ? "allowed" : "refused";
  }
}
