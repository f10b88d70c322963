/**
 * Authorizes callers of the servers of metrics and of the address map: the API server reviews the caller's bearer
 * token, and whether its user has a right. For scrapes it is to `get` the path `/metrics`, as kube-rbac-proxy requires.
 * Answers are cached for a while.
 */
import { hash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import * as z from "zod";
import type { KubeApi } from "../kubernetes/kube-api.ts";
import { BoundedMap } from "../lib/bounded-map.ts";
import { messageOf } from "../lib/describe.ts";
import type { Log } from "../lib/log.ts";
import { RateLimit } from "../lib/rate-limit.ts";
import { SerialQueue } from "../lib/serial.ts";
import { sourceOf } from "./connections.ts";
import { answerJson, type HttpAnswer, isOpen, type ServerSettings } from "./listen.ts";

/** Time for which an authorized caller needs no further review: milliseconds. */
const ALLOWED_MEMORY_MS = 60_000;

/** Time for which a refused caller gets no further review: milliseconds. */
export const REFUSED_MEMORY_MS = 10_000;

/** Most remembered callers of each kind. Refused ones do not push out allowed ones. */
const MAX_REMEMBERED_CALLERS = 64;

/** Most reviews that run or wait. Further callers are told to come back, unless they had the right before. */
const MAX_REVIEWS = 64;

/** Most reviews that run at once. */
export const REVIEWS_AT_ONCE = 4;

/** Most reviews for one source address. */
export const MAX_REVIEWS_OF_SOURCE = 4;

/** Rate of reviews of tokens without a user, by source address: callers can make up tokens as fast as they like. */
export const UNKNOWN_TOKENS = { burst: 8, perSecond: 1, maxKeys: 1_024 };

/** Longest time that a review may take: milliseconds. */
const REVIEW_PATIENCE_MS = 5_000;

/** Longest token that is reviewed: characters. */
const MAX_TOKEN_LENGTH = 16_384;

/** `unknown`: the token names no user; `busy`: too many reviews run. */
type Access = Remembered["access"] | "busy";

/** The header `authorization` of the request, and the caller's source address. */
export interface Caller {
  readonly authorization: string | undefined;
  readonly source: string;
}

export function callerOf({ headers: { authorization }, socket }: IncomingMessage): Caller {
  return { authorization, source: sourceOf(socket) };
}

interface Remembered {
  /** Name of the user; "" if there is none. */
  readonly user: string;
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

/** `refusal` is the answer to a caller without the right. */
interface Admission {
  readonly user: string;
  readonly refusal: HttpAnswer | undefined;
}

/** Lets callers into a server: every caller of an open one, else those whose token is reviewed. */
export class CallerAccess {
  readonly #options: CallerAccessOptions;
  readonly #allowed = new BoundedMap<string, Remembered>(MAX_REMEMBERED_CALLERS);
  readonly #others = new BoundedMap<string, Remembered>(MAX_REMEMBERED_CALLERS);
  readonly #running = new Map<string, { readonly source: string; readonly review: Promise<Remembered> }>();
  readonly #lanes = Array.from({ length: REVIEWS_AT_ONCE }, () => new SerialQueue());
  readonly #unknownTokens: RateLimit;

  constructor(options: CallerAccessOptions) {
    this.#options = options;
    this.#unknownTokens = new RateLimit(UNKNOWN_TOKENS, options.nowMs);
  }

  /**
   * Returns the answer to a caller without the right: 403 with the text `forbidden` if its user is known. Undefined if
   * it has the right. Never rejects.
   */
  async refusal(caller: Caller, right: Right, forbidden: string): Promise<HttpAnswer | undefined> {
    return (await this.admit(caller, right, forbidden)).refusal;
  }

  /** As {@link refusal}, with the name of the user; "" if it is unknown. */
  async admit(caller: Caller, right: Right, forbidden: string): Promise<Admission> {
    if (isOpen(this.#options)) return { user: "", refusal: undefined };
    try {
      const { user, access } = await this.#check(caller, right);
      const refuse = (status: number, error: string) => ({ user, refusal: answerJson(status, { error }) });
      switch (access) {
        case "allowed":
          return { user, refusal: undefined };
        case "refused":
          return refuse(403, forbidden);
        case "busy":
          return refuse(503, "Too many tokens are being reviewed; try again");
        case "unknown":
          return refuse(401, describeNeed(this.#options.audience));
      }
    } catch (error) {
      this.#options.log.debug({ err: error }, "Reviewing the token of a caller failed");
      const why = `The API server did not review the token: ${messageOf(error)}`;
      return { user: "", refusal: answerJson(503, { error: why }) };
    }
  }

  /** Rejects when the API server does not answer, or refuses the review. */
  async #check(
    { authorization, source }: Caller,
    right: Right,
  ): Promise<Pick<Remembered, "user"> & { access: Access }> {
    const token = /^Bearer +(\S+)$/i.exec(authorization ?? "")?.[1];
    if (token === undefined || token.length > MAX_TOKEN_LENGTH) return { user: "", access: "unknown" };
    const key = hash("sha256", `${token} ${JSON.stringify(right)}`, "base64");
    const known = this.#allowed.get(key) ?? this.#others.get(key);
    if (known !== undefined && known.untilMs > this.#options.nowMs()) return known;
    const running = this.#running.get(key);
    if (running !== undefined) return running.review;
    // Made-up tokens of others do not lock out a caller that recently had the right.
    const hadRight = this.#allowed.has(key);
    if (!hadRight && !this.#hasRoom(source)) return { user: "", access: "busy" };
    const work = () => this.#review(key, token, right);
    const lane = this.#lanes.reduce((best, each) => (each.size < best.size ? each : best));
    const review = (hadRight ? work() : lane.run(work)).finally(() => this.#running.delete(key));
    this.#running.set(key, { source, review });
    const found = await review;
    if (found.access !== "unknown" && !hadRight) this.#unknownTokens.giveBack(source);
    return found;
  }

  #hasRoom(source: string): boolean {
    const own = [...this.#running.values()].filter((each) => each.source === source).length;
    return this.#running.size < MAX_REVIEWS && own < MAX_REVIEWS_OF_SOURCE && this.#unknownTokens.take(source);
  }

  async #review(key: string, token: string, right: Right): Promise<Remembered> {
    const found = await this.#ask(token, right);
    const isAllowed = found.access === "allowed";
    const untilMs = this.#options.nowMs() + (isAllowed ? ALLOWED_MEMORY_MS : REFUSED_MEMORY_MS);
    const remembered = { ...found, untilMs };
    this.#allowed.delete(key);
    (isAllowed ? this.#allowed : this.#others).set(key, remembered);
    return remembered;
  }

  async #ask(token: string, right: Right): Promise<Omit<Remembered, "untilMs">> {
    const { api, audience } = this.#options;
    const unknown = { user: "", access: "unknown" } as const;
    if (api === undefined) return unknown;
    const create = (group: string, kind: string, spec: object) => {
      const path = `/apis/${group}/v1/${kind.toLowerCase()}s`;
      const body = { apiVersion: `${group}/v1`, kind, spec };
      return api.call({ method: "POST", path, body, patienceMs: REVIEW_PATIENCE_MS });
    };
    const audiences = audience === undefined ? {} : { audiences: [audience] };
    const { status } = tokenReview.parse(await create("authentication.k8s.io", "TokenReview", { token, ...audiences }));
    if (!status.authenticated || status.user === undefined) return unknown;
    // An authenticator that does not know audiences lets every token pass.
    if (audience !== undefined && !status.audiences.includes(audience)) return unknown;
    const { username, uid, groups, extra } = status.user;
    const spec = { user: username, uid, groups, extra, ...right };
    const answer = accessReview.parse(await create("authorization.k8s.io", "SubjectAccessReview", spec));
    return { user: username, access: answer.status.allowed ? "allowed" : "refused" };
  }
}

function describeNeed(audience: string | undefined): string {
  return `A bearer token of the cluster is needed${audience === undefined ? "" : `, of the audience ${audience}`}`;
}
