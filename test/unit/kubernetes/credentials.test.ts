import { execFileSync } from "node:child_process";
import { chmod, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { type Credentials, loadCredentials } from "../../../host/kubernetes/credentials.ts";
import { temporaryDirectory } from "../../world/temporary-directory.ts";
import { makeCertificate } from "./certificate.ts";
import { type Parts, SECRET, writeKubeconfig } from "./kubeconfig-file.ts";

const directory = temporaryDirectory("berth-credentials-");

const write = (parts: Parts) => writeKubeconfig(directory, parts);

describe("credentials", () => {
  const headersOf = async (parts: Parts) =>
    (await (await loadCredentials({ kubeconfig: await write(parts) })).current()).headers;

  const contexts = [{ name: "main", context: { cluster: "prod" } }];
  const named = { token: "", username: "a", password: "b" };
  const authorization = `Bearer ${SECRET}`;
  it.each<[string, Parts, object]>([
    ["be a token", {}, { authorization }],
    ["be a token in a file, which wins", { user: { tokenFile: "token" } }, { authorization: "Bearer from-file" }],
    ["be a name and a password", { user: named }, { authorization: "Basic YTpi" }],
    ["impersonate another user", { user: { as: "other" } }, { authorization, "impersonate-user": "other" }],
    ["be no user at all", { rest: { contexts, users: null } }, {}],
  ])("may %s", async (_, parts, headers) => {
    await writeFile(join(directory, "token"), "from-file\n");
    expect(await headersOf(parts)).toEqual(headers);
  });

  it("keep the path of the server before each path", async () => {
    const kubeconfig = await write({ cluster: { server: "https://rancher:8443/k8s/c-1/" } });
    const credentials = await loadCredentials({ kubeconfig });
    expect(credentials.server).toBe("https://rancher:8443/k8s/c-1");
    const { endpoint } = await credentials.current();
    expect(endpoint).toMatchObject({ origin: "https://rancher:8443", basePath: "/k8s/c-1" });
  });

  it("are the same object while nothing changes, keep connections for another token, but not for another server", async () => {
    const credentials = await loadCredentials({ kubeconfig: await write({}) });
    const first = await credentials.current();
    for (const each of [await credentials.refresh(first), await credentials.current()]) expect(each).toBe(first);
    await write({ user: { token: "other" } });
    const second = await credentials.refresh(first);
    expect(second.headers).toEqual({ authorization: "Bearer other" });
    expect(second.endpoint).toBe(first.endpoint);
    await write({ cluster: { server: "https://10.0.0.2:6443" } });
    expect((await credentials.refresh(second)).endpoint.origin).toBe("https://10.0.0.2:6443");
  });

  it("are used on while the file is broken, and say so", async () => {
    const credentials = await loadCredentials({ kubeconfig: await write({}) });
    const before = await credentials.current();
    const kubeconfig = join(directory, "kubeconfig");
    await writeFile(kubeconfig, "{");
    expect(await credentials.refresh(before)).toBe(before);
    expect(credentials.problem).toContain("Malformed YAML");
  });
});

describe("an exec plugin", () => {
  /** Counts its runs, and prints a token with that number which expires after `seconds`. */
  async function writePlugin(seconds: number): Promise<{ command: string; runs: () => Promise<number> }> {
    const command = join(directory, `plugin-${seconds}`);
    const counter = `${command}.runs`;
    const expires = `$(date -u -d "+${seconds} seconds" +%Y-%m-%dT%H:%M:%SZ)`;
    const status = `{\\"token\\": \\"run-$(wc -l < ${counter})\\", \\"expirationTimestamp\\": \\"${expires}\\"}`;
    await writeFile(command, `#!/bin/sh\necho run >> ${counter}\necho "{\\"status\\": ${status}}"\n`);
    await chmod(command, 0o755);
    return { command, runs: async () => (await readFile(counter, "utf8")).trim().split("\n").length };
  }

  const loadWith = async (command: string) =>
    loadCredentials({ kubeconfig: await write({ user: { token: "", exec: { command } } }) });

  it("is not run again before its token expires", async () => {
    const { command, runs } = await writePlugin(3_600);
    const credentials = await loadWith(command);
    await Promise.all(Array.from({ length: 20 }, () => credentials.current()));
    await new Promise((resolve) => setTimeout(resolve, 1_050));
    expect((await credentials.current()).headers).toEqual({ authorization: "Bearer run-1" });
    expect(await runs()).toBe(1);
  });

  it("is run again once when its token is refused, however many calls are refused", async () => {
    const { command, runs } = await writePlugin(3_601);
    const credentials = await loadWith(command);
    const refused = await credentials.current();
    const renewed = await Promise.all(Array.from({ length: 20 }, () => credentials.refresh(refused)));
    expect(new Set(renewed.map(({ headers }) => headers.authorization))).toEqual(new Set(["Bearer run-2"]));
    // Within a second the new token is refused, too.
    for (const access of renewed) await credentials.refresh(access);
    expect(await runs()).toBe(2);
  });
});

describe("an exec plugin that hangs", () => {
  const tooLong = "a program that has not ended, want an answer within 0.4 s";
  const command = () => join(directory, "plugin-hangs");
  const runs = async () => (await readFile(`${command()}.runs`, "utf8")).trim().split("\n").length;
  const later = () => new Promise((resolve) => setTimeout(resolve, 1_050));

  /** Its first token has expired; the second one comes when a test writes into the pipe `go-on`. */
  async function loadHanging() {
    const [first, second] = [
      ["first", "2020"],
      ["second", "2999"],
    ].map(([token, year]) => JSON.stringify({ status: { token, expirationTimestamp: `${year}-01-01T00:00:00Z` } }));
    const wait = `[ $(wc -l < "$0.runs") -gt 1 ] || { echo '${first}'; exit; }\nread word < "$0.go-on"`;
    await writeFile(command(), `#!/bin/sh\necho run >> "$0.runs"\n${wait}\necho '${second}'\n`, { mode: 0o755 });
    await rm(`${command()}.runs`, { force: true });
    const kubeconfig = await write({ user: { token: "", exec: { command: command() } } });
    return loadCredentials({ kubeconfig, patienceMs: 400 });
  }
  const tokenOf = async (credentials: Credentials) => (await credentials.current()).headers.authorization;

  beforeAll(() => void execFileSync("mkfifo", [`${command()}.go-on`]));

  it("is given up in time, waited for again, and never started twice", async () => {
    const credentials = await loadHanging();
    for (let read = 0; read < 2; read++) {
      await later();
      expect(await tokenOf(credentials)).toBe("Bearer first");
      expect(credentials.problem).toContain(tooLong);
    }
    const refused = await credentials.current();
    expect(await credentials.refresh(refused)).toBe(refused);
    expect(await runs()).toBe(2);
    await writeFile(`${command()}.go-on`, "now\n");
    await expect.poll(() => tokenOf(credentials), { timeout: 10_000 }).toBe("Bearer second");
  });

  it("is no longer waited for when the kubeconfig is another", async () => {
    const credentials = await loadHanging();
    await later();
    expect(await tokenOf(credentials)).toBe("Bearer first");
    await write({ user: { token: "other" } });
    await expect.poll(() => tokenOf(credentials), { timeout: 10_000 }).toBe("Bearer other");
    expect(credentials.problem).toBeUndefined();
    await writeFile(`${command()}.go-on`, "now\n");
  });
});

describe("a pod's service account", () => {
  beforeEach(() => {
    vi.stubEnv("KUBERNETES_SERVICE_HOST", "fd00:10:96::1");
    vi.stubEnv("KUBERNETES_SERVICE_PORT", "443");
  });
  afterEach(() => vi.unstubAllEnvs());
  const folder = () => join(directory, "var/run/secrets/kubernetes.io/serviceaccount");

  it("needs a cluster around it", async () => {
    vi.stubEnv("KUBERNETES_SERVICE_HOST", undefined);
    await expect(loadCredentials()).rejects.toThrow(
      'service account of the pod: field "KUBERNETES_SERVICE_HOST": found nothing, want an address: outside a cluster name a kubeconfig',
    );
  });

  it("is a token that is read again, and an authority", async () => {
    await mkdir(folder(), { recursive: true });
    await writeFile(join(folder(), "ca.crt"), makeCertificate("an authority").cert);
    await writeFile(join(folder(), "token"), "one");
    const credentials = await loadCredentials({ root: directory });
    expect(credentials.server).toBe("https://[fd00:10:96::1]");
    const access = await credentials.current();
    expect(access.headers).toEqual({ authorization: "Bearer one" });
    expect(access.endpoint.isVerified).toBe(true);
    await writeFile(join(folder(), "token"), "two");
    expect((await credentials.refresh(access)).headers).toEqual({ authorization: "Bearer two" });
  });

  it("is shown to a server behind any port over TLS only", async () => {
    vi.stubEnv("KUBERNETES_SERVICE_PORT", "8080");
    expect((await loadCredentials({ root: directory })).server).toBe("https://[fd00:10:96::1]:8080");
  });

  it("without a token is refused", async () => {
    await writeFile(join(folder(), "token"), "");
    await expect(loadCredentials({ root: directory })).rejects.toThrow(
      'field "tokenFile": found an empty file, want a file with a token',
    );
  });
});
