import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadCredentials } from "../../../host/kubernetes/credentials.ts";
import { cases } from "../../world/rows.ts";
import { temporaryDirectory } from "../../world/temporary-directory.ts";
import { type Parts, writeKubeconfig } from "./kubeconfig-file.ts";

const directory = temporaryDirectory("berth-kubeconfig-");

describe("a kubeconfig that is wrong", () => {
  const plugin = (command: string, ...args: string[]): Parts => ({ user: { token: "", exec: { command, args } } });
  const noCertificate = Buffer.from("nothing").toString("base64");
  it.each(cases<Parts>`
    no context ${{ rest: { "current-context": "" } }} => field "current-context": found "", want the name of a context
    an unknown context ${{ rest: { "current-context": "x" } }}
      => field "current-context": found "x", want the name of a context: "other", "main"
    an unknown cluster ${{ rest: { "current-context": "other" } }}
      => field "contexts[0].context.cluster": found "none", want the name of a cluster: "prod"
    an unknown user ${{ rest: { users: [] } }}
      => field "contexts[1].context.user": found "berth", want a user, and the file has none
    no server ${{ cluster: { server: undefined } }} => field "clusters[0].cluster.server": found nothing, want text
    an odd server ${{ cluster: { server: "10.0.0.1" } }}
      => field "clusters[0].cluster.server": found "10.0.0.1", want a URL such as https://10.96.0.1:443 or https://[fd00::1]:443
    a server of IPv6 without brackets ${{ cluster: { server: "https://fd00::1:443" } }}
      => field "clusters[0].cluster.server": found "https://fd00::1:443", want a URL such as
    plain HTTP ${{ cluster: { server: "http://10.0.0.1" } }}
      => field "clusters[0].cluster.server": found "http://10.0.0.1", want https://, or insecure-skip-tls-verify: true
    a proxy ${{ cluster: { "proxy-url": "socks5://p" } }}
      => field "clusters[0].cluster.proxy-url": found "socks5://p", want no proxy
    an authority that is not there ${{ cluster: { "certificate-authority": "ca.pem" } }}
      => field "clusters[0].cluster.certificate-authority": found a file that cannot be read (ENOENT), want a readable file
    an authority that is no certificate ${{ cluster: { "certificate-authority-data": noCertificate } }}
      => found ca that OpenSSL refuses
    a certificate without its key ${{ user: { "client-certificate-data": "eA==" } }}
      => field "users[0].user.client-key": found nothing
    a key without its certificate ${{ user: { "client-key": "k" } }}
      => field "users[0].user.client-certificate": found nothing
    a token that is no text ${{ user: { token: 12_345_678 } }}
      => field "users[0].user.token": found a value of type number, want text
    a token file that is not there ${{ user: { tokenFile: "t" } }}
      => field "users[0].user.tokenFile": found a file that cannot be read (ENOENT), want a readable file
    an auth-provider ${{ user: { "auth-provider": { name: "gcp" } } }}
      => field "users[0].user.auth-provider": found "gcp", want token, tokenFile, exec or a certificate
    groups to act for ${{ user: { as: "bob", "as-groups": ["ops"] } }}
      => field "users[0].user.as-groups": found a list, want "as" alone
    a plugin that is not there ${plugin("/no/such/plugin")}
      => field "exec": found a failure of "/no/such/plugin" ("spawn /no/such/plugin ENOENT"), want a program that prints an ExecCredential
    a plugin that is not beside it ${plugin("no/such")} => /no/such" ("spawn /
    a plugin that is told what is wanted ${plugin("sh", "-c", 'echo "$KUBERNETES_EXEC_INFO" >&2; exit 3')}
      => found a failure of "sh" ("{
    a plugin that fails ${plugin("sh", "-c", "echo not today >&2; exit 3")} => found a failure of "sh" ("not today")
    a plugin that prints something else ${plugin("echo", "{}")}
      => field "exec": found a failure of "echo" (an output without a status), want a program that prints an ExecCredential
    a plugin that prints its token bare ${plugin("echo", "s3cr3t")} => found a failure of "echo" (an output that is no JSON)
    a plugin that gives nothing ${plugin("echo", '{"status":{}}')}
      => field "exec": found neither token nor certificate, want an ExecCredential
  `)("has %s", async (_, parts, message) => {
    const kubeconfig = await writeKubeconfig(directory, parts);
    const error: unknown = await loadCredentials({ kubeconfig }).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ name: "ConfigError", source: `file "${kubeconfig}"` });
    const text = error instanceof Error ? error.message : "";
    expect(text).toContain(message);
    expect(text).not.toMatch(/s3cr3t|12345678/);
  });

  it("is not there", () =>
    expect(loadCredentials({ kubeconfig: "/no/such/file" })).rejects.toThrow(
      'file "/no/such/file": found a file that cannot be read (ENOENT), want a kubeconfig',
    ));

  it.each([
    ["is no YAML", "clusters: [", "Malformed YAML"],
    ["is empty", "", ""],
  ])("%s", async (_, text, message) => {
    const kubeconfig = join(directory, "broken");
    await writeFile(kubeconfig, text);
    const wrong = { name: "ConfigError", message: expect.stringContaining(`file "${kubeconfig}": ${message}`) };
    await expect(loadCredentials({ kubeconfig })).rejects.toMatchObject(wrong);
  });
});

describe("several kubeconfigs", () => {
  const user = "users: [{name: u, user: {token: t}}]";
  const cluster = (port: number) => `clusters: [{name: c, cluster: {server: "https://127.0.0.1:${port}"}}]`;
  const context = "contexts: [{name: one, context: {cluster: c, user: u}}]";
  const write = async (...texts: readonly (readonly string[])[]) =>
    Promise.all(
      texts.map(async (lines, index) => {
        const path = join(directory, `merged-${index}`);
        await writeFile(path, `${lines.join("\n")}\n`);
        return path;
      }),
    );

  it("are merged: the first one that has a name decides", async () => {
    const kubeconfig = await write([context, cluster(1)], ["current-context: one", cluster(2), user]);
    expect((await loadCredentials({ kubeconfig })).server).toBe("https://127.0.0.1:1");
    expect((await loadCredentials({ kubeconfig: ["/nowhere", ...kubeconfig.toReversed()] })).server).toBe(
      "https://127.0.0.1:2",
    );
  });

  it("a context may be chosen", async () => {
    const kubeconfig = await write([context, cluster(1)], ["current-context: none", user]);
    await expect(loadCredentials({ kubeconfig })).rejects.toThrow('found "none", want the name of a context: "one"');
    expect((await loadCredentials({ kubeconfig, context: "one" })).server).toBe("https://127.0.0.1:1");
  });

  it("paths are relative to their own file", async () => {
    const tokenUser = "users: [{name: u, user: {tokenFile: token}}]";
    const kubeconfig = await write([context, cluster(1), tokenUser], ["current-context: one"]);
    await writeFile(join(directory, "token"), "secret");
    expect((await loadCredentials({ kubeconfig })).tokenFile).toBe(join(directory, "token"));
  });
});
