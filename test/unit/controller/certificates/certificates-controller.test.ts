/** The controller's certificates, on Secrets in memory: who issues them, when they are renewed, and what others see. */
import { execFileSync } from "node:child_process";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { issueCertificate, makeAuthority } from "../../../../host/controller/certificates/certificate.ts";
import {
  type CertificateSettings,
  startCertificates,
} from "../../../../host/controller/certificates/certificates-controller.ts";
import type { Controller, ControllerDeps } from "../../../../host/controller/types.ts";
import { ApiError } from "../../../../host/kubernetes/kube-api.ts";
import { MemoryApiServer } from "../../../fakes/memory-api-server.ts";
import { recordLog } from "../../../world/recorded-log.ts";

const SECRETS = "/api/v1/namespaces/kube-system/secrets";
const DAY_MS = 86_400_000;
const SERVERS = [
  { secret: "agent-tls", names: ["berth-agent.kube-system.svc"] },
  { secret: "controller-tls", names: ["berth-controller.kube-system.svc", "berth-map.kube-system.svc", "10.0.0.7"] },
];

let server: MemoryApiServer;
let nowMs: number;

beforeEach(() => {
  nowMs = Date.UTC(2026, 0, 1);
  server = new MemoryApiServer({ serves: { [SECRETS]: { apiVersion: "v1", kind: "Secret" } }, isOpen: true });
  for (const name of ["authority", ...SERVERS.map(({ secret }) => secret)]) put(name, undefined);
});

function put(name: string, data: Record<string, string> | undefined): void {
  const encoded = data && Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString("base64")]);
  server.put(SECRETS, name, {
    metadata: { namespace: "kube-system" },
    ...(encoded && { data: Object.fromEntries(encoded) }),
  });
}

async function read(name: string): Promise<Record<string, string>> {
  const object = await server.client().call({ method: "GET", path: `${SECRETS}/${name}` });
  const data = Object.entries((object as { data?: Record<string, string> }).data ?? {});
  return Object.fromEntries(data.map(([key, text]) => [key, Buffer.from(text, "base64").toString()]));
}

const certificate = async (name: string) => new X509Certificate((await read(name))["tls.crt"] ?? "");

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

it("OpenSSL verifies them strictly", async () => {
  nowMs = Date.now();
  await pass();
  const directory = mkdtempSync(join(tmpdir(), "berth-x509-"));
  try {
    const { "tls.crt": cert = "", "ca.crt": ca = "" } = await read("controller-tls");
    writeFileSync(join(directory, "cert.pem"), cert);
    writeFileSync(join(directory, "ca.pem"), ca);
    const names = ["-purpose", "sslserver", "-verify_hostname", "berth-map.kube-system.svc"];
    const words = ["verify", "-x509_strict", ...names, "-CAfile", "ca.pem", "cert.pem"];
    expect(execFileSync("openssl", words, { cwd: directory, encoding: "utf8" })).toBe("cert.pem: OK\n");
  } finally {
    rmSync(directory, { recursive: true });
  }
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
  // What it signed before is still verified, by both.
  const old = new X509Certificate(next["tls.crt"] ?? "");
  expect(old.checkIssued(await certificate("authority"))).toBe(true);
  expect((await certificate("agent-tls")).verify(new X509Certificate(authority["tls.crt"] ?? "").publicKey)).toBe(true);
  expect((await read("agent-tls"))["ca.crt"]).toBe(renewed["tls.crt"]);
});

it.each<[string, () => Promise<void>]>([
  ["no longer has its names", () => Promise.resolve()],
  ["is damaged", async () => put("agent-tls", { ...(await read("agent-tls")), "tls.crt": "x" })],
  [
    "has another's key",
    async () =>
      put("agent-tls", { ...(await read("agent-tls")), "tls.key": (await read("authority"))["tls.key"] ?? "" }),
  ],
  ["has another authority beside it", async () => put("agent-tls", { ...(await read("agent-tls")), "ca.crt": "x" })],
  [
    "is of another authority",
    async () => {
      const span = { from: new Date(nowMs), to: new Date(nowMs + 90 * DAY_MS) };
      const other = makeAuthority("authority in kube-system", span);
      const { cert, key } = issueCertificate(other, SERVERS[0]?.names ?? [], span);
      put("agent-tls", { ...(await read("agent-tls")), "tls.crt": cert, "tls.key": key });
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

it("a Secret that is not there is named, and none is made", async () => {
  const part = start({ servers: [{ secret: "gone", names: ["x.kube-system.svc"] }] });
  try {
    await expect.poll(() => part.problems).toEqual([expect.stringContaining(`GET ${SECRETS}/gone`)]);
    await expect(read("gone")).rejects.toThrow(ApiError);
  } finally {
    await part.close();
  }
});
