import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { get } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pino from "pino";
import { afterEach, describe, expect, it } from "vitest";
import { ApiUnavailable, type KubeCall, type KubeObject } from "../../../host/kubernetes/kube-api.ts";
import { CallerAccess, MAX_REVIEWS, REFUSED_MEMORY_MS } from "../../../host/metrics/caller-access.ts";
import type { ListenAddress } from "../../../host/metrics/listen.ts";
import { findExposure, listenForScrapes, type ScrapeSettings } from "../../../host/metrics/scrape-server.ts";

const LOOPBACK: ListenAddress = { kind: "loopback", host: "127.0.0.1", port: 0 };
const NETWORK: ListenAddress = { kind: "network", host: "0.0.0.0", port: 0 };
const FILES = { certFile: "cert.pem", keyFile: "key.pem" };

describe("an address", () => {
  it.each<[string, Partial<ScrapeSettings>, boolean, string | undefined]>([
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

/** An API server that knows the token "good", whose user may scrape, and "poor", whose user may not. */
const MAY_SCRAPE = { nonResourceAttributes: { path: "/metrics", verb: "get" } } as const;

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

describe("access", () => {
  it.each([
    ["Bearer good", "allowed", 2],
    ["bearer  good", "allowed", 2],
    ["Bearer poor", "refused", 2],
    ["Bearer made-up", "unknown", 1],
    ["Basic Z29vZA==", "unknown", 0],
    ["Bearer ", "unknown", 0],
    [`Bearer ${"x".repeat(20_000)}`, "unknown", 0],
    [undefined, "unknown", 0],
  ])("with %s is %s after %i calls", async (header, expected, calls) => {
    const reviews = new Reviews();
    const access = new CallerAccess(reviews, () => 0);
    expect([await access.check(header, MAY_SCRAPE), reviews.calls.length]).toEqual([expected, calls]);
  });

  it.each([
    [["berth-agents"], "allowed"],
    [["https://kubernetes.default.svc"], "unknown"],
    // An authenticator that knows no audiences.
    [undefined, "unknown"],
  ] as const)("by a token whose audiences are %j is %s where one for agents is wanted", async (audiences, expected) => {
    const found: unknown[] = [];
    const call = async ({ path, body }: KubeCall): Promise<KubeObject> => {
      if (!path.endsWith("/tokenreviews")) return { status: { allowed: true } };
      found.push((body as { spec: { audiences?: unknown } }).spec.audiences);
      return { status: { authenticated: true, user: { username: "u" }, audiences } };
    };
    const access = new CallerAccess({ call }, () => 0, "berth-agents");
    expect([await access.check("Bearer good", MAY_SCRAPE), found]).toEqual([expected, [["berth-agents"]]]);
  });

  it("is remembered, a refusal for a shorter time", async () => {
    const reviews = new Reviews();
    let nowMs = 0;
    const access = new CallerAccess(reviews, () => nowMs);
    for (const token of ["good", "poor", "good", "poor"]) await access.check(`Bearer ${token}`, MAY_SCRAPE);
    expect(reviews.calls).toHaveLength(4);
    nowMs = REFUSED_MEMORY_MS;
    for (const token of ["good", "poor"]) await access.check(`Bearer ${token}`, MAY_SCRAPE);
    expect(reviews.calls).toHaveLength(6);
  });

  it("made-up tokens do not push out one that is known, and few are reviewed at once", async () => {
    const reviews = new Reviews();
    const access = new CallerAccess(reviews, () => 0);
    await access.check("Bearer good", MAY_SCRAPE);
    reviews.answers = new Promise(() => {});
    const flood = Array.from({ length: 500 }, (_, index) => access.check(`Bearer made-up-${index}`, MAY_SCRAPE));
    const busy = flood.slice(MAX_REVIEWS);
    expect(new Set(await Promise.all(busy))).toEqual(new Set(["busy"]));
    expect([await access.check("Bearer good", MAY_SCRAPE), reviews.calls.length]).toEqual(["allowed", 2 + MAX_REVIEWS]);
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
