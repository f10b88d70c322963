/** The error of a refused request, which becomes CNI error JSON. */

/** CNI 1.1 §"Well-known Error Codes" (1-99) and Berth's own (from 100); docs/errors.md explains each. */
export const ErrorCode = {
  IncompatibleVersion: 1,
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

interface CniErrorOptions {
  readonly details?: string | undefined;
  /** The message with names of objects in other namespaces, for the node's log. Undefined without such names. */
  readonly forLog?: string | undefined;
  readonly cause?: unknown;
}

/**
 * A refusal. `message` names the failure, the object, the reason and the remedy; `details` is free text. Both appear in
 * the pod's events, so they must not name objects of other namespaces.
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

/** Throws the refusal of an interface, code 106. */
export function refuseInterface(text: string): never {
  throw new CniError(ErrorCode.InterfaceRefused, text);
}

/** Returns the JSON value of CNI 1.1 §"Error", in the version of the caller's configuration. */
export function formatCniError(error: CniError, cniVersion: string): Record<string, unknown> {
  return {
    cniVersion,
    code: error.code,
    msg: error.message,
    ...(error.details === undefined ? {} : { details: error.details }),
  };
}
