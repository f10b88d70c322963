/**
 * Traffic between namespaces: servers that name themselves, clients that ask them, pings.
 *
 *   const server = await serve(pod, 80);                     // TCP and UDP, IPv4 and IPv6
 *   const { server: name, seenPeer } = await ask(client, "10.60.0.50", 80);
 *   await ask(client, "fd00:60::50", 80, { protocol: "udp", from: "fd00:60::7" });
 *   await ping(client, "10.60.0.1");                         // whether it was answered
 *   await server.close();
 *
 * Servers and clients are sockets of this process, so that none of them has to be started.
 * Effects: sockets in the namespaces; `ping` starts a child.
 */
import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { createServer, Socket, type Server as TcpServer } from "node:net";
import { createInterface } from "node:readline";
import type { Netns } from "./netns.ts";
import { NoTraffic, openBound, openConnecting, type Place, type Protocol, requireIp } from "./sockets.ts";

/** Long enough for a lost SYN to be sent twice more. */
const DEFAULT_TIMEOUT_MS = 4_000;

export interface Answer {
  /** The name of the server that answered. */
  readonly server: string;
  /** The client as the server saw it. */
  readonly seenPeer: string;
  /**
   * Address at which the server was asked: its own address of that connection. For UDP, the address that it is bound
   * to.
   */
  readonly at: string;
}

export interface Server {
  readonly name: string;
  readonly port: number;
  /** Connections and datagrams so far. */
  readonly requests: number;
  close(): Promise<void>;
}

export interface ServeOptions {
  /** Default: the name of the namespace. */
  readonly name?: string;
  /** Default: both. */
  readonly protocols?: readonly Protocol[];
  /** Default: all of IPv4 and all of IPv6. A UDP server bound to all answers from the address that routing chooses. */
  readonly addresses?: readonly string[];
}

export interface AskOptions {
  readonly protocol?: Protocol;
  /** The client's address; default: by routing. */
  readonly from?: string;
  readonly timeoutMs?: number;
}

/** Listens on `port` of the namespace. Throws {@link NoTraffic} when it is taken. */
export async function serve(netns: Netns, port: number, options: ServeOptions = {}): Promise<Server> {
  const { name = netns.name, protocols = ["tcp", "udp"], addresses = ["0.0.0.0", "::"] } = options;
  const closers: (() => Promise<void>)[] = [];
  let requests = 0;
  const answer = (at: string, peer: string): string => {
    requests++;
    return `${JSON.stringify({ server: name, seenPeer: peer, at } satisfies Answer)}\n`;
  };
  const close = async () => void (await Promise.all(closers.map((closer) => closer())));
  try {
    for (const address of addresses) {
      if (protocols.includes("tcp")) closers.push(await serveTcp(netns, { address, port }, answer));
      if (protocols.includes("udp")) closers.push(await serveUdp(netns, { address, port }, answer));
    }
  } catch (error) {
    await close();
    throw error;
  }
  return {
    name,
    port,
    get requests() {
      return requests;
    },
    close,
  };
}

type Reply = (at: string, peer: string) => string;

/** Answers each line of each connection, until the client ends it. */
async function serveTcp(netns: Netns, place: Place, reply: Reply): Promise<() => Promise<void>> {
  const sockets = new Set<Socket>();
  const server: TcpServer = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => socket.destroy());
    const { localAddress = "", remoteAddress = "" } = socket;
    socket.on("data", () => socket.write(reply(localAddress, remoteAddress)));
  });
  server.listen({ fd: openBound(netns.path, "tcp", place) });
  await once(server, "listening");
  return async () => {
    const closed = once(server, "close");
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  };
}

async function serveUdp(netns: Netns, place: Place, reply: Reply): Promise<() => Promise<void>> {
  const socket = await openUdp(netns, place);
  socket.on("error", () => {}); // The ICMP error of an answer to a closed socket.
  socket.on("message", (_, { address, port }) => socket.send(reply(place.address, address), port, address));
  return async () => void (await new Promise<void>((resolve) => socket.close(resolve)));
}

