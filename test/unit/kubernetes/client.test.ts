import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { openKubeClient } from "../../../host/kubernetes/client.ts";
import { loadCredentials } from "../../../host/kubernetes/credentials.ts";
import { BACKGROUND_ATTEMPT_MS, MAX_BACKGROUND_CALLS, MAX_CONNECTIONS } from "../../../host/kubernetes/http/retry.ts";
import { ApiUnavailable } from "../../../host/kubernetes/kube-api.ts";
import { until } from "../../world/recorded-log.ts";
import { type Stub, type StubAnswer, sendJson, sendStatus, startStub, writeStubKubeconfig } from "./stub-server.ts";

/** Answers the first requests as given, later ones with 200. */
function first(...answers: StubAnswer[]): StubAnswer {
  const left = [...answers];
  return (response, request) => (left.shift() ?? ((ok) => sendJson(ok, 200, { done: true })))(response, request);
}

async function listen(server: Server, host: string): Promise<number> {
  await once(server.listen(0, host), "listening");
  const bound = server.address();
  return typeof bound === "object" && bound !== null ? bound.port : 0;
}

const GET = { method: "GET", path: "/api/v1/nodes" } as const;

describe("a call", () => {
  it("sends method, path, query, body and headers", async () => {
    const { client, requests } = await startStub((response) => sendJson(response, 201, { made: true }));
    const query = { limit: 5, fieldSelector: "spec.node=a b", no: undefined, dryRun: "All" };
    const answer = await client.call({ method: "POST", path: "/api/v1/things", query, body: { a: "ö" } });
    expect(answer).toEqual({ made: true });
    const url = "/api/v1/things?limit=5&fieldSelector=spec.node%3Da+b&dryRun=All";
    const headers = { authorization: "Bearer first", accept: "application/json" };
    expect(requests).toEqual([{ method: "POST", url, ...headers, body: '{"a":"ö"}' }]);
  });

  it("goes straight to an IPv6 address, past the proxies of the environment", async () => {
    const server = createServer((_, response) => response.end('{"name":"six"}'));
    const port = await listen(server, "::1");
    const directory = await mkdtemp(join(tmpdir(), "berth-six-"));
    vi.stubEnv("HTTPS_PROXY", "http://127.0.0.1:1");
    vi.stubEnv("HTTP_PROXY", "http://127.0.0.1:1");
    const kubeconfig = await writeStubKubeconfig(directory, `http://[::1]:${port}/base/`, { token: "t" });
    const credentials = await loadCredentials({ kubeconfig });
    const client = openKubeClient({ credentials, userAgent: "t", random: () => 0 });
    try {
      expect(await client.call({ ...GET, patienceMs: 0 })).toEqual({ name: "six" });
    } finally {
      vi.unstubAllEnvs();
      await client.close();
      server.close();
      await rm(directory, { recursive: true });
    }
  });

  it.each<readonly [string, StubAnswer]>([
    ["429", (response) => sendStatus(response, 429, "TooManyRequests")],
    ["500", (response) => sendStatus(response, 500, "InternalError")],
    ["503 without a body", (response) => response.writeHead(503).end()],
    ["a cut connection", (response) => response.destroy()],
    [
      "half a body",
      (response) => response.writeHead(200, { "content-length": "100" }).write("{", () => response.destroy()),
    ],
    ["a body that is no JSON", (response) => response.writeHead(200).end("{")],
  ])("is tried again after %s", async (_, answer) => {
    const { client, requests } = await startStub(first(answer, answer));
    expect(await client.call(GET)).toEqual({ done: true });
    expect(requests).toHaveLength(3);
    expect(client.requests.reduce((sum, { count }) => sum + count, 0)).toBe(3);
    expect(client.stats).toMatchObject({ unavailable: 0, calling: 0, waiting: 0 });
  });

  it("does not believe in a pause longer than its patience", async () => {
    const { client, requests } = await startStub((response) =>
      sendStatus(response, 503, "Busy", { "retry-after": "3600" }),
    );
    const message = "GET /api/v1/nodes failed after 1 attempt: GET /api/v1/nodes was answered with 503 Busy: Busy!";
    await expect(client.call({ ...GET, patienceMs: 1_000 })).rejects.toMatchObject({ name: "ApiUnavailable", message });
    expect(requests).toHaveLength(1);
  });

  it("is repeated soon after a lost answer if its first attempt is short, and later attempts hear a slow server", async () => {
    const silent: StubAnswer = () => {};
    const lost = await startStub(first(silent));
    await lost.client.call({ ...GET, attemptMs: 50, patienceMs: BACKGROUND_ATTEMPT_MS / 2 });
    expect(lost.requests).toHaveLength(2);
    const slow = await startStub((...each) => void setTimeout(() => first()(...each), 150));
    await slow.client.call({ ...GET, attemptMs: 50 });
    expect(slow.requests.length, "50 and 100 ms were too short").toBeGreaterThan(2);
  });

  it("waits for a slow answer at once after an attempt during which others were answered", async () => {
    const { client, requests } = await startStub((response, { url }) => {
      setTimeout(() => sendJson(response, 200, {}), url === "/slow" ? 900 : 0);
    });
    const slow = client.call({ ...GET, path: "/slow", attemptMs: 250 });
    await client.call(GET);
    await slow;
    const sent = requests.filter(({ url }) => url === "/slow");
    expect(sent, "not 250, 500 and 1000 ms").toHaveLength(2);
  });

  it("names the server's last answer when its patience ends during a later attempt", async () => {
    const silent: StubAnswer = () => {};
    const { client } = await startStub(first((response) => sendStatus(response, 500, "InternalError"), silent));
    await expect(client.call({ ...GET, patienceMs: 400 })).rejects.toThrow(
      "failed after 2 attempts: There was no answer within 400 ms; before that, GET /api/v1/nodes was answered with 500 InternalError: InternalError!",
    );
  });

  it.each<[string, StubAnswer]>([
    ["a server that is silent", () => {}],
    ["a body that never ends", (response) => response.writeHead(200).write("{")],
  ])("ends when its patience does, with %s", async (_, answer) => {
    const { client } = await startStub(answer);
    await expect(client.call({ ...GET, patienceMs: 200 })).rejects.toThrow("There was no answer within");
    expect(client.stats).toMatchObject({ unavailable: 1, calling: 0 });
  });

  it("says of each attempt without an answer, or with a proxy's, that it may be carried out yet", async () => {
    const broken: StubAnswer = (response) => response.destroy();
    const busy: StubAnswer = (response) => sendStatus(response, 429, "Busy");
    const timeout: StubAnswer = (response) => sendStatus(response, 504, "Timeout");
    const taken: StubAnswer = (response) => sendStatus(response, 409, "AlreadyExists");
    const { client, requests } = await startStub(first(broken, busy, timeout, taken));
    let unanswered = 0;
    const call = client.call({ ...GET, method: "POST", body: {}, onUnanswered: () => unanswered++ });
    await expect(call).rejects.toThrow("AlreadyExists");
    expect([requests.length, unanswered]).toEqual([4, 2]);
  });

  it("that is aborted while it waits for its turn is never sent", async () => {
    const held: (() => void)[] = [];
    const { client, requests } = await startStub((response) => held.push(() => sendJson(response, 200, {})));
    const busy = Array.from({ length: MAX_BACKGROUND_CALLS }, () => client.call(GET));
    await until(() => requests.length === MAX_BACKGROUND_CALLS, "all places are taken");
    const controller = new AbortController();
    const waiting = client.call({ ...GET, path: "/late", signal: controller.signal });
    await until(() => client.stats.waiting === 1, "a call waits");
    controller.abort(new Error("hung up"));
    await expect(waiting).rejects.toThrow("hung up");
    for (const release of held) release();
    await Promise.all(busy);
    expect(client.stats).toMatchObject({ calling: 0, waiting: 0 });
    expect(requests.map(({ url }) => url)).not.toContain("/late");
  });

  it("that is aborted under way or in a pause rejects with the reason", async () => {
    const { client, requests } = await startStub((response, { url }) => {
      if (url === "/pause") sendStatus(response, 503, "Busy", { "retry-after": "5" });
    });
    for (const path of ["/silent", "/pause"]) {
      const controller = new AbortController();
      const call = client.call({ ...GET, path, signal: controller.signal });
      await until(() => requests.some(({ url }) => url === path), "the call was sent");
      setTimeout(() => controller.abort(new Error("hung up")), 20);
      await expect(call).rejects.toThrow("hung up");
    }
  });

  it("for a pod passes those that wait", async () => {
    const held: (() => void)[] = [];
    const { client, requests } = await startStub((response, { url }) => {
      if (url === "/pod") sendJson(response, 200, {});
      else held.push(() => sendJson(response, 200, {}));
    });
    const others = Array.from({ length: 20 }, () => client.call(GET));
    await client.call({ ...GET, path: "/pod", lane: "pod" });
    expect(requests).toHaveLength(MAX_BACKGROUND_CALLS + 1);
    const timer = setInterval(() => held.splice(0).map((release) => release()), 5);
    await Promise.all(others).finally(() => clearInterval(timer));
  });

  it("after the client was closed fails at once", async () => {
    const { client } = await startStub(() => {});
    const call = expect(client.call(GET)).rejects.toThrow("The client was closed");
    await client.close();
    await call;
    await expect(client.call(GET)).rejects.toBeInstanceOf(ApiUnavailable);
  });
});

