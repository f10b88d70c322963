/** The error of netlink: the kernel refused, sent an invalid answer, or could not be reached. */
import { EBADMSG, formatErrno } from "../errno.ts";

interface NetlinkFailure {
  /** The operation that failed, in the words of `ip`: `get link "eth0"`. */
  readonly operation: string;
  /** The kernel's; EBADMSG for an answer that cannot be decoded. */
  readonly errno: number;
  /** The kernel's explanation (extended acknowledgement), or ours for an answer that cannot be decoded. */
  readonly message?: string | undefined;
  /** Byte offset of the fault: in the request if the kernel reports it, in the answer if we do. */
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

/** Returns the error for bytes that cannot be decoded: `got` was found where `wanted` was expected. */
export function malformed(part: string, offset: number, got: string, wanted: string): NetlinkError {
  const message = `found ${got}, want ${wanted}`;
  return new NetlinkError({ operation: `decode ${part}`, errno: EBADMSG, message, offset });
}

/**
 * Returns the result of `ask`, or undefined if the kernel refuses with one of the error numbers: the object is absent,
 * or already exists. Throws other errors.
 */
export function unlessRefused<T>(errnos: readonly number[], ask: () => T): T | undefined {
  try {
    return ask();
  } catch (error) {
    if (error instanceof NetlinkError && errnos.includes(error.errno)) return undefined;
    throw error;
  }
}
