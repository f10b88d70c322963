/**
 * Shows the agent's address map to a browser on this machine: the agent of the story is in a network namespace of its
 * own, and serves the map on a unix socket.
 * Effects: a port on loopback; closed by the stack that it is given.
 */
import { connect, createServer, type Server, type Socket } from "node:net";

/** As docs/map.md has it. */
const PORT = 9476;

/** Returns where the page is: on port 9476, or on any other if that is in use. */
export async function openMapWindow(socketPath: string, stack: AsyncDisposableStack): Promise<string> {
  const browsers = new Set<Socket>();
  const server = createServer((browser) => {
    const agent = connect(socketPath);
    for (const [one, other] of [
      [browser, agent],
      [agent, browser],
    ] as const) {
      one.on("error", () => other.destroy());
      one.pipe(other);
    }
    browsers.add(browser.once("close", () => browsers.delete(browser)));
  });
  const port = await listen(server, PORT).catch(() => listen(server, 0));
  stack.defer(() => {
    server.close();
    for (const browser of browsers) browser.destroy();
  });
  return `http://127.0.0.1:${port}`;
}

function listen(server: Server, wanted: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(wanted, "127.0.0.1", () => {
      server.off("error", reject);
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : wanted);
    });
  });
}
