import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer as createPlainServer } from "node:http";
import { createServer, type Server } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TLSSocket } from "node:tls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openKubeClient } from "../../../host/kubernetes/client.ts";
import { loadCredentials } from "../../../host/kubernetes/credentials.ts";
import { makeCertificate } from "./certificate.ts";
import { writeKubeconfig } from "./kubeconfig-file.ts";

const server = makeCertificate("server");
const clients = [makeCertificate("one"), makeCertificate("two")] as const;
const GET = { method: "GET", path: "/x" } as const;

let directory = "";
let https: Server;
/** Answers with the name in the client's certificate. */
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "berth-tls-"));
  https = createServer({ ...server, requestCert: true, rejectUnauthorized: false }, ({ socket }, response) => {
    const peer = socket instanceof TLSSocket ? socket.getPeerCertificate() : undefined;
    response.end(JSON.stringify({ name: peer?.subject?.CN }));
  });
  await once(https.listen(0, "127.0.0.1"), "listening");
});
afterAll(async () => {
  https.closeAllConnections();
  https.close();
  await rm(directory, { recursive: true });
});

const at = (file: string) => join(directory, file);

async function open(cluster: object, user: object = {}) {
  const address = https.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const parts = { cluster: { server: `https://127.0.0.1:${port}`, ...cluster }, user };
  const credentials = await loadCredentials({ kubeconfig: await writeKubeconfig(directory, parts) });
  return openKubeClient({ credentials, userAgent: "test", random: () => 0.01 });
}

describe("TLS", () => {
  it("a client certificate that is replaced in its file is used for new connections", async () => {
    await writeFile(at("ca.pem"), server.cert);
    await writeFile(at("client.pem"), clients[0].cert);
    await writeFile(at("client.key"), clients[0].key);
    const files = { "client-certificate": "client.pem", "client-key": "client.key" };
    const client = await open({ "certificate-authority": "ca.pem" }, files);
    try {
      expect(await client.call(GET)).toEqual({ name: "one" });
      // Between the two the pair does not fit together, and the old one is used on.
      await writeFile(at("client.pem"), clients[1].cert);
      await new Promise((resolve) => setTimeout(resolve, 1_050));
      expect(await client.call(GET)).toEqual({ name: "one" });
      await writeFile(at("client.key"), clients[1].key);
      await expect.poll(() => client.call(GET), { timeout: 10_000, interval: 200 }).toEqual({ name: "two" });
      expect(client.stats).toMatchObject({ connections: 2 });
    } finally {
      await client.close();
    }
  });

  it("a server that the authority did not sign gets no request, and no second chance", async () => {
    const client = await open({ "certificate-authority-data": Buffer.from(clients[0].cert).toString("base64") });
    try {
      await expect(client.call(GET)).rejects.toThrow(
        /^GET \/x failed after 1 attempt: (?:self-signed|unable to verify)/,
      );
    } finally {
      await client.close();
    }
  });

  it("a server whose certificate has another name may be given that name", async () => {
    const authority = { "certificate-authority-data": Buffer.from(server.cert).toString("base64") };
    const client = await open({ ...authority, "tls-server-name": "elsewhere.example" });
    try {
      await expect(client.call(GET)).rejects.toThrow("elsewhere.example");
    } finally {
      await client.close();
    }
  });

  it("insecure-skip-tls-verify takes any server", async () => {
    const client = await open({ "insecure-skip-tls-verify": true });
    try {
      expect(await client.call(GET)).toEqual({});
    } finally {
      await client.close();
    }
  });

  it.for(["https", "http"])("a call over %s that is given up resets its connection", async (scheme) => {
    const silent = scheme === "https" ? createServer(server) : createPlainServer();
    const ends: unknown[] = [];
    silent.on("clientError", (error: NodeJS.ErrnoException) => ends.push(error.code));
    await once(silent.listen(0, "127.0.0.1"), "listening");
    const address = silent.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const client = await open({ server: `${scheme}://127.0.0.1:${port}`, "insecure-skip-tls-verify": true });
    try {
      const write = { method: "PUT", path: "/x", body: { spec: {} }, patienceMs: 0, attemptMs: 300 } as const;
      await expect(client.call(write)).rejects.toThrow("no answer within 300 ms");
      await expect.poll(() => ends).toEqual(["ECONNRESET"]);
    } finally {
      await client.close();
      silent.closeAllConnections();
      silent.close();
    }
  });
});
