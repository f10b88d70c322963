import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { get } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pino from "pino";
import { afterEach, describe, expect, it } from "vitest";
import { ApiUnavailable, type KubeCall, type KubeObject } from "../../../host/kubernetes/kube-api.ts";
import { CallerAccess, MAX_REVIEWS, REFUSED_MEMORY_MS } from "../../../host/metrics/caller-access.ts";
import { findExposure, type ListenAddress, type ServerSettings } from "../../../host/metrics/listen.ts";
import { listenForScrapes } from "../../../host/metrics/scrape-server.ts";

const LOOPBACK: ListenAddress = { kind: "loopback", host: "127.0.0.1", port: 0 };
const NETWORK: ListenAddress = { kind: "network", host: "0.0.0.0", port: 0 };
const FILES = { certFile: "cert.pem", keyFile: "key.pem" };

describe("an address", () => {
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
  ])("%s: %j, cluster %j", (_, given, hasCluster, expected) => {
    const found = findExposure({ address: LOOPBACK, tls: undefined, isInsecure: false, ...given }, { hasCluster });
    if (expected === undefined) expect(found).toBeUndefined();
    else expect(found).toContain(expected);
  });
});

const MAY_SCRAPE = { nonResourceAttributes: { path: "/metrics", verb: "get" } } as const;

/** An API server that knows the token "good", whose user may scrape, and "poor", whose user may not. */
class Reviews {
  readonly calls: KubeCall[] = [];
  answers: Promise<unknown> = Promise.resolve();

  async call(call: KubeCall): Promise<KubeObject> {
    this.calls.push(call);
    await this.answers;
    const { spec } = call.body as { spec: { token?: string; user?: string } };
    if (call.path === "/apis/authentication.k8s.io/v1/tokenreviews") {
      const isKnown = spec.token === "good" || spec.token === "poor";
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
  return async (caller: string | undefined) => (await access.refusal(caller, MAY_SCRAPE, "no"))?.status ?? 200;
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
    const access = openAccess(reviews);
    expect([await access(header), reviews.calls.length]).toEqual([expected, calls]);
  });

  it.each([
    [["berth-agents"], 200],
    [["https://kubernetes.default.svc"], 401],
    // An authenticator that knows no audiences.
    [undefined, 401],
  ] as const)(
    "by a token whose audiences are %j is answered with %s where one for agents is wanted",
    async (audiences, expected) => {
      const found: unknown[] = [];
      const call = async ({ path, body }: KubeCall): Promise<KubeObject> => {
        if (!path.endsWith("/tokenreviews")) return { status: { allowed: true } };
        found.push((body as { spec: { audiences?: unknown } }).spec.audiences);
        return { status: { authenticated: true, user: { username: "u" }, audiences } };
      };
      const access = openAccess({ call }, () => 0, "berth-agents");
      expect([await access("Bearer good"), found]).toEqual([expected, [["berth-agents"]]]);
    },
  );

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

  it("made-up tokens do not push out one that is known, and few are reviewed at once", async () => {
    const reviews = new Reviews();
    const access = openAccess(reviews);
    await access("Bearer good");
    reviews.answers = new Promise(() => {});
    const flood = Array.from({ length: 500 }, (_, index) => access(`Bearer made-up-${index}`));
    const busy = flood.slice(MAX_REVIEWS);
    expect(new Set(await Promise.all(busy))).toEqual(new Set([503]));
    expect([await access("Bearer good"), reviews.calls.length]).toEqual([200, 2 + MAX_REVIEWS]);
  });
});

describe("a server for other machines", () => {
  const closing: (() => Promise<void> | void)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });

  /** Returns a function that scrapes with a token, and returns the status. */
  async function serve(api: Pick<Reviews, "call">): Promise<(token?: string, path?: string) => Promise<number>> {
    const directory = mkdtempSync(join(tmpdir(), "berth-metrics-"));
    closing.push(() => rmSync(directory, { recursive: true }));
    const tls = { certFile: join(directory, "cert.pem"), keyFile: join(directory, "key.pem") };
    const subject = ["-subj", "/CN=berth", "-addext", "subjectAltName=IP:127.0.0.1"];
    const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", tls.keyFile];
    execFileSync("openssl", ["req", "-x509", ...key, "-out", tls.certFile, ...subject], { stdio: "ignore" });
    const server = await listenForScrapes({
      ...{ address: NETWORK, tls, isInsecure: false, api },
      ...{ metrics: { render: async () => "x 1\n" }, nowMs: () => 0, log: pino({ level: "silent" }) },
    });
    closing.push(() => server.close());
    const { port } = new URL(server.url);
    const ca = readFileSync(tls.certFile);
    return (token, path = "/metrics") =>
      new Promise((resolve, reject) => {
        const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
        const question = get({ host: "127.0.0.1", port, path, ca, headers, agent: false }, (answer) => {
          answer.resume().once("end", () => resolve(answer.statusCode ?? 0));
        });
        question.once("error", reject);
      });
  }

  it("asks the API server who may scrape", async () => {
    const scrape = await serve(new Reviews());
    const statuses = [scrape("good"), scrape("poor"), scrape("made-up"), scrape(), scrape(undefined, "/v1/status")];
    expect(await Promise.all(statuses)).toEqual([200, 403, 401, 401, 404]);
  });

  it("lets nobody in while the API server does not answer", async () => {
    const call = async (): Promise<never> => {
      throw new ApiUnavailable("POST /apis", "no connection");
    };
    expect(await (await serve({ call }))("good")).toBe(503);
  });
});
