import { readFileSync, writeFileSync } from "node:fs";
import { get } from "node:https";
import { connect } from "node:net";
import { join } from "node:path";
import pino from "pino";
import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import { ApiUnavailable, type KubeCall, type KubeObject } from "../../../host/kubernetes/kube-api.ts";
import {
  CallerAccess,
  MAX_REVIEWS_OF_SOURCE,
  REFUSED_MEMORY_MS,
  REVIEWS_AT_ONCE,
  UNKNOWN_TOKENS,
} from "../../../host/metrics/caller-access.ts";
import { findExposure, type ListenAddress, type ServerSettings } from "../../../host/metrics/listen.ts";
import { listenForScrapes } from "../../../host/metrics/scrape-server.ts";
import { temporaryDirectory } from "../../world/temporary-directory.ts";
import { makeCertificate } from "../kubernetes/certificate.ts";

const LOOPBACK: ListenAddress = { kind: "loopback", host: "127.0.0.1", port: 0 };
const NETWORK: ListenAddress = { kind: "network", host: "0.0.0.0", port: 0 };
const FILES = { certFile: "cert.pem", keyFile: "key.pem" };

it.each<[string, Partial<ServerSettings>, boolean, string | undefined]>([
  ["off", { address: { kind: "off" } }, false, undefined],
  ["a unix socket", { address: { kind: "unix", path: "/s" } }, false, undefined],
  ["loopback", {}, false, undefined],
  ["loopback with TLS", { tls: FILES }, false, undefined],
  ["the network without TLS", { address: NETWORK }, true, "over TLS only; pass --metrics-cert-file"],
  ["the network with TLS in a cluster", { address: NETWORK, tls: FILES }, true, undefined],
  ["the network with TLS without a cluster", { address: NETWORK, tls: FILES }, false, "nothing reviews the tokens"],
  ["the network without a cluster", { address: NETWORK }, false, "nothing reviews the tokens"],
  ["the network, said to be insecure", { address: NETWORK, isInsecure: true }, false, undefined],
])("an address: %s: %j, cluster %j", (_, given, hasCluster, expected) => {
  const found = findExposure({ address: LOOPBACK, tls: undefined, isInsecure: false, ...given }, { hasCluster });
  if (expected === undefined) expect(found).toBeUndefined();
  else expect(found).toContain(expected);
});

const MAY_SCRAPE = { nonResourceAttributes: { path: "/metrics", verb: "get" } } as const;

/** An API server that knows the token "good", whose user may scrape, and "poor…", whose users may not. */
class Reviews {
  readonly calls: KubeCall[] = [];
  answers: Promise<unknown> = Promise.resolve();

  async call(call: KubeCall): Promise<KubeObject> {
    this.calls.push(call);
    await this.answers;
    const { spec } = call.body as { spec: { token?: string; user?: string } };
    if (call.path === "/apis/authentication.k8s.io/v1/tokenreviews") {
      const isKnown = /^(?:good|poor)/.test(spec.token ?? "");
      return { status: isKnown ? { authenticated: true, user: { username: spec.token, groups: ["g"] } } : {} };
    }
    expect(call.path).toBe("/apis/authorization.k8s.io/v1/subjectaccessreviews");
    expect(spec).toMatchObject({ groups: ["g"], nonResourceAttributes: { path: "/metrics", verb: "get" } });
    return { status: { allowed: spec.user === "good" } };
  }
}

/** Returns a function that gives the status of a caller's answer: 200 if it has the right to scrape. */
function openAccess(api: Pick<Reviews, "call">, nowMs = () => 0, audience?: string) {
  const settings = { address: NETWORK, isInsecure: false, log: pino({ level: "silent" }) };
  const access = new CallerAccess({ ...settings, api, nowMs, ...(audience === undefined ? {} : { audience }) });
  return async (authorization: string | undefined, source = "10.0.0.1") =>
    (await access.refusal({ authorization, source }, MAY_SCRAPE, "no"))?.status ?? 200;
}

