/** The controller's certificates, on Secrets in memory: issuer, renewal, and the Secrets that others see. */
import { execFileSync } from "node:child_process";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, it, onTestFinished } from "vitest";
import { issueCertificate, makeAuthority } from "../../../../host/controller/certificates/certificate.ts";
import {
  type CertificateSettings,
  startCertificates,
} from "../../../../host/controller/certificates/certificates-controller.ts";
import type { Controller, ControllerDeps } from "../../../../host/controller/types.ts";
import { ApiError } from "../../../../host/kubernetes/kube-api.ts";
import { MemoryApiServer } from "../../../fakes/memory-api-server.ts";
import { recordLog } from "../../../world/recorded-log.ts";
import { temporaryDirectory } from "../../../world/temporary-directory.ts";

const SECRETS = "/api/v1/namespaces/kube-system/secrets";
const DAY_MS = 86_400_000;
const SERVERS = [
  { secret: "agent-tls", names: ["berth-agent.kube-system.svc"] },
  { secret: "controller-tls", names: ["berth-controller.kube-system.svc", "berth-map.kube-system.svc", "10.0.0.7"] },
];

const pem = (label: string, base64: string): string =>
  `-----BEGIN ${label}-----\n${base64.replaceAll(/.{64}/g, "$&\n").trimEnd()}\n-----END ${label}-----\n`;

/** Written by the code for X.509 that Berth once had, for the names of `agent-tls`. */
const BEFORE = {
  authority: pem(
    "CERTIFICATE",
    "MIIBqDCCAU2gAwIBAgIQfjkXVw1Ntz7/KG9aDeTZsjAKBggqhkjOPQQDAjAjMSEwHwYDVQQDDBhhdXRob3JpdHkgaW4ga3ViZS1zeXN0ZW0wHhcNMjUxMjAxMDAwMDAwWhcNMzUxMjAxMDAwMDAwWjAjMSEwHwYDVQQDDBhhdXRob3JpdHkgaW4ga3ViZS1zeXN0ZW0wWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAASVhvCEIn5KMwKkMw9sqGht4QpnXmWrNYQ7uRmVUjZ8NXOtVSKwFfIMvVigLC1+ZRgG61ogv8D/Rwbol7WL1e9/o2MwYTAdBgNVHQ4EFgQU++JdX3fzMeE5Mk1oC5V+cXja34IwHwYDVR0jBBgwFoAU++JdX3fzMeE5Mk1oC5V+cXja34IwDwYDVR0TAQH/BAUwAwEB/zAOBgNVHQ8BAf8EBAMCAgQwCgYIKoZIzj0EAwIDSQAwRgIhAIqJOQVgg4IjDzeGn6iAlR/03tiyHGILnzlF7hhR446+AiEAmP/1gYR1j42OQrUEuWC1f+iP24/tG5Jls7QXWLkdnFY=",
  ),
  authorityKey: pem(
    "PRIVATE KEY",
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgeyGaB1Hog8eyUG8mcIfuMpMZOrMCBiT7EzDrQbOe+6KhRANCAASVhvCEIn5KMwKkMw9sqGht4QpnXmWrNYQ7uRmVUjZ8NXOtVSKwFfIMvVigLC1+ZRgG61ogv8D/Rwbol7WL1e9/",
  ),
  cert: pem(
    "CERTIFICATE",
    "MIIBwjCCAWigAwIBAgIQQ1agVT8Hp1AZQmimoGGKhDAKBggqhkjOPQQDAjAjMSEwHwYDVQQDDBhhdXRob3JpdHkgaW4ga3ViZS1zeXN0ZW0wHhcNMjUxMjAxMDAwMDAwWhcNMjYwMzAxMDAwMDAwWjAQMQ4wDAYDVQQDDAViZXJ0aDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABC89SmFBbe7VlbuS5bBH9ajII4B32AbCzrCac45bwoFJp5KPqGYiOZw660X9c4qldOGRWS74Sbf0EZN546sN8uKjgZAwgY0wHQYDVR0OBBYEFIoACzOWgCZ4LOErBfwM6dUGn91zMB8GA1UdIwQYMBaAFPviXV938zHhOTJNaAuVfnF42t+CMCYGA1UdEQQfMB2CG2JlcnRoLWFnZW50Lmt1YmUtc3lzdGVtLnN2YzAOBgNVHQ8BAf8EBAMCB4AwEwYDVR0lBAwwCgYIKwYBBQUHAwEwCgYIKoZIzj0EAwIDSAAwRQIgTcgy7jHQSA9CPIxQdlN40AGRwQand2m/BLdwPL3Jg3wCIQCKz4ZqRD2g+WiP0HB0o2F5C45KH2h1a4Deh11m1W3zMw==",
  ),
  key: pem(
    "PRIVATE KEY",
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg/j30y3FFuA01HA3iV6khql8I/O+511/UtDywKtmzsqmhRANCAAQvPUphQW3u1ZW7kuWwR/WoyCOAd9gGws6wmnOOW8KBSaeSj6hmIjmcOutF/XOKpXThkVku+Em39BGTeeOrDfLi",
  ),
};

