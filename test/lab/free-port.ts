import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

/**
 * Returns a port of loopback that was free a moment ago; the kernel gives it to no connection (`ip_local_port_range`).
 */
export async function findPort(): Promise<number> {
  for (;;) {
    const [server, port] = [createServer(), randomInt(15_000, 30_000)];
    const isFree = await once(server.listen(port, "127.0.0.1"), "listening").then(
      () => true,
      () => false,
    );
    server.close();
    if (isFree) return port;
  }
}
