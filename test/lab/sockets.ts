/**
 * Sockets of other namespaces in this process: opened inside, used by Node.js as if they were its own.
 * A namespace needs no process of its own for that.
 * Effects: file descriptors that belong to the caller; the calling thread is in the namespace while it opens one.
 */
import { getSystemErrorName } from "node:util";
import { loadNative, type Native } from "../../host/kernel/native.ts";
import { encodeIp } from "../../host/kernel/netlink/ip-bytes.ts";
import { withNetns } from "../../host/kernel/netns.ts";
import { type Ip, parseIp } from "../../host/net/ip.ts";

export type Protocol = "tcp" | "udp";

export interface Place {
  /** An address as text. */
  readonly address: string;
  readonly port: number;
}

const AF_INET = 2;
const AF_INET6 = 10;
const SOCK_STREAM = 1;
const SOCK_DGRAM = 2;
const SOCK_NONBLOCK = 0o4000;
const SOCK_CLOEXEC = 0o2000000;
const SOL_SOCKET = 1;
const SO_REUSEADDR = 2;
const IPPROTO_IPV6 = 41;
const IPV6_V6ONLY = 26;
const EINPROGRESS = 115;

/** `code` is the name of the kernel's errno, or ETIMEDOUT when the caller's patience ended. */
export class NoTraffic extends Error {
  override readonly name = "NoTraffic";
  readonly code: string;

  constructor(what: string, code: string) {
    super(`${what}: ${code}`);
    this.code = code;
  }
}

export function requireIp(text: string): Ip {
  const ip = parseIp(text);
  if (ip === undefined) throw new TypeError(`"${text}" is no address`);
  return ip;
}

/** struct sockaddr_in: family, port, address, eight zeros; struct sockaddr_in6: family, port, flow, address, scope. */
function socketAddress(ip: Ip, port: number): Uint8Array {
  const bytes = new Uint8Array(ip.family === 4 ? 16 : 28);
  const view = new DataView(bytes.buffer);
  view.setUint16(0, ip.family === 4 ? AF_INET : AF_INET6, true);
  view.setUint16(2, port);
  bytes.set(encodeIp(ip), ip.family === 4 ? 4 : 8);
  return bytes;
}

function openSocket(native: Native, ip: Ip, protocol: Protocol): number {
  const type = (protocol === "tcp" ? SOCK_STREAM : SOCK_DGRAM) | SOCK_NONBLOCK | SOCK_CLOEXEC;
  const fd = native.socket(ip.family === 4 ? AF_INET : AF_INET6, type, 0);
  if (fd < 0) throw new NoTraffic("Cannot open a socket", getSystemErrorName(fd));
  return fd;
}

function bindTo(native: Native, fd: number, { address, port }: Place): void {
  const ip = requireIp(address);
  native.setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  if (ip.family === 6) native.setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
  const bound = native.bind(fd, socketAddress(ip, port));
  if (bound < 0) throw new NoTraffic(`Cannot use ${address} port ${port}`, getSystemErrorName(bound));
}

/** Runs `work` on a new socket of the namespace and closes it when `work` throws. */
function withSocket(netnsPath: string, ip: Ip, protocol: Protocol, work: (native: Native, fd: number) => void): number {
  const native = loadNative();
  const fd = withNetns(netnsPath, () => openSocket(native, ip, protocol));
  try {
    work(native, fd);
    return fd;
  } catch (error) {
    native.close(fd);
    throw error;
  }
}

/** A socket that has an address and a port (0: any); it does not listen yet. Throws {@link NoTraffic}. */
export function openBound(netnsPath: string, protocol: Protocol, place: Place): number {
  return withSocket(netnsPath, requireIp(place.address), protocol, (native, fd) => bindTo(native, fd, place));
}

/** A TCP socket that connects to `to`; its first read has the outcome. Throws {@link NoTraffic}. */
export function openConnecting(netnsPath: string, to: Place, from?: Place): number {
  const ip = requireIp(to.address);
  return withSocket(netnsPath, ip, "tcp", (native, fd) => {
    if (from !== undefined) bindTo(native, fd, from);
    const connected = native.connect(fd, socketAddress(ip, to.port));
    if (connected < 0 && connected !== -EINPROGRESS)
      throw new NoTraffic(`Cannot connect to ${to.address} port ${to.port}`, getSystemErrorName(connected));
  });
}