describe("access", () => {
  it.each([
    ["Bearer good", 200, 2],
    ["bearer  good", 200, 2],
    ["Bearer poor", 403, 2],
    ["Bearer made-up", 401, 1],
    ["Basic Z29vZA==", 401, 0],
    ["Bearer ", 401, 0],
    [`Bearer ${"x".repeat(20_000)}`, 401, 0],
    [undefined, 401, 0],
  ])("with %s is answered with %s after %i calls", async (header, expected, calls) => {
    const reviews = new Reviews();
    expect([await openAccess(reviews)(header), reviews.calls.length]).toEqual([expected, calls]);
  });

  it.each([
    [["berth-agents"], 200],
    [["https://kubernetes.default.svc"], 401],
    // An authenticator that knows no audiences.
    [undefined, 401],
  ] as const)("by a token for %j is answered with %s where one for agents is wanted", async (audiences, expected) => {
    const found: unknown[] = [];
    const call = async ({ path, body }: KubeCall): Promise<KubeObject> => {
      if (!path.endsWith("/tokenreviews")) return { status: { allowed: true } };
      found.push((body as { spec: { audiences?: unknown } }).spec.audiences);
      return { status: { authenticated: true, user: { username: "u" }, audiences } };
    };
    const access = openAccess({ call }, () => 0, "berth-agents");
    expect([await access("Bearer good"), found]).toEqual([expected, [["berth-agents"]]]);
  });

  it("is remembered, a refusal for a shorter time", async () => {
    const reviews = new Reviews();
    let nowMs = 0;
    const access = openAccess(reviews, () => nowMs);
    for (const token of ["good", "poor", "good", "poor"]) await access(`Bearer ${token}`);
    expect(reviews.calls).toHaveLength(4);
    nowMs = REFUSED_MEMORY_MS;
    for (const token of ["good", "poor"]) await access(`Bearer ${token}`);
    expect(reviews.calls).toHaveLength(6);
  });

  it("made-up tokens do not push out one that is known, and few are reviewed for one address", async () => {
    const reviews = new Reviews();
    let nowMs = 0;
    const access = openAccess(reviews, () => nowMs);
    await access("Bearer good");
    reviews.answers = new Promise(() => {});
    const flood = Array.from({ length: 500 }, (_, index) => access(`Bearer made-up-${index}`));
    expect(new Set(await Promise.all(flood.slice(MAX_REVIEWS_OF_SOURCE)))).toEqual(new Set([503]));
    expect([await access("Bearer good"), reviews.calls.length]).toEqual([200, 2 + MAX_REVIEWS_OF_SOURCE]);
    reviews.answers = Promise.resolve();
    nowMs = 3_600_000;
    expect(await access("Bearer good")).toBe(200);
  });

  it("of another address waits for few reviews, also while a client makes up tokens", async () => {
    const reviews = new Reviews();
    const access = openAccess(reviews);
    const { promise, resolve } = Promise.withResolvers<void>();
    reviews.answers = promise;
    const sources = Array.from({ length: 12 }, (_, index) => `10.0.1.${index}`);
    const flood = sources.flatMap((source) =>
      Array.from({ length: 50 }, (_, index) => access(`Bearer made-up-${source}-${index}`, source)),
    );
    const good = access("Bearer good");
    await new Promise((resolve) => setImmediate(resolve));
    expect(reviews.calls).toHaveLength(REVIEWS_AT_ONCE);
    resolve();
    expect(await good).toBe(200);
    const answers = await Promise.all(flood);
    expect(answers.filter((status) => status === 401)).toHaveLength(sources.length * MAX_REVIEWS_OF_SOURCE);
  });

  it("tokens of no user are reviewed ever less often for one address, those of users as often as they come", async () => {
    const reviews = new Reviews();
    let nowMs = 0;
    const access = openAccess(reviews, () => nowMs);
    const ask = async (name: string) => {
      const found: number[] = [];
      for (let index = 0; index < 20; index++) found.push(await access(`Bearer ${name}-${index}`));
      return found.filter((status) => status !== 503).length;
    };
    expect([await ask("made-up"), await access("Bearer good")]).toEqual([UNKNOWN_TOKENS.burst, 503]);
    nowMs = 3_000;
    expect([await ask("more"), await access("Bearer good", "10.0.0.2")]).toEqual([3 * UNKNOWN_TOKENS.perSecond, 200]);
    nowMs = 6_000;
    for (let index = 0; index < 20; index++) expect(await access(`Bearer poor-${index}`)).toBe(403);
  });
});

