import { constants } from "node:os";
import { getSystemErrorMap } from "node:util";

/** Error numbers that the code compares with, on every 64-bit Linux. All others are only shown. */
export const EPERM = 1;
export const ENOENT = 2;
export const ESRCH = 3;
export const EINTR = 4;
export const EAGAIN = 11;
export const EACCES = 13;
export const EBUSY = 16;
export const EEXIST = 17;
export const EXDEV = 18;
export const ENODEV = 19;
export const EINVAL = 22;
export const ENOTTY = 25;
export const EROFS = 30;
export const EMSGSIZE = 90;
export const EBADMSG = 74;
export const EPROTONOSUPPORT = 93;
export const EOPNOTSUPP = 95;
export const EAFNOSUPPORT = 97;
export const EADDRINUSE = 98;
export const EADDRNOTAVAIL = 99;
export const ENETDOWN = 100;
export const ENETUNREACH = 101;
export const ENOBUFS = 105;
export const EHOSTUNREACH = 113;

/** Node.js calls it ENOTSUP, which the kernel does not have, and describes it as an error of sockets. */
const formatted = new Map([[EOPNOTSUPP, "operation not supported (EOPNOTSUPP)"]]);

/** Formats the number as `no such device (ENODEV)`, or as `errno 512` if it has no name. */
export function formatErrno(errno: number): string {
  return formatted.getOrInsertComputed(errno, () => describe(errno));
}

function describe(errno: number): string {
  const [name, words] = getSystemErrorMap().get(-errno) ?? [];
  if (name !== undefined && words !== undefined) return `${words} (${name})`;
  const constant = Object.entries(constants.errno).find(([, value]) => value === errno);
  return constant === undefined ? `errno ${errno}` : constant[0];
}
