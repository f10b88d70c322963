import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadCredentials } from "../../../host/kubernetes/credentials.ts";
import { rows } from "../../world/rows.ts";
import { type Parts, writeKubeconfig } from "./kubeconfig-file.ts";

let directory = "";
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "berth-kubeconfig-"));
});
afterAll(() => rm(directory, { recursive: true }));

describe("a kubeconfig that is wrong", () => {
  const plugin = (command: string, ...args: string[]): Parts => ({ user: { token: "", exec: { command, args } } });
  const noCertificate = Buffer.from("nothing").toString("base64");
  const PARTS: Readonly<Record<string, Parts>> = {
    "no context": { rest: { "current-context": "" } },
    "an unknown context": { rest: { "current-context": "x" } },
    "an unknown cluster": { rest: { "current-context": "other" } },
    "an unknown user": { rest: { users: [] } },
    "no server": { cluster: { server: undefined } },
    "an odd server": { cluster: { server: "10.0.0.1" } },
    "plain HTTP": { cluster: { server: "http://10.0.0.1" } },
    "a proxy": { cluster: { "proxy-url": "socks5://p" } },
    "an authority that is not there": { cluster: { "certificate-authority": "ca.pem" } },
    "an authority that is no certificate": { cluster: { "certificate-authority-data": noCertificate } },
    "a certificate without its key": { user: { "client-certificate-data": "eA==" } },
    "a key without its certificate": { user: { "client-key": "k" } },
    "a token that is no text": { user: { token: 12_345_678 } },
    "a token file that is not there": { user: { tokenFile: "t" } },
    "an auth-provider": { user: { "auth-provider": { name: "gcp" } } },
    "a plugin that is not there": plugin("/no/such/plugin"),
    "a plugin that fails": plugin("sh", "-c", "echo not today >&2; exit 3"),
    "a plugin that prints something else": plugin("echo", "{}"),
    "a plugin that gives nothing": plugin("echo", '{"status":{}}'),
  };
  const refused = rows`
    no context => field "current-context": found "", want the name of a context
    an unknown context => field "current-context": found "x", want the name of a context: "other", "main"
    an unknown cluster => field "contexts[0].context.cluster": found "none", want the name of a cluster: "prod"
    an unknown user => field "contexts[1].context.user": found "berth", want a user, and the file has none
    no server => field "clusters[0].cluster.server": found nothing, want text
    an odd server
      => field "clusters[0].cluster.server": found "10.0.0.1", want a URL that begins with https:// or http://
    plain HTTP
      => field "clusters[0].cluster.server": found "http://10.0.0.1", want https://, or insecure-skip-tls-verify: true
    a proxy => field "clusters[0].cluster.proxy-url": found "socks5://p", want no proxy
    an authority that is not there
      => field "clusters[0].cluster.certificate-authority": found a file that cannot be read (ENOENT), want a readable file
    an authority that is no certificate => found ca that OpenSSL refuses
    a certificate without its key => field "users[0].user.client-key": found nothing
    a key without its certificate => field "users[0].user.client-certificate": found nothing
    a token that is no text => field "users[0].user.token": found a value of type number, want text
    a token file that is not there
      => field "users[0].user.tokenFile": found a file that cannot be read (ENOENT), want a readable file
    an auth-provider
      => field "users[0].user.auth-provider": found "gcp", want token, tokenFile, exec or a certificate
    a plugin that is not there
      => field "exec": found a failure of "/no/such/plugin" ("spawn /no/such/plugin ENOENT"), want a program that prints an ExecCredential
    a plugin that fails => found a failure of "sh" ("not today")
    a plugin that prints something else => found a failure of "echo"
    a plugin that gives nothing => field "exec": found neither token nor certificate, want an ExecCredential
  `;
  it.each(refused)("has %s", async (what, message) => {
    const kubeconfig = await writeKubeconfig(directory, PARTS[what] ?? expect.unreachable());
    const error: unknown = await loadCredentials({ kubeconfig }).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ name: "ConfigError", source: `file "${kubeconfig}"` });
    const text = error instanceof Error ? error.message : "";
    expect(text).toContain(message);
    expect(text).not.toMatch(/s3cr3t|12345678/);
  });

  it("is not there", async () => {
    await expect(loadCredentials({ kubeconfig: "/no/such/file" })).rejects.toThrow(
      'file "/no/such/file": found a file that cannot be read (ENOENT), want a kubeconfig',
    );
  });

  it("is no YAML", async () => {
    const kubeconfig = join(directory, "broken");
    await writeFile(kubeconfig, "clusters: [");
    await expect(loadCredentials({ kubeconfig })).rejects.toThrow(`file "${kubeconfig}": Malformed YAML`);
  });

  it("is empty", async () => {
    const kubeconfig = join(directory, "empty");
    await writeFile(kubeconfig, "");
    await expect(loadCredentials({ kubeconfig })).rejects.toMatchObject({ name: "ConfigError" });
  });
});