async function openUdp(netns: Netns, place: Place): Promise<UdpSocket> {
  const socket = createSocket(requireIp(place.address).family === 4 ? "udp4" : "udp6");
  const listening = once(socket, "listening"); // With a descriptor, bind says so at once.
  socket.bind({ fd: openBound(netns.path, "udp", place) });
  await listening;
  return socket;
}

/**
 * One question on a connection of its own. Throws {@link NoTraffic} when none comes in time, or the kernel's reason.
 */
export async function ask(netns: Netns, address: string, port: number, options: AskOptions = {}): Promise<Answer> {
  if (options.protocol === "udp") return askUdp(netns, { address, port }, options);
  const session = openSession(netns, address, port, options);
  try {
    return await session.ask();
  } finally {
    session.close();
  }
}

export interface Session {
  /** The next answer on the connection. Throws {@link NoTraffic}. */
  ask(): Promise<Answer>;
  close(): void;
}

/** A TCP connection that stays, for questions before and after something. */
export function openSession(netns: Netns, address: string, port: number, options: AskOptions = {}): Session {
  const what = `${netns.name} got no answer from ${address} port ${port}`;
  const socket = new Socket({ fd: openConnecting(netns.path, { address, port }, placeOf(options)) });
  const lines = createInterface({ input: socket });
  let failure: NoTraffic | undefined;
  let waiting: { resolve(line: string): void; reject(error: NoTraffic): void } | undefined;
  const fail = (code: string): void => {
    failure ??= new NoTraffic(what, code);
    waiting?.reject(failure);
  };
  socket.on("error", (error: NodeJS.ErrnoException) => fail(error.code ?? error.message));
  socket.on("close", () => fail("EPIPE"));
  lines.on("error", () => {}); // The socket's own.
  lines.on("line", (line) => waiting?.resolve(line));
  return {
    ask: async () => {
      if (failure !== undefined) throw failure;
      const line = waitFor<string>(what, options.timeoutMs, (resolve, reject) => {
        waiting = { resolve, reject };
      });
      socket.write("?\n");
      return JSON.parse(await line) as Answer;
    },
    close: () => {
      lines.close();
      socket.destroy();
    },
  };
}

async function askUdp(netns: Netns, to: Place, options: AskOptions): Promise<Answer> {
  const what = `${netns.name} got no answer from ${to.address} UDP port ${to.port}`;
  const any = { address: requireIp(to.address).family === 4 ? "0.0.0.0" : "::", port: 0 };
  const socket = await openUdp(netns, placeOf(options) ?? any);
  try {
    const text = waitFor<string>(what, options.timeoutMs, (resolve, reject) => {
      socket.once("message", (bytes) => resolve(bytes.toString()));
      socket.once("error", (error: NodeJS.ErrnoException) => reject(new NoTraffic(what, error.code ?? error.message)));
    });
    socket.connect(to.port, to.address, () => socket.send("?\n"));
    return JSON.parse(await text) as Answer;
  } finally {
    socket.close();
  }
}

/** The client's own end, when the caller wants a certain one. */
const placeOf = ({ from }: AskOptions): Place | undefined =>
  from === undefined ? undefined : { address: from, port: 0 };

function waitFor<T>(
  what: string,
  timeoutMs: number | undefined,
  start: (resolve: (value: T) => void, reject: (error: NoTraffic) => void) => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new NoTraffic(what, "ETIMEDOUT")), timeoutMs ?? DEFAULT_TIMEOUT_MS);
    const end =
      <V>(report: (value: V) => void) =>
      (value: V) => {
        clearTimeout(timer);
        report(value);
      };
    start(end(resolve), end(reject));
  });
}

/** Whether at least one of `count` echo requests, one per 200 ms, is answered. */
export async function ping(netns: Netns, address: string, { from = "", count = 2 } = {}): Promise<boolean> {
  const source = from === "" ? [] : ["-I", from];
  const argv = ["ping", "-n", "-q", "-i0.2", `-c${count}`, "-W1", ...source, address];
  return (await netns.exec(argv)).exitCode === 0;
}