describe("an answer of 401", () => {
  const wants =
    (token: string): StubAnswer =>
    (response, { authorization }) =>
      authorization === `Bearer ${token}` ? sendJson(response, 200, {}) : sendStatus(response, 401, "Unauthorized");

  const watch = { path: "/w", query: {}, onEvent: () => {}, signal: new AbortController().signal };
  it.each<[string, ({ client }: Stub) => Promise<unknown>]>([
    ["call be sent", ({ client }) => client.call(GET)],
    ["watch be opened", ({ client }) => client.watch(watch).catch(() => {})],
  ])("makes the token be read again, and the %s once more", async (_, ask) => {
    const stub = await startStub(wants("second"));
    await stub.setToken("second");
    await ask(stub);
    expect(stub.requests.map(({ authorization }) => authorization)).toEqual(["Bearer first", "Bearer second"]);
  });

  it("does not keep its connection, although only its head is read", async () => {
    let wanted = "first";
    const stub = await startStub((response, { authorization }) => {
      if (authorization === `Bearer ${wanted}`) sendJson(response, 200, {});
      else response.writeHead(401).end("x".repeat(100_000));
    });
    for (let change = 0; change < MAX_CONNECTIONS; change++) {
      wanted = `changed-${change}`;
      await stub.setToken(wanted);
      await stub.client.call({ ...GET, patienceMs: 1_000 });
    }
  });

  it("stands when there is no other token, and never shows the token", async () => {
    const stub = await startStub(wants("second"));
    const error: unknown = await stub.client.call(GET).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ name: "ApiError", status: 401 });
    expect(stub.requests).toHaveLength(1);
    expect(error instanceof Error && `${error.message} ${error.stack} ${JSON.stringify(error)}`).not.toContain("first");
  });
});

it("a token file is read again while the old token still works", async () => {
  const stub = await startStub((response) => sendJson(response, 200, {}));
  await stub.client.call(GET);
  await stub.setToken("second");
  const last = () => stub.requests.at(-1)?.authorization;
  const startedMs = performance.now();
  while (last() !== "Bearer second" && performance.now() - startedMs < 10_000) await stub.client.call(GET);
  expect(last()).toBe("Bearer second");
});
