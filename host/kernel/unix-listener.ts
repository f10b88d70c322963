/**
 * A unix socket that accepts connections as bare descriptors, without the streams of node:net: a call over one costs a third. What
 * a caller has sent can be looked at before it is taken, so that a connection can still be given to node:net.
 * Effects: a socket with its file, and watches on the event loop, until disposed of.
 */
import { EAGAIN, EINTR, formatErrno } from "./errno.ts";
import { loadNative, type Native, type Watch } from "./native.ts";
import { MSG_DONTWAIT, SOCK_CLOEXEC } from "./netlink/constants.ts";
import { AF_UNIX, unixAddress } from "./unix-address.ts";

/** bits/socket.h */
const SOCK_STREAM = 1;
const MSG_PEEK = 0x02;
const MSG_NOSIGNAL = 0x4000;
const ENAMETOOLONG = 36;
const ECONNABORTED = 103;

/** Connections that wait to be accepted; the kernel lowers it to net.core.somaxconn. */
const LISTEN_BACKLOG = 511;

/** Most connections that are accepted in one turn of the event loop. */
const MAX_ACCEPTED_PER_TURN = 64;

/** Pause after the kernel could not accept a connection, for want of descriptors or memory: milliseconds. */
const ACCEPT_PAUSE_MS = 100;

/** Longest request that is looked at as a whole: bytes. */
const MAX_PEEKED_BYTES = 65_536;

/** What all connections peek into. */
const peeked = Buffer.allocUnsafeSlow(MAX_PEEKED_BYTES);

/** A connection. It must be closed or released. */
export class UnixConnection {
  readonly #native: Native;
  readonly #fd: number;
  #watch: Watch | undefined;

  constructor(native: Native, fd: number) {
    this.#native = native;
    this.#fd = fd;
  }

  /** Returns what has come so far, at most {@link MAX_PEEKED_BYTES}, which stays there; valid until the next call for any connection. */
  peek(): Buffer {
    this.#unwatch();
    const length = this.#native.recv(this.#fd, peeked, MSG_DONTWAIT | MSG_PEEK);
    return peeked.subarray(0, Math.max(0, length));
  }

  /** Takes as many bytes as were peeked at. */
  take(length: number): void {
    this.#native.recv(this.#fd, peeked.subarray(0, length), MSG_DONTWAIT);
  }

  /** Calls back once, when the caller has sent something or hung up. */
  onReadable(readable: () => void): void {
    const watch = this.#native.watch(this.#fd, () => {
      this.#unwatch();
      readable();
    });
    if (typeof watch !== "number") this.#watch = watch;
  }

  /** Calls back, at most once, when the caller hangs up. One that sends more is no longer watched. */
  onHangUp(hungUp: () => void): void {
    this.onReadable(() => {
      const length = this.#native.recv(this.#fd, peeked, MSG_DONTWAIT | MSG_PEEK);
      if (length === -EAGAIN) this.onHangUp(hungUp);
      else if (length <= 0) hungUp();
    });
  }

  /** Sends as much as there is room for. Returns the number of bytes, or -errno: EAGAIN if there is no room, EPIPE if the caller has hung up. */
  send(bytes: Uint8Array): number {
    return this.#native.send(this.#fd, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  close(): void {
    this.#native.close(this.release());
  }

  /** Returns the descriptor, which belongs to the caller from now on. */
  release(): number {
    this.#unwatch();
    return this.#fd;
  }

  #unwatch(): void {
    if (this.#watch !== undefined) this.#native.unwatch(this.#watch);
    this.#watch = undefined;
  }
}

interface UnixListenerOptions {
  readonly path: string;
  readonly accepted: (connection: UnixConnection) => void;
  /** Accepting failed; it is tried again. */
  readonly failed: (error: Error) => void;
  readonly native?: Native;
}

function listeningError(path: string, errno: number): Error {
  return new Error(`Cannot listen on ${path}: ${formatErrno(errno)}`);
}

export class UnixListener implements Disposable {
  readonly #options: UnixListenerOptions;
  readonly #native: Native;
  readonly #fd: number;
  #watch: Watch | undefined;
  #pause: NodeJS.Timeout | undefined;

  /** Binds the path, which must not exist. Throws if the kernel refuses. */
  constructor(options: UnixListenerOptions) {
    const { path, native = loadNative() } = options;
    this.#options = options;
    this.#native = native;
    const address = unixAddress(path);
    if (address === undefined) throw listeningError(path, ENAMETOOLONG);
    this.#fd = this.#require(native.socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    try {
      this.#require(native.bind(this.#fd, address));
      this.#require(native.listen(this.#fd, LISTEN_BACKLOG));
      this.#start();
    } catch (error) {
      native.close(this.#fd);
      throw error;
    }
  }

  /** Accepts the connections that wait now. */
  acceptWaiting(): void {
    while (this.#acceptSome());
  }

  [Symbol.dispose](): void {
    this.#stop();
    this.#native.close(this.#fd);
  }

  #require(result: number): number {
    if (result < 0) throw listeningError(this.#options.path, -result);
    return result;
  }

  #start(): void {
    const watch = this.#native.watch(this.#fd, () => void this.#acceptSome());
    if (typeof watch === "number") this.#require(watch);
    else this.#watch = watch;
  }

  #stop(): void {
    clearTimeout(this.#pause);
    if (this.#watch !== undefined) this.#native.unwatch(this.#watch);
    this.#watch = undefined;
  }

  /** Returns whether more may wait. */
  #acceptSome(): boolean {
    for (let count = 0; count < MAX_ACCEPTED_PER_TURN; count++) {
      const fd = this.#native.accept(this.#fd);
      if (fd >= 0) this.#options.accepted(new UnixConnection(this.#native, fd));
      else if (fd === -EAGAIN) return false;
      else if (fd !== -EINTR && fd !== -ECONNABORTED) return this.#rest(-fd);
    }
    return true;
  }

  /** The connection still waits: watching would call at once again. */
  #rest(errno: number): false {
    this.#options.failed(new Error(`Cannot accept a connection: ${formatErrno(errno)}`));
    this.#stop();
    this.#pause = setTimeout(() => this.#start(), ACCEPT_PAUSE_MS);
    return false;
  }
}