let server: MemoryApiServer;
let nowMs: number;

beforeEach(() => {
  nowMs = Date.UTC(2026, 0, 1);
  server = new MemoryApiServer({ serves: { [SECRETS]: { apiVersion: "v1", kind: "Secret" } }, isOpen: true });
  for (const name of ["authority", ...SERVERS.map(({ secret }) => secret)]) put(name, undefined);
});

function put(name: string, data: Record<string, string> | undefined): void {
  const encoded = data && Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString("base64")]);
  const metadata = { namespace: "kube-system" };
  server.put(SECRETS, name, { metadata, ...(encoded && { data: Object.fromEntries(encoded) }) });
}

async function read(name: string): Promise<Record<string, string>> {
  const object = await server.client().call({ method: "GET", path: `${SECRETS}/${name}` });
  const data = Object.entries((object as { data?: Record<string, string> }).data ?? {});
  return Object.fromEntries(data.map(([key, text]) => [key, Buffer.from(text, "base64").toString()]));
}

const certificate = async (name: string) => new X509Certificate((await read(name))["tls.crt"] ?? "");

/** Some of the agents' Secret is other than it was. */
const change = async (data: Record<string, string | undefined>) =>
  put("agent-tls", { ...(await read("agent-tls")), ...(data as Record<string, string>) });

function start(settings: Partial<CertificateSettings> = {}): Controller {
  const { log } = recordLog();
  const clock = { now: () => new Date(nowMs) };
  const leading = new AbortController().signal;
  const whole = { namespace: "kube-system", authority: "authority", servers: SERVERS, lifetimeMs: 90 * DAY_MS };
  const deps = { api: server.client(), log, random: () => 0, leading, clock } as unknown as ControllerDeps;
  return startCertificates({ ...whole, ...settings })(deps);
}

/** Leads for one pass. */
async function pass(settings: Partial<CertificateSettings> = {}): Promise<void> {
  const part = start(settings);
  // Its first pass starts in a timer that was set before this one.
  await new Promise((resolve) => setTimeout(resolve, 1));
  await part.close();
  expect(part.problems).toEqual([]);
}

it("each server gets a certificate for its names, with a key of its own, of one authority", async () => {
  await pass();
  const authority = await certificate("authority");
  const keys = new Set<string>();
  for (const { secret, names } of SERVERS) {
    const { "tls.key": key = "", "ca.crt": ca } = await read(secret);
    const found = await certificate(secret);
    expect(found.verify(authority.publicKey) && found.checkIssued(authority)).toBe(true);
    expect([ca, found.ca, authority.ca]).toEqual([authority.toString(), false, true]);
    expect(found.checkPrivateKey(createPrivateKey(key))).toBe(true);
    for (const name of names) expect(found.checkHost(name) ?? found.checkIP(name), name).toBe(name);
    expect(found.validToDate).toEqual(new Date(nowMs + 90 * DAY_MS));
    keys.add(key);
  }
  expect(keys.size).toBe(2);
});

/** Verifies the controller's certificate by `ca`. */
async function verifyStrictly(ca: string): Promise<void> {
  const directory = temporaryDirectory("berth-x509-", onTestFinished);
  writeFileSync(join(directory, "cert.pem"), (await read("controller-tls"))["tls.crt"] ?? "");
  writeFileSync(join(directory, "ca.pem"), ca);
  const names = ["-purpose", "sslserver", "-verify_hostname", "berth-map.kube-system.svc"];
  const at = ["-attime", `${Math.floor(nowMs / 1_000)}`];
  const words = ["verify", "-x509_strict", ...names, ...at, "-CAfile", "ca.pem", "cert.pem"];
  expect(execFileSync("openssl", words, { cwd: directory, encoding: "utf8" })).toBe("cert.pem: OK\n");
}

it.each(["2026-01-01T00:00:00.123Z", "2049-12-01T00:00:00.456Z"])("OpenSSL verifies them, made %s", async (time) => {
  nowMs = Date.parse(time);
  await pass();
  await verifyStrictly((await read("controller-tls"))["ca.crt"] ?? "");
});

