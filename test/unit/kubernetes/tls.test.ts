import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer as createPlainServer } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { TLSSocket } from "node:tls";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { openKubeClient } from "../../../host/kubernetes/client.ts";
import { loadCredentials } from "../../../host/kubernetes/credentials.ts";
import { closeEndpoint, openEndpoint } from "../../../host/kubernetes/http/endpoint.ts";
import { temporaryDirectory } from "../../world/temporary-directory.ts";
import { makeCertificate } from "./certificate.ts";
import { writeKubeconfig } from "./kubeconfig-file.ts";

const server = makeCertificate("server");
const clients = [makeCertificate("one"), makeCertificate("two")] as const;
const GET = { method: "GET", path: "/x" } as const;

const directory = temporaryDirectory("berth-tls-");
let https: Server;
/** Answers with the name in the client's certificate. */
beforeAll(async () => {
  https = createServer({ ...server, requestCert: true, rejectUnauthorized: false }, ({ socket }, response) => {
    const peer = socket instanceof TLSSocket ? socket.getPeerCertificate() : undefined;
    response.end(JSON.stringify({ name: peer?.subject?.CN }));
  });
  await once(https.listen(0, "127.0.0.1"), "listening");
});
afterAll(async () => {
  https.closeAllConnections();
  https.close();
});

const at = (file: string) => join(directory, file);

const portOf = (server: { address(): unknown }) => (server.address() as AddressInfo).port;

async function open(cluster: object, user: object = {}) {
  const parts = { cluster: { server: `https://127.0.0.1:${portOf(https)}`, ...cluster }, user };
  const credentials = await loadCredentials({ kubeconfig: await writeKubeconfig(directory, parts) });
  const client = openKubeClient({ credentials, userAgent: "test", random: () => 0.01 });
  onTestFinished(() => client.close());
  return client;
}

const authorityOf = ({ cert }: { readonly cert: string }) => ({
  "certificate-authority-data": Buffer.from(cert).toString("base64"),
});

describe("TLS", () => {
  it("a client certificate that is replaced in its file gets new connections, and those of the old one close", async () => {
    await writeFile(at("ca.pem"), server.cert);
    await writeFile(at("client.pem"), clients[0].cert);
    await writeFile(at("client.key"), clients[0].key);
    const files = { "client-certificate": "client.pem", "client-key": "client.key" };
    const client = await open({ "certificate-authority": "ca.pem" }, files);
    expect(await client.call(GET)).toEqual({ name: "one" });
    // Between the two the pair does not fit together, and the old one is used on.
    await writeFile(at("client.pem"), clients[1].cert);
    await new Promise((resolve) => setTimeout(resolve, 1_050));
    expect(await client.call(GET)).toEqual({ name: "one" });
    await writeFile(at("client.key"), clients[1].key);
    await expect.poll(() => client.call(GET), { timeout: 10_000, interval: 200 }).toEqual({ name: "two" });
    expect(client.stats).toMatchObject({ connections: 2 });
    await expect.poll(() => promisify(https.getConnections.bind(https))()).toBe(1);
  });

  it("a request that was given an endpoint before it was replaced is answered", async () => {
    const before = openEndpoint(new URL(`https://127.0.0.1:${portOf(https)}`), { rejectUnauthorized: false });
    const after = openEndpoint(new URL(before.origin), { rejectUnauthorized: false }, before);
    onTestFinished(() => closeEndpoint(after));
    const answers = [before, after].map(({ calls }) =>
      calls.request({ origin: before.origin, path: "/x", method: "GET" }),
    );
    for (const answer of answers) expect(await (await answer).body.json()).toEqual({});
    expect(after.opened).toEqual({ connections: 2 });
  });

  it("a server that the authority did not sign gets no request, and no second chance", async () => {
    const client = await open(authorityOf(clients[0]));
    const refusal = /^GET \/x failed after 1 attempt: (?:self-signed|unable to verify)/;
    await expect(client.call(GET)).rejects.toThrow(refusal);
  });

  it("a server whose certificate has another name may be given that name", async () => {
    const client = await open({ ...authorityOf(server), "tls-server-name": "elsewhere.example" });
    await expect(client.call(GET)).rejects.toThrow("elsewhere.example");
  });

  it.for(["https", "http"])("a call over %s that is given up resets its connection", async (scheme) => {
    const silent = scheme === "https" ? createServer(server) : createPlainServer();
    const ends: unknown[] = [];
    silent.on("clientError", (error: NodeJS.ErrnoException) => ends.push(error.code));
    await once(silent.listen(0, "127.0.0.1"), "listening");
    onTestFinished(() => {
      silent.closeAllConnections();
      silent.close();
    });
    const at = `${scheme}://127.0.0.1:${portOf(silent)}`;
    const client = await open({ server: at, "insecure-skip-tls-verify": true });
    const write = { method: "PUT", path: "/x", body: { spec: {} }, patienceMs: 0, attemptMs: 300 } as const;
    await expect(client.call(write)).rejects.toThrow("no answer within 300 ms");
    await expect.poll(() => ends).toEqual(["ECONNRESET"]);
  });
});
