import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createSecureServer } from "node:http2";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { openKubeClient } from "../../host/kubernetes/client.ts";
import { loadCredentials } from "../../host/kubernetes/credentials.ts";
import { makeCertificate } from "../unit/kubernetes/certificate.ts";
import { writeKubeconfig } from "../unit/kubernetes/kubeconfig-file.ts";

const portOf = (address: AddressInfo | string | null): number =>
  typeof address === "object" && address !== null ? address.port : 0;

/**
 * Passes bytes on. A silenced connection stays open, and nothing passes any more: a load balancer whose server behind
 * it is gone, say.
 */
async function openRelay(to: number) {
  const ends = new Set<Socket>();
  const relay = createServer((near) => {
    const far = connect(to, "127.0.0.1");
    for (const end of [near, far]) ends.add(end.on("error", () => {}));
    near.pipe(far).pipe(near);
  });
  await once(relay.listen(0, "127.0.0.1"), "listening");
  return {
    port: portOf(relay.address()),
    silence: () => {
      for (const end of ends) end.unpipe().resume();
    },
    close: () => {
      for (const end of ends) end.destroy();
      relay.close();
    },
  };
}

it("watches leave a connection that leads nowhere, although it stays open", { timeout: 30_000 }, async () => {
  const directory = await mkdtemp(join(tmpdir(), "berth-dead-"));
  const certificate = makeCertificate("server");
  const server = createSecureServer({ ...certificate, allowHTTP1: false }, (_, response) => {
    response.end();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const relay = await openRelay(portOf(server.address()));
  const cluster = { server: `https://127.0.0.1:${relay.port}`, "insecure-skip-tls-verify": true };
  const kubeconfig = await writeKubeconfig(directory, { cluster, user: { token: "t" } });
  const client = openKubeClient({
    credentials: await loadCredentials({ kubeconfig }),
    userAgent: "test",
    random: () => 0,
  });
  const { signal } = new AbortController();
  const watch = () => client.watch({ path: "/x", query: {}, onEvent: () => {}, signal });
  try {
    await watch();
    relay.silence();
    const startedMs = performance.now();
    let isServed = false;
    while (!isServed && performance.now() - startedMs < 25_000)
      isServed = await watch().then(
        () => true,
        () => false,
      );
    expect(isServed).toBe(true);
    expect(client.stats.connections).toBe(2);
    expect(performance.now() - startedMs).toBeLessThan(15_000);
  } finally {
    await client.close();
    relay.close();
    server.close();
    await rm(directory, { recursive: true });
  }
});
