/** struct sockaddr_un as bytes. */

/** bits/socket.h */
export const AF_UNIX = 1;
/** linux/un.h: the longest path of a socket, with its final NUL. */
const UNIX_PATH_MAX = 108;

/** Family in host byte order, path. A leading "@" stands for the NUL of an abstract address, which ends without one. Undefined for a longer path. */
export function unixAddress(path: string): Uint8Array | undefined {
  const isAbstract = path.startsWith("@");
  const name = Buffer.from(isAbstract ? `\0${path.slice(1)}` : `${path}\0`);
  if (name.length > UNIX_PATH_MAX) return undefined;
  return Buffer.concat([new Uint8Array(Uint16Array.of(AF_UNIX).buffer), name]);
}
