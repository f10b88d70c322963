/** The client against servers that answer anything: over TCP and TLS, on loopback. */
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { makeCertificate } from "../../../../../test/unit/kubernetes/certificate.ts";
import { temporaryDirectory } from "../../../../../test/world/temporary-directory.ts";
import { parseServerUrl } from "../../../record-server/file-access.ts";
import { HttpClient, RecordServerError, type ServerRequest } from "../../../record-server/http-client.ts";

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

const TOKEN = "0123456789abcdef0123456789abcdef01234567";
const { signal } = new AbortController();

let directory = "";
const ends: (() => Promise<unknown>)[] = [];
const at = (file: string) => join(directory, file);

beforeEach(async () => {
  directory = temporaryDirectory("berth-record-server-", onTestFinished);
  await writeFile(at("token"), `${TOKEN}\n`);
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function listen(server: Server): Promise<number> {
  await once(server.listen(0, "127.0.0.1"), "listening");
  ends.push(async () => {
    server.closeAllConnections();
    await once(server.close(), "close");
  });
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

function open(url: string, caFile?: string): HttpClient {
  const client = new HttpClient({ url, tokenFile: at("token"), caFile, userAgent: "test" });
  ends.push(() => client.close());
  return client;
}

async function serve(handler: Handler): Promise<HttpClient> {
  return open(`http://127.0.0.1:${await listen(createServer(handler))}/base/`);
}

/** Sends one request, and returns the error, whose text has neither token nor query. */
async function fail(handler: Handler, request: Partial<ServerRequest> = {}): Promise<RecordServerError> {
  const client = await serve(handler);
  return failOf(client.request({ method: "GET", path: "/api/x/", query: { q: "secret" }, signal, ...request }));
}

async function failOf(work: Promise<unknown>): Promise<RecordServerError> {
  const error = await work.then(
    () => expect.unreachable("no error"),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(RecordServerError);
  expect(JSON.stringify({ ...(error as object), text: String(error) })).not.toMatch(new RegExp(`${TOKEN}|secret`));
  return error as RecordServerError;
}

const json =
  (value: unknown, status = 200, headers = {}): Handler =>
  (_, response) =>
    response.writeHead(status, headers).end(JSON.stringify(value));

describe("a request", () => {
  it("has token, query and body, below the server's path, over connections that are kept", async () => {
    const seen: unknown[] = [];
    let connections = 0;
    const server = createServer((request, response) => {
      const { method, url, headers } = request;
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const { authorization, "content-type": type } = headers;
        seen.push([method, url, authorization, type, Buffer.concat(chunks).toString()]);
        response.end(method === "DELETE" ? "" : '{"id":1}');
      });
    });
    server.on("connection", () => connections++);
    const client = open(`http://127.0.0.1:${await listen(server)}/base/`);
    const change = { path: "/api/x/", query: { tag: ["a b", "c"] }, body: [{ id: 1 }], signal };
    expect(await client.request({ method: "PATCH", ...change })).toEqual({ status: 200, json: { id: 1 } });
    const gone = { status: 200, json: undefined };
    expect(await client.request({ method: "DELETE", path: "/api/x/1/", signal })).toEqual(gone);
    expect(seen).toEqual([
      ["PATCH", "/base/api/x/?tag=a+b&tag=c", `Token ${TOKEN}`, "application/json", '[{"id":1}]'],
      ["DELETE", "/base/api/x/1/", `Token ${TOKEN}`, undefined, ""],
    ]);
    for (let more = 0; more < 10; more++) await client.request({ method: "GET", path: "/", signal });
    expect(client.requests).toBe(12);
    expect(connections).toBeLessThanOrEqual(2);
  });

  it("has a token that was replaced in its file at once after a 401; a NetBox token of version 2 is a bearer's", async () => {
    const client = await serve((request, response) => {
      const { authorization = "" } = request.headers;
      response.writeHead(authorization === `Token ${TOKEN}` ? 401 : 200).end(JSON.stringify(authorization));
    });
    const get = () => client.request({ method: "GET", path: "/", signal });
    expect(await failOf(get())).toMatchObject({ status: 401 });
    await writeFile(at("token"), "nbt_0123456789ab.secretsecret\n");
    expect(await get()).toMatchObject({ json: "Bearer nbt_0123456789ab.secretsecret" });
    await writeFile(at("token"), "");
    await expect.poll(() => get().then(() => client.problem), { timeout: 5_000 }).toMatch(/an empty file/);
  });
});

const BIG = "x".repeat(1_048_576);

function endless(response: ServerResponse): void {
  const push = () => {
    while (response.write(BIG));
  };
  response.on("drain", push);
  push();
}

const SOON = { timeoutMs: 200 };
const NO_JSON = /\/base\/api\/x\/ was answered with 200 and a text that is no JSON: <html>\\u\{1b\}\[31mSign/;
const page: Handler = (_, response) => response.end("<html>\u001b[31mSign in</html>");
const repeat: Handler = ({ headers }, response) =>
  response.writeHead(403).end(`no: ${headers.authorization} ${"y".repeat(999)}`);
const exists = { prefix: ["exists"] };
const wait = (status: number, seconds: string): Handler => json({}, status, { "retry-after": seconds });
const redirect = json("", 302, { location: "https://elsewhere.example/?secret" });
const begin: Handler = (_, response) => response.write("[1,");

it.for<[what: string, answer: Handler, error: object, message?: RegExp, request?: Partial<ServerRequest>]>([
  ["a page in HTML", page, { status: 200 }, NO_JSON],
  ["a refusal", json(exists, 400), { status: 400, json: exists }, /answered with 400: \{"prefix":\["exists"\]\}$/],
  ["a refusal that repeats the request", repeat, { status: 403 }, /no: Token \[token\] y{100,190}$/],
  ["a wait", wait(429, "90"), { status: 429, retryAfterMs: 90_000 }],
  ["an endless wait", wait(503, "99999"), { status: 503, retryAfterMs: 300_000 }],
  ["a redirect", redirect, { status: 302 }, /redirects are not followed/],
  ["an endless body", (_, response) => endless(response), { status: undefined }, /max size/],
  ["a body that never ends", begin, { status: undefined }, /failed: there was no answer within 0.2 s/, SOON],
  ["no head", () => {}, {}, /no answer within 0.2 s/, SOON],
  ["a closed connection", ({ socket }) => socket.destroy(), {}, /failed: .*(?:closed|ECONNRESET)/],
])("is an error without secrets: %s", async ([, answer, error, message, request]) => {
  const found = await fail(answer, request);
  expect(found).toMatchObject(error);
  if (message !== undefined) expect(found.message).toMatch(message);
});

it("rejects with the caller's reason", async () => {
  const client = await serve(() => {});
  const caller = AbortSignal.timeout(50);
  await expect(client.request({ method: "GET", path: "/", signal: caller })).rejects.toBe(
    await new Promise((resolve) => caller.addEventListener("abort", () => resolve(caller.reason))),
  );
});

it("TLS is verified against the authority in the file, which may be replaced", async () => {
  const [own, other] = [makeCertificate("own"), makeCertificate("other")];
  const port = await listen(createTlsServer(own, json({ ok: true })));
  await writeFile(at("ca.pem"), other.cert);
  const client = open(`https://127.0.0.1:${port}`, at("ca.pem"));
  const get = () => client.request({ method: "GET", path: "/", signal });
  expect((await failOf(get())).message).toMatch(/certificate/);
  const without = open(`https://127.0.0.1:${port}`).request({ method: "GET", path: "/", signal });
  expect((await failOf(without)).message).toMatch(/certificate/);
  await writeFile(at("ca.pem"), own.cert);
  await expect.poll(() => get().catch(() => {}), { timeout: 5_000 }).toMatchObject({ json: { ok: true } });
});

it.for([
  ["https://ipam.example.com/nautobot/", "ok"],
  ["http://127.0.0.1:8080", "ok"],
  ["http://ipam.example.com", /found "http:\/\/ipam.example.com", want https/],
  ["https://me:secret@ipam.example.com", /found one with a name or a password/],
  ["https://ipam.example.com/?a=b", /want https/],
  ["ipam", /found "ipam"/],
] as const)("URL %s", ([text, expected]) => {
  if (expected === "ok") expect(parseServerUrl(text)).toBeInstanceOf(URL);
  else expect(() => parseServerUrl(text)).toThrow(expected);
});

describe("a list", () => {
  const pages = (edit: (page: Record<string, unknown>, start: number, host: string) => object) =>
    serve((request, response) => {
      const url = new URL(request.url ?? "", `http://${request.headers.host}`);
      const start = Number(url.searchParams.get("offset") ?? 0);
      const next = `http://${request.headers.host}${url.pathname}?limit=2&tag=a&tag=b&offset=${start + 2}`;
      const results = [start, start + 1].filter((number) => number < 5);
      const page = { count: 5, next: start < 4 ? next : null, results };
      response.end(JSON.stringify(edit(page, start, request.headers.host ?? "")));
    });
  const list = (client: HttpClient) => client.list({ path: "/api/x/", query: { limit: 2 }, signal });

  it("is read page by page, also where a proxy ends TLS", async () => {
    const https = (next: unknown) => String(next ?? "").replace("http:", "https:") || null;
    const client = await pages((page) => ({ ...page, next: https(page.next) }));
    expect(await list(client)).toEqual({ items: [0, 1, 2, 3, 4], isExact: true });
  });

  it("says when it changed meanwhile", async () => {
    const client = await pages((page, start) => ({ ...page, count: start > 0 ? 4 : 5 }));
    expect((await list(client)).isExact).toBe(false);
  });

  it.for([
    ["another server", (host: string) => `http://evil.example/base/api/x/?${host}`],
    ["another path", (host: string) => `http://${host}/base/api/users/tokens/`],
    ["no URL", () => "http://"],
  ] as const)("is not followed to %s", async ([, next]) => {
    const client = await pages((page, _, host) => ({ ...page, next: next(host) }));
    expect((await failOf(list(client))).message).toMatch(/next page elsewhere/);
  });

  it("is not read forever", async () => {
    const client = await pages((page, start) => ({ ...page, results: start > 20 ? [] : [1], next: page.next ?? null }));
    expect((await list(client)).isExact).toBe(false);
    expect((await failOf(list(await pages(() => ({ detail: "no list" }))))).message).toMatch(/is no list/);
  });
});