describe("a server for other machines", () => {
  const closing: (() => Promise<void> | void)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });

  /** Returns a function that scrapes with a token and returns the status, and one that writes a new certificate. */
  async function serve(api: Pick<Reviews, "call">, hasFiles = true) {
    const directory = temporaryDirectory("berth-metrics-", onTestFinished);
    const tls = { certFile: join(directory, "cert.pem"), keyFile: join(directory, "key.pem") };
    const write = () => {
      const { cert, key } = makeCertificate("berth");
      writeFileSync(tls.certFile, cert);
      writeFileSync(tls.keyFile, key);
    };
    if (hasFiles) write();
    const server = await listenForScrapes({
      ...{ address: NETWORK, tls, isInsecure: false, api },
      ...{ metrics: { render: async () => "x 1\n" }, nowMs: () => 0, log: pino({ level: "silent" }) },
    });
    closing.push(() => server.close());
    const { port } = new URL(server.url);
    const scrape = (token: string, localAddress = "127.0.0.1"): Promise<number> =>
      new Promise((resolve, reject) => {
        const headers = { authorization: `Bearer ${token}` };
        const where = { host: "127.0.0.1", port, path: "/metrics", localAddress, ca: readFileSync(tls.certFile) };
        const question = get({ ...where, headers, agent: false }, (answer) => {
          answer.resume().once("end", () => resolve(answer.statusCode ?? 0));
        });
        question.once("error", reject);
      });
    return { scrape, write, port: Number(port) };
  }

  it("lets no client in while the API server does not answer", async () => {
    const call = async (): Promise<never> => {
      throw new ApiUnavailable("POST /apis", "no connection");
    };
    const { scrape } = await serve({ call });
    expect(await scrape("good")).toBe(503);
  });

  it("answers while others hold connections, the oldest of which give way, and closes those without a request", async () => {
    const { scrape, port } = await serve(new Reviews());
    const closed: number[] = [];
    const connectFrom = (localAddress: string, index: number) => {
      const socket = connect({ host: "127.0.0.1", port, localAddress });
      socket.once("close", () => closed.push(index)).on("error", () => {});
      closing.push(() => void socket.destroy());
    };
    for (let index = 0; index < 80; index++) connectFrom("127.0.0.9", index);
    await expect.poll(() => closed.length).toBe(48);
    expect([...closed].sort((a, b) => a - b)).toEqual(Array.from({ length: 48 }, (_, index) => index));
    for (let source = 0; source < 12; source++)
      for (let index = 0; index < 40; index++) connectFrom(`127.0.1.${source + 1}`, 1_000);
    for (const from of ["127.0.0.1", "127.0.0.9", "127.0.1.3"]) expect(await scrape("good", from)).toBe(200);
    await expect.poll(() => closed.length, { timeout: 10_000 }).toBe(80 + 480);
  });

  it("waits for its certificate, and shows the next one when the files change", async () => {
    const { scrape, write } = await serve(new Reviews(), false);
    for (let round = 0; round < 2; round++) {
      write();
      await expect(scrape("good")).rejects.toThrow();
      await expect.poll(() => scrape("good").catch(() => 0), { timeout: 15_000, interval: 200 }).toBe(200);
    }
  }, 40_000);
});
