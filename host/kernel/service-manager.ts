/**
 * Messages to the service manager that started this process (sd_notify(3)): that it is ready, that it stops, and that
 * its event loop still runs. They are datagrams to the socket in NOTIFY_SOCKET; Node.js has no AF_UNIX datagram
 * sockets.
 */
import { loadNative, type Native } from "./native.ts";
import { AF_UNIX, MSG_DONTWAIT, SOCK_CLOEXEC, SOCK_DGRAM } from "./netlink/constants.ts";

/** linux/un.h: the longest path of a socket, with its final NUL. */
const UNIX_PATH_MAX = 108;

type Environment = Readonly<Record<string, string | undefined>>;

interface ServiceManager {
  /** The service is up: units ordered after it start. Starts the watchdog's messages, if the unit asks for them. */
  ready(): void;
  /** The service is about to end; the messages of the watchdog end. */
  stopping(): void;
}

/** Without a service manager the calls do nothing. Messages that cannot be sent are dropped: the service works. */
export function openServiceManager(environment: Environment): ServiceManager {
  const path = environment.NOTIFY_SOCKET;
  if (path === undefined || !/^[/@]./.test(path)) return { ready: () => {}, stopping: () => {} };
  const send = openSocket(path, loadNative());
  let watchdog: NodeJS.Timeout | undefined;
  return {
    ready: () => {
      send("READY=1");
      const intervalMs = watchdogMs(environment);
      if (intervalMs !== undefined) watchdog = setInterval(() => send("WATCHDOG=1"), intervalMs).unref();
    },
    stopping: () => {
      clearInterval(watchdog);
      send("STOPPING=1");
    },
  };
}

/** Returns a third of the manager's time-out for a silent service; undefined if it does not watch this process. */
function watchdogMs({ WATCHDOG_USEC: microseconds, WATCHDOG_PID: pid }: Environment): number | undefined {
  if (pid !== undefined && Number(pid) !== process.pid) return undefined;
  const milliseconds = Number(microseconds) / 3_000;
  return milliseconds >= 1 ? milliseconds : undefined;
}

function openSocket(path: string, native: Native): (message: string) => void {
  const address = unixAddress(path);
  const fd = native.socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  return (message) => {
    if (fd >= 0 && address !== undefined) native.sendto(fd, Buffer.from(message), MSG_DONTWAIT, address);
  };
}

/**
 * Family in host byte order, path. A leading "@" stands for the NUL of an abstract address, which has no final NUL.
 * Undefined for a longer path.
 */
function unixAddress(path: string): Uint8Array | undefined {
  const isAbstract = path.startsWith("@");
  const name = Buffer.from(isAbstract ? `\0${path.slice(1)}` : `${path}\0`);
  if (name.length > UNIX_PATH_MAX) return undefined;
  return Buffer.concat([new Uint8Array(Uint16Array.of(AF_UNIX).buffer), name]);
}
