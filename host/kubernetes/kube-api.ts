/** The API server as a port: one call, one watch. client.ts implements it over the network. */
import { orElse } from "../lib/try-or.ts";

/** An object as received; the decoders of host/resources check it. */
export type KubeObject = Readonly<Record<string, unknown>>;

/** Priority of a call: calls for starting pods go first. */
export type Lane = "pod" | "background";

/** `accept` for metadata only, of an object or of events. A server without support for it sends everything. */
export const METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/** The same of a list. */
export const METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

export interface KubeCall {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** `/apis/ipam.vendor.io/v1/ipallocations/10.6.0.21` */
  readonly path: string;
  /** Undefined values are left out. */
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: object;
  /** Default `application/json`; for PATCH `application/merge-patch+json`. */
  readonly contentType?: string;
  /** Default `application/json`. */
  readonly accept?: string | undefined;
  /** Longest answer that is parsed: bytes. Default: as `MAX_ANSWER_BYTES`. */
  readonly maxBytes?: number | undefined;
  /** Called with the length of the answer. */
  readonly onBytes?: ((bytes: number) => void) | undefined;
  /** Default "background". */
  readonly lane?: Lane;
  /** Time for retries: milliseconds. Default: `READ_PATIENCE_MS` or `WRITE_PATIENCE_MS`. 0: one attempt. */
  readonly patienceMs?: number;
  /**
   * Longest time of the first attempt: milliseconds. After one that had no answer in time, the next may take twice as
   * long, up to `MAX_ATTEMPT_MS`, and that at once if the server answered other calls meanwhile. Default: the lane's.
   * Short for reads whose answers are small: one that is lost then costs little, and a slow server is still heard.
   */
  readonly attemptMs?: number;
  /** The caller waits for the answer, and its own caller decides when to try again: it never rests (RefusedWrites). */
  readonly isAsked?: boolean;
  /** Which transient failures that the server answers with end the call. Default: none. */
  readonly isFinal?: (answer: ApiError) => boolean;
  /** Called when an attempt had no answer, or a 5xx: it may be carried out even after a later one was answered. */
  readonly onUnanswered?: () => void;
  /** Aborts the call, queued or not; it rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** A server's versions, all of one etcd (events may have their own: none is read with them). */
export interface History {
  /** The highest that is known. */
  readonly version: bigint;
  /**
   * The server has told this version. `before`: the highest that was known when the answer was asked for, if that is as
   * of a later moment: a lower version is of another history, as after a restore of etcd.
   */
  answered(version: string | undefined, before?: bigint): void;
}

export interface KubeApi {
  /** Default: the server's history is taken for one. */
  readonly history?: History | undefined;
  /**
   * Returns the decoded answer of a 2xx. Retries transient failures with a growing, jittered pause: no connection, a
   * broken connection, no answer in time, 429 and 5xx (`Retry-After` is honoured). So **a POST may have been carried
   * out although a later attempt is answered with 409**: callers that create must compare the existing object.
   * Rejects with ApiError for a final answer, with ApiUnavailable when the patience is over, and with the signal's
   * reason.
   */
  call(call: KubeCall): Promise<KubeObject>;
  /**
   * Opens a watch: `onEvent` gets each event in order, `onBytes` the number of bytes received. Resolves when the
   * server ends it; rejects with ApiError (410 and the like, also as an event of type ERROR) or ApiUnavailable, and
   * with the signal's reason.
   */
  watch(watch: KubeWatch): Promise<void>;
}

export interface KubeWatch {
  readonly path: string;
  readonly query: Readonly<Record<string, string | number | boolean | undefined>>;
  /** Default `application/json`. */
  readonly accept?: string | undefined;
  /** The server has accepted the watch; the first event may take minutes. */
  readonly onOpen?: () => void;
  readonly onEvent: (event: WatchEvent) => void;
  readonly onBytes?: (bytes: number) => void;
  readonly signal: AbortSignal;
}

export interface WatchEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK";
  readonly object: KubeObject;
}

/** An answer other than 2xx (meta/v1 Status). */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** HTTP status. */
  readonly status: number;
  /** `AlreadyExists`, `Conflict`, `NotFound`, `Expired`, …; "" if the answer has none. */
  readonly reason: string;
  /** The call: `POST /apis/…`. */
  readonly operation: string;
  /** The Status object's `details.causes`: the fields that were refused. */
  readonly causes: readonly { readonly field: string; readonly message: string }[];

  constructor(
    answer: Pick<ApiError, "status" | "reason" | "operation" | "message"> & Partial<Pick<ApiError, "causes">>,
  ) {
    super(answer.message);
    this.status = answer.status;
    this.reason = answer.reason;
    this.operation = answer.operation;
    this.causes = answer.causes ?? [];
  }
}

/** There was no final answer within the caller's patience. The call may or may not have been carried out. */
export class ApiUnavailable extends Error {
  override readonly name = "ApiUnavailable";
  readonly operation: string;

  constructor(operation: string, message: string, options: { cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.operation = operation;
  }
}

/** Returns whether the object does not exist. */
export function isNotFound(error: unknown): error is ApiError {
  return error instanceof ApiError && error.status === 404;
}

/** Returns the answer; undefined if there is no such object or kind. Rejects as `KubeApi.call`. */
export async function callIfThere(api: Pick<KubeApi, "call">, call: KubeCall): Promise<KubeObject | undefined> {
  return await api.call(call).catch(orElse(isNotFound, undefined));
}

/** Returns whether the account lacks the right. */
export function isForbidden(error: unknown): error is ApiError {
  return error instanceof ApiError && error.status === 403;
}

/** Returns whether the name is taken, or the object has changed since. */
export function isConflict(error: unknown): error is ApiError {
  return error instanceof ApiError && error.status === 409;
}

/** Returns whether the object has gone, or has changed since. */
export const isOutdated = (error: unknown): boolean => isConflict(error) || isNotFound(error);
