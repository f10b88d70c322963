/**
 * The one error a plugin shows: CNI error JSON with a code, a sentence and details.
 * Thrown wherever a request must be refused; turned into bytes by the agent's dispatcher only.
 */

/** CNI 1.1 §"Well-known Error Codes" (1-99) and Berth's own (from 100); docs/errors.md explains each. */
export const ErrorCode = {
  IncompatibleVersion: 1,
  UnsupportedField: 2,
  UnknownContainer: 3,
  InvalidEnvironment: 4,
  IoFailure: 5,
  DecodeFailure: 6,
  InvalidNetworkConfig: 7,
  InvalidNetns: 8,
  TryAgainLater: 11,
  PluginNotAvailable: 50,
  LimitedConnectivity: 51,
  NoPoolMatches: 100,
  PoolExhausted: 101,
  InvalidAnnotation: 102,
  PodUnknown: 103,
  AddressConflict: 104,
  GatewayUnreachable: 105,
  InterfaceRefused: 106,
  RegistryUnavailable: 107,
  KernelRefused: 108,
} as const;

export type ErrorCode = (typeof ErrorCode)[keyof typeof ErrorCode];

export interface CniErrorOptions {
  readonly details?: string | undefined;
  /** The same with the names of other namespaces' objects, for the node's log. Absent: the message has no such names to leave out. */
  readonly forLog?: string | undefined;
  readonly cause?: unknown;
}

/**
 * A refusal. `message` says what failed on which object, why, and what to do; `details` is free text or absent. The pod's owner reads both, in the
 * pod's events: neither names objects of other namespaces.
 */
export class CniError extends Error {
  override readonly name = "CniError";
  readonly code: ErrorCode;
  readonly details: string | undefined;
  readonly forLog: string | undefined;

  constructor(code: ErrorCode, message: string, { details, forLog, cause }: CniErrorOptions = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.details = details;
    this.forLog = forLog;
  }
}

/** The JSON value of CNI 1.1 §"Error", in the version of the caller's configuration. */
export function formatCniError(error: CniError, cniVersion: string): Record<string, unknown> {
  return {
    cniVersion,
    code: error.code,
    msg: error.message,
    ...(error.details === undefined ? {} : { details: error.details }),
  };
}