it("those that Berth wrote itself before 1.0 stay, and their authority signs the next", async () => {
  put("authority", { "tls.crt": BEFORE.authority, "tls.key": BEFORE.authorityKey });
  put("agent-tls", { "tls.crt": BEFORE.cert, "tls.key": BEFORE.key, "ca.crt": BEFORE.authority });
  await pass();
  expect((await read("authority"))["tls.crt"]).toBe(BEFORE.authority);
  expect((await read("agent-tls"))["tls.crt"]).toBe(BEFORE.cert);
  await verifyStrictly(BEFORE.authority);
});

it("those of a leader whose clock was ahead are replaced when it is right again", async () => {
  nowMs += 1_800 * DAY_MS;
  await pass();
  const ahead = await read("authority");
  nowMs -= 1_800 * DAY_MS;
  await pass();
  expect((await certificate("agent-tls")).validFromDate.getTime()).toBeLessThanOrEqual(nowMs);
  expect((await read("authority"))["tls.key"]).toBe(ahead["tls.key"]);
  await verifyStrictly((await read("controller-tls"))["ca.crt"] ?? "");
});

it("two leaders at once end with one authority, which has signed both", async () => {
  const both = [start(), start()];
  const isWhole = async () => {
    const authority = await certificate("authority");
    const found = await Promise.all(SERVERS.map(({ secret }) => certificate(secret)));
    return found.every((each) => each.verify(authority.publicKey));
  };
  await expect.poll(() => isWhole().catch(() => false), { timeout: 10_000 }).toBe(true);
  await Promise.all(both.map((each) => each.close()));
});

it("they are renewed in the last third of their time, the authority with its key", async () => {
  await pass();
  const [first, authority] = [await read("agent-tls"), await read("authority")];
  nowMs += 59 * DAY_MS;
  await pass();
  expect(await read("agent-tls")).toEqual(first);
  nowMs += 2 * DAY_MS;
  await pass();
  const next = await read("agent-tls");
  expect([next["tls.key"] === first["tls.key"], next["ca.crt"]]).toEqual([false, first["ca.crt"]]);
  nowMs += 2_500 * DAY_MS;
  await pass();
  const renewed = await read("authority");
  expect([renewed["tls.key"], renewed["tls.crt"] === authority["tls.crt"]]).toEqual([authority["tls.key"], false]);
  // Certificates that it signed before are still verified, by both.
  const old = new X509Certificate(next["tls.crt"] ?? "");
  expect(old.checkIssued(await certificate("authority"))).toBe(true);
  expect((await certificate("agent-tls")).verify(new X509Certificate(authority["tls.crt"] ?? "").publicKey)).toBe(true);
  expect((await read("agent-tls"))["ca.crt"]).toBe(renewed["tls.crt"]);
});

it.each<[string, () => Promise<void>]>([
  ["no longer has its names", () => Promise.resolve()],
  ["is damaged", () => change({ "tls.crt": "x" })],
  ["has another's key", async () => change({ "tls.key": (await read("authority"))["tls.key"] })],
  ["has another authority beside it", () => change({ "ca.crt": "x" })],
  [
    "is of another authority",
    async () => {
      const span = { from: new Date(nowMs), to: new Date(nowMs + 90 * DAY_MS) };
      const other = await makeAuthority("authority in kube-system", span);
      const { cert, key } = await issueCertificate(other, SERVERS[0]?.names ?? [], span);
      await change({ "tls.crt": cert, "tls.key": key });
    },
  ],
])("one that %s is replaced", async (title, spoil) => {
  await pass();
  await spoil();
  const names = title.includes("names") ? ["new.kube-system.svc"] : (SERVERS[0]?.names ?? []);
  await pass({ servers: [{ secret: "agent-tls", names }] });
  const [found, authority] = [await certificate("agent-tls"), await certificate("authority")];
  const { "tls.key": key = "", "ca.crt": ca } = await read("agent-tls");
  expect(found.checkHost(names[0] ?? "")).toBe(names[0]);
  expect(found.verify(authority.publicKey) && found.checkPrivateKey(createPrivateKey(key))).toBe(true);
  expect(ca).toBe(authority.toString());
});

it("a Secret that is not there is named, and none is made; the others get theirs", async () => {
  const part = start({ servers: [{ secret: "gone", names: ["x.kube-system.svc"] }, ...SERVERS] });
  onTestFinished(() => part.close());
  await expect.poll(() => part.problems).toEqual([expect.stringContaining(`GET ${SECRETS}/gone`)]);
  await expect(read("gone")).rejects.toThrow(ApiError);
  for (const { secret } of SERVERS) expect(await read(secret)).toHaveProperty(["tls.crt"]);
});
