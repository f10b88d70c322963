/**
 * The one error of netlink: the kernel refused, answered nonsense, or could not be asked.
 * Thrown in this folder; turned into CNI code 108 elsewhere.
 */
import { EBADMSG, formatErrno } from "../errno.ts";

export interface NetlinkFailure {
  /** What was tried, for people: `get link "eth0"`. */
  readonly operation: string;
  /** The kernel's; EBADMSG for an answer that does not parse. */
  readonly errno: number;
  /** The kernel's own words (extended acknowledgement), or ours about an answer. */
  readonly message?: string | undefined;
  /** Where in the request (the kernel's) or in the answer (ours) the fault lies, in bytes. */
  readonly offset?: number | undefined;
}

export class NetlinkError extends Error {
  override readonly name = "NetlinkError";
  readonly operation: string;
  readonly errno: number;
  readonly offset: number | undefined;

  constructor({ operation, errno, message, offset }: NetlinkFailure) {
    const words = message === undefined ? "" : `: ${message}`;
    const place = offset === undefined ? "" : ` at byte ${offset}`;
    super(`Cannot ${operation}: ${formatErrno(errno)}${words}${place}`);
    this.operation = operation;
    this.errno = errno;
    this.offset = offset;
  }
}

/** Bytes that are not what they claim: `what` was found where `wanted` should be. */
export function malformed(part: string, offset: number, got: string, wanted: string): NetlinkError {
  const message = `found ${got}, want ${wanted}`;
  return new NetlinkError({ operation: `decode ${part}`, errno: EBADMSG, message, offset });
}

/** What `ask` returns, or undefined when the kernel refuses with one of the error numbers. Other errors are thrown. */
export function unlessRefused<T>(errnos: readonly number[], ask: () => T): T | undefined {
  try {
    return ask();
  } catch (error) {
    if (error instanceof NetlinkError && errnos.includes(error.errno)) return undefined;
    throw error;
  }
}
