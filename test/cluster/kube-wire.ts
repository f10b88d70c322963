/**
 * A TCP relay before the API server: the connections through it can be cut, and refused for a while. TLS is end to end.
 * Effects: a server on loopback, a kubeconfig in a folder of its own; `close` ends both.
 */
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Relay {
  /** As the given one, by way of the relay. */
  readonly kubeconfig: string;
  /** Connections that are open. */
  readonly open: number;
  /** Ends all connections by a reset. */
  cut(): void;
  /** New connections are cut at once, or let through again. */
  setRefusing(isRefusing: boolean): void;
  close(): Promise<void>;
}

export async function startRelay(kubeconfig: string): Promise<Relay> {
  const text = await readFile(kubeconfig, "utf8");
  const url = /https:\/\/[^"\s]+/.exec(text)?.[0] ?? "";
  const { hostname, port } = new URL(url);
  const pairs = new Set<readonly [Socket, Socket]>();
  let isRefusing = false;
  const server = createServer((near) => {
    near.on("error", () => {});
    if (isRefusing) return void near.resetAndDestroy();
    const far = connect(Number(port), hostname);
    const pair = [near, far] as const;
    pairs.add(pair);
    far.on("error", () => near.destroy());
    near.on("error", () => far.destroy());
    far.once("close", () => {
      pairs.delete(pair);
      near.destroy();
    });
    near.once("close", () => far.destroy());
    near.pipe(far).pipe(near);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const bound = server.address();
  const own = typeof bound === "object" && bound !== null ? bound.port : 0;
  const directory = await mkdtemp(join(tmpdir(), "berth-relay-"));
  const path = join(directory, "kubeconfig");
  await writeFile(path, text.replaceAll(url, `https://${hostname}:${own}`));
  const cut = (): void => {
    for (const [near, far] of pairs) {
      near.resetAndDestroy();
      far.resetAndDestroy();
    }
  };
  return {
    kubeconfig: path,
    get open() {
      return pairs.size;
    },
    cut,
    setRefusing: (value) => {
      isRefusing = value;
    },
    close: async () => {
      cut();
      await once(server.close(), "close");
      await rm(directory, { recursive: true });
    },
  };
}
