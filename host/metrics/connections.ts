/**
 * Bounds the connections of a server, from one address and in all. The oldest without a whole request gives way to a
 * new one, so that a caller that only connects cannot lock out others.
 */
import type { Server, Socket } from "node:net";

/** Most connections at once to a server for metrics, status or the address map. @limit */
const MAX_CONNECTIONS = 128;

/** Most connections at once to such a server from one address. @limit */
const MAX_CONNECTIONS_OF_SOURCE = 32;

/** Time in which a caller must have sent its whole request, with TLS: milliseconds. */
const REQUEST_PATIENCE_MS = 5_000;

interface Connection {
  readonly socket: Socket;
  readonly source: string;
  /** Ends a connection that sends no request. Absent once the request has come. */
  patience?: NodeJS.Timeout | undefined;
}

export function sourceOf({ remoteAddress = "" }: Pick<Socket, "remoteAddress">): string {
  return remoteAddress.replace(/^::ffff:(?=[0-9.]+$)/, "");
}

/** Bounds the connections of an HTTP server, or of one over TLS. */
export function boundConnections(server: Server): void {
  /** By {@link keyOf}, the oldest first. */
  const open = new Map<unknown, Connection>();
  server.on("connection", (socket: Socket) => {
    const connections = [...open.values()];
    const crowd = findCrowd(connections, sourceOf(socket));
    const oldest = crowd?.find(({ patience }) => patience !== undefined);
    if (crowd !== undefined && oldest === undefined) {
      socket.destroy();
      return;
    }
    oldest?.socket.destroy();
    if (oldest !== undefined) forget(open, oldest);
    const connection: Connection = { socket, source: sourceOf(socket) };
    // Data that arrived while this process was busy is read first.
    const end = () => setImmediate(() => connection.patience && socket.destroy());
    connection.patience = setTimeout(end, REQUEST_PATIENCE_MS).unref();
    open.set(keyOf(socket), connection);
    socket.once("close", () => forget(open, connection));
  });
  server.on("request", ({ socket }: { readonly socket: Socket }) => {
    const connection = open.get(keyOf(socket));
    clearTimeout(connection?.patience);
    if (connection !== undefined) connection.patience = undefined;
  });
}

/** Returns the connections, the oldest first, one of which has to give way to another of `source`. */
function findCrowd(connections: readonly Connection[], source: string): readonly Connection[] | undefined {
  const own = connections.filter((each) => each.source === source);
  if (own.length >= MAX_CONNECTIONS_OF_SOURCE) return own;
  if (connections.length < MAX_CONNECTIONS) return undefined;
  const idle = connections.filter(({ patience }) => patience !== undefined);
  return [...Map.groupBy(idle, (each) => each.source).values()].sort((a, b) => b.length - a.length)[0] ?? [];
}

function forget(open: Map<unknown, Connection>, connection: Connection): void {
  clearTimeout(connection.patience);
  for (const [key, each] of open) if (each === connection) open.delete(key);
}

/** The same key for a connection and for the socket that TLS makes of it. */
function keyOf(socket: Socket): unknown {
  const { localAddress, remoteAddress, remotePort } = socket;
  return remoteAddress === undefined ? socket : `${localAddress} ${remoteAddress} ${remotePort}`;
}
