/**
 * The one error of packet sockets.
 */
import { formatErrno } from "../errno.ts";

export class PacketError extends Error {
  override readonly name = "PacketError";
  readonly operation: string;
  /** Index of the link in its namespace. */
  readonly link: number;
  readonly errno: number;

  constructor(operation: string, link: number, errno: number) {
    super(`Cannot ${operation} on link ${link}: ${formatErrno(errno)}`);
    this.operation = operation;
    this.link = link;
    this.errno = errno;
  }
}
