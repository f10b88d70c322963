/**
 * The API server as Berth sees it: one call, one watch. A port; client.ts is the implementation over the network.
 */

/** An object as it came: what it holds is for a decoder of host/resources to say. */
export type KubeObject = Readonly<Record<string, unknown>>;

/** Which calls wait when there are too many: those of a pod that is being started go first. */
export type Lane = "pod" | "background";

/** `accept` of who wants nothing but metadata of an object, or of the events of a watch. A server that cannot do that gives all. */
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
  /** Default "background". */
  readonly lane?: Lane;
  /** Until when the call is tried again, from its start: milliseconds. Default `CALL_PATIENCE_MS`. 0: one attempt. */
  readonly patienceMs?: number;
  /** Ends the call, also one that waits for its turn; it then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

export interface KubeApi {
  /**
   * The decoded answer of a 2xx. What may pass by itself is tried again with a growing, jittered pause: no connection, a connection that broke,
   * no answer in time, 429 and 5xx (`Retry-After` is honoured). So **a POST may have been carried out although a later attempt is
   * answered with 409**: whoever creates compares what is there. Rejects with ApiError for an answer that stands, with
   * ApiUnavailable when the patience is over.
   */
  call(call: KubeCall): Promise<KubeObject>;
  /**
   * Opens a watch; `onEvent` is told of each event in order, `onBytes` of what came over the wire. Resolves when the server ends it, rejects with
   * ApiError (410 and the like, also as an event of type ERROR) or ApiUnavailable, and with the signal's reason.
   */
  watch(watch: KubeWatch): Promise<void>;
  close(): Promise<void>;
}

export interface KubeWatch {
  readonly path: string;
  readonly query: Readonly<Record<string, string | number | boolean | undefined>>;
  /** Default `application/json`. */
  readonly accept?: string | undefined;
  /** The server has accepted; there may be no event for minutes. */
  readonly onOpen?: () => void;
  readonly onEvent: (event: WatchEvent) => void;
  readonly onBytes?: (bytes: number) => void;
  readonly signal: AbortSignal;
}

export interface WatchEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK";
  readonly object: KubeObject;
}

/** The API server's answer that is no 2xx (meta/v1 Status). */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** HTTP status. */
  readonly status: number;
  /** `AlreadyExists`, `Conflict`, `NotFound`, `Expired`, …; "" when the answer has none. */
  readonly reason: string;
  /** What it was about: `POST /apis/…`. */
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

/** There was no answer that stands for as long as the caller was ready to wait. The call may or may not have been carried out. */
export class ApiUnavailable extends Error {
  override readonly name = "ApiUnavailable";
  readonly operation: string;

  constructor(operation: string, message: string, options: { cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.operation = operation;
  }
}

/** Whether the answer says that there is no such object. */
export function isNotFound(error: unknown): error is ApiError {
  return error instanceof ApiError && error.status === 404;
}

/** Whether the answer says that the name is taken, or that somebody has written since. */
export function isConflict(error: unknown): error is ApiError {
  return error instanceof ApiError && error.status === 409;
}
