/**
 * `npm run publish` with real registries on loopback: distribution, which knows no referrers, and one that does. Helm
 * installs from there. The images are small; the whole release, and real nodes that pull it:
 * test/long/registry.test.ts.
 */
import { createHash, generateKeyPairSync, randomUUID, sign } from "node:crypto";
import { cpSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { createServer, request, type Server } from "node:http";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { runHelm } from "../../scripts/chart/helm.ts";
import { CUSTOM_KINDS } from "../../scripts/generate/crds/custom-kinds.ts";
import { root } from "../../scripts/setup/paths.mjs";
import { runCommand } from "../lab/command.ts";
import { type RegistryOptions, startRegistry } from "../lab/registry.ts";
import { writeSmallRelease } from "../lab/small-release.ts";
import { temporaryDirectory } from "../world/temporary-directory.ts";

const FACTS = { version: "1.2.3", description: "of a test", revision: "0".repeat(40), timeSeconds: 1_700_000_000 };
const directory = temporaryDirectory("berth-publish-");
const inside = (name: string): string => join(directory, name);
const RELEASE = inside("release");
beforeAll(async () => {
  await writeSmallRelease(RELEASE, FACTS, {});
  mkdirSync(inside("no-config"));
});

interface Publishing {
  readonly release?: string;
  readonly config?: string;
}

function publish(place: string, { release = RELEASE, config = "no-config" }: Publishing = {}, ...options: string[]) {
  const script = join(root, "scripts", "release", "publish.ts");
  const argv = [process.execPath, script, place, "--release", release, ...options];
  return runCommand(argv, { env: { DOCKER_CONFIG: inside(config) } });
}

let registries = 0;
const open = (options: Partial<RegistryOptions> = {}) =>
  startRegistry({ directory: inside(`registry-${++registries}`), ...options });

async function read(address: string) {
  const accept = ["manifest", "index"].map((kind) => `application/vnd.oci.image.${kind}.v1+json`).join(", ");
  const answer = await fetch(`http://${address}`, { headers: { accept } });
  const content = Buffer.from(await answer.arrayBuffer());
  return { status: answer.status, content, digest: `sha256:${createHash("sha256").update(content).digest("hex")}` };
}

const readJson = async (address: string) => JSON.parse((await read(address)).content.toString());

/** Writes a config.json, and returns the name of its folder. */
function logIn(host: string, password: string): string {
  const folder = `config-${++registries}`;
  mkdirSync(inside(folder));
  const auth = Buffer.from(`berth:${password}`).toString("base64");
  writeFileSync(inside(`${folder}/config.json`), JSON.stringify({ auths: { [host]: { auth } } }));
  return folder;
}

describe.each([
  ["distribution", false],
  ["a registry that knows referrers", true],
])("in %s", (_, hasReferrers) => {
  it("a release is published once, each file is found from its subject, and Helm installs the chart", async () => {
    await using registry = await open({ hasReferrers });
    const place = `${registry.host}/network`;
    expect(await publish(place, {}, "--dry-run")).toMatchObject({ exitCode: 0, stderr: "" });
    expect((await read(`${registry.host}/v2/network/berth/manifests/1.2.3`)).status).toBe(404);

    const first = await publish(place);
    expect(first).toMatchObject({ exitCode: 0, stderr: "" });
    expect(first.stdout).toMatch(/^Sent [1-9]\d* parts to /m);
    const again = await publish(place);
    expect(again).toMatchObject({ exitCode: 0, stderr: "" });
    expect(again.stdout).toMatch(/^Sent 0 parts to /);

    const image = await read(`${registry.host}/v2/network/berth/manifests/1.2.3`);
    expect(image.content).toEqual(readFileSync(join(RELEASE, "berth-1.2.3-image.json")));
    const { manifests } = JSON.parse(image.content.toString());
    expect(manifests.map(({ platform }: { platform: object }) => platform)).toEqual([
      { architecture: "amd64", os: "linux" },
      { architecture: "arm64", os: "linux" },
    ]);
    const titles = async (repository: string, digest: string): Promise<string[]> => {
      const path = hasReferrers ? `referrers/${digest}` : `manifests/${digest.replace(":", "-")}`;
      const index = await readJson(`${registry.host}/v2/network/${repository}/${path}`);
      const found: { digest: string }[] = index.manifests;
      const names = found.map(async (each) => {
        const { layers } = await readJson(`${registry.host}/v2/network/${repository}/manifests/${each.digest}`);
        const [{ annotations, digest: blob }] = layers;
        const name = annotations["org.opencontainers.image.title"];
        const { content } = await read(`${registry.host}/v2/network/${repository}/blobs/${blob}`);
        expect(content).toEqual(readFileSync(join(RELEASE, name)));
        return [name, ...(await titles(repository, each.digest).catch(() => []))];
      });
      return (await Promise.all(names)).flat().sort();
    };
    expect(await titles("berth", image.digest)).toEqual(["berth-1.2.3.provenance.json"]);
    for (const { digest, platform } of manifests)
      expect(await titles("berth", digest)).toEqual([`berth-1.2.3-image-${platform.architecture}.cdx.json`]);

    const address = `oci://${place}/charts/berth`;
    const words = ["--plain-http", "--version", "1.2.3"];
    runHelm("pull", address, ...words, "--destination", directory);
    expect(readFileSync(inside("berth-1.2.3.tgz"))).toEqual(readFileSync(join(RELEASE, "berth-1.2.3.tgz")));
    const repository = `${place}/berth`;
    const options = ["--kube-version", "1.34.4", "--set", `image.repository=${repository}`];
    expect(runHelm("template", "berth", address, ...words, ...options)).toContain(`image: "${repository}:1.2.3"`);
    const metadata = parse(runHelm("show", "chart", address, ...words));
    expect(metadata).toMatchObject({
      ...{ version: "1.2.3", appVersion: "1.2.3", icon: expect.stringMatching(/^https:.*\.svg$/) },
      ...{ home: expect.any(String), sources: [expect.any(String)], maintainers: [{ name: expect.any(String) }] },
      annotations: { "artifacthub.io/license": "Apache-2.0" },
    });
    expect(parse(metadata.annotations["artifacthub.io/crds"])).toHaveLength(CUSTOM_KINDS.length);
    expect(runHelm("show", "readme", address, ...words)).toContain("| `image.repository` |");
  });
});

describe("a push", () => {
  it("that ends in the middle is completed by the next one", async () => {
    const store = inside("killed");
    let registry = await startRegistry({ directory: store });
    const { host } = registry;
    const proxy = await startProxy(host);
    for (const calls of [3, 40]) {
      proxy.breakAfter(calls, () => registry.kill());
      const { exitCode, stderr } = await publish(proxy.host);
      expect({ calls, exitCode }).toEqual({ calls, exitCode: 1 });
      expect(stderr).toMatch(/^Not published\. \w+ http:\S+: no answer \(/);
      registry = await startRegistry({ directory: store, address: host });
      for (const repository of ["berth", "charts/berth"])
        expect((await read(`${host}/v2/${repository}/manifests/1.2.3`)).status, `${repository}, ${calls}`).toBe(404);
    }
    proxy.breakAfter(1_000, () => registry.kill());
    const last = await publish(proxy.host);
    expect(last).toMatchObject({ exitCode: 0, stderr: "" });
    expect(last.stdout).toMatch(/^Sent [1-9]\d* parts to \S+; [1-9]\d* were there already$/m);
    expect((await publish(host)).stdout).toMatch(/^Sent 0 parts/);
    expect(runHelm("show", "readme", `oci://${host}/charts/berth`, "--plain-http")).toContain("# Berth");
    proxy.close();
    await registry.kill();
  });

  it("does not change a tag that stands for something else", async () => {
    await using registry = await open();
    await writeSmallRelease(inside("other"), FACTS, { text: "another image" });
    expect((await publish(registry.host, { release: inside("other") })).exitCode).toBe(0);
    const before = await read(`${registry.host}/v2/berth/manifests/1.2.3`);
    const { exitCode, stdout, stderr } = await publish(registry.host);
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
    expect(stderr).toBe(
      `Not published. ${registry.host}/berth:1.2.3 is ${before.digest}, and this release's is sha256:${digestOf("berth-1.2.3-image.json")}\n` +
        "Nothing was sent: a published version does not change\n",
    );
    expect(await read(`${registry.host}/v2/berth/manifests/1.2.3`)).toEqual(before);
  });

  it("to a registry that is read only ends, unless all is there", async () => {
    const store = inside("read-only");
    await using full = await startRegistry({ directory: store });
    expect((await publish(full.host)).exitCode).toBe(0);
    await using same = await startRegistry({ directory: store, isReadOnly: true });
    expect((await publish(same.host)).stdout).toMatch(/^Sent 0 parts/);
    await using empty = await open({ isReadOnly: true });
    const { exitCode, stderr } = await publish(empty.host);
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/^Not published\. POST \S+uploads\/: 405 .*; pushing is not permitted there\n$/);
  });

  it.each([
    ["berth-1.2.3-oci.tar", /berth-1\.2\.3-oci\.tar has the SHA-256 /],
    ["SHA256SUMS", /SHA256SUMS has lines that are no sum/],
  ])("of a release whose %s is cut off does not begin", async (name, reason) => {
    const release = inside(`cut-${name}`);
    cpSync(RELEASE, release, { recursive: true });
    truncateSync(join(release, name), 500);
    const { exitCode, stdout, stderr } = await publish("127.0.0.1:9", { release });
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
    expect(stderr).toMatch(/^Not published\. \S+ is no whole release:\n/);
    expect(stderr).toMatch(reason);
  });

  it("goes over TLS unless the registry is on loopback or HTTP is asked for", async () => {
    const { stderr } = await publish("registry.invalid");
    expect(stderr).toMatch(
      /^Not published\. GET https:\/\/registry\.invalid\/v2\/berth\/manifests\/1\.2\.3: no answer/,
    );
    expect((await publish("registry.invalid", {}, "--plain-http")).stderr).toContain("GET http://registry.invalid/");
    expect((await publish("https://registry.invalid")).stderr).toContain("is no registry such as registry.example");
  });
});

const digestOf = (name: string): string =>
  createHash("sha256")
    .update(readFileSync(join(RELEASE, name)))
    .digest("hex");

describe("a registry that wants a login", () => {
  /** `berth:a password`, by bcrypt. */
  const USERS = "berth:$2y$05$abcdefghijklmnopqrstuu2sM.EEHj4jPcCa5rwqJGg1PNBllkZXy\n";

  it("gets the password of config.json, and refuses a wrong one", async () => {
    writeFileSync(inside("users"), USERS);
    await using registry = await open({ auth: { htpasswd: { realm: "lab", path: inside("users") } } });
    const { host } = registry;
    expect((await publish(host)).stderr).toContain(`${host} wants a login, and there are no credentials for it`);
    const wrong = await publish(host, { config: logIn(host, "a wrong one") });
    expect(wrong.exitCode).toBe(1);
    expect(wrong.stderr).toMatch(/: 401 UNAUTHORIZED .*; the credentials of user "berth" are refused\n$/);
    expect(wrong.stderr).not.toContain("a wrong one");
    const right = await publish(host, { config: logIn(host, "a password") });
    expect(right).toMatchObject({ exitCode: 0, stderr: "" });
  });

  it("gets a token of its issuer for each repository", async () => {
    const issuer = await startIssuer("berth:a password");
    await using registry = await open({
      auth: { token: { realm: issuer.url, service: "lab", issuer: "berth", jwks: issuer.keys } },
    });
    const { host } = registry;
    expect((await publish(host, { config: logIn(host, "another") })).stderr).toMatch(
      /^Not published\. GET http:\S+\/token: 401; the credentials of user "berth" are refused/,
    );
    const right = await publish(host, { config: logIn(host, "a password") });
    expect(right).toMatchObject({ exitCode: 0, stderr: "" });
    expect(new Set(issuer.scopes)).toEqual(
      new Set(["repository:berth:pull,push", "repository:charts/berth:pull,push"]),
    );
    issuer.server.close();
  });
});

/** Issues tokens for distribution (https://distribution.github.io/distribution/spec/auth/token/). */
async function startIssuer(login: string) {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const keys = inside("keys.json");
  writeFileSync(keys, JSON.stringify({ keys: [{ ...publicKey.export({ format: "jwk" }), kid: "1", alg: "ES256" }] }));
  const scopes: string[] = [];
  const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString("base64url");
  const server = createServer(({ url = "", headers }, response) => {
    if (headers.authorization !== `Basic ${Buffer.from(login).toString("base64")}`) {
      response.writeHead(401).end();
      return;
    }
    const scope = new URL(url, "http://issuer").searchParams.get("scope") ?? "";
    scopes.push(scope);
    const [type, name, actions = ""] = scope.split(":");
    const now = Math.floor(Date.now() / 1000);
    const access = [{ type, name, actions: actions.split(",") }];
    const claims = { ...{ iss: "berth", sub: "berth", aud: "lab", exp: now + 60, nbf: now - 60, iat: now }, access };
    const text = `${encode({ typ: "JWT", alg: "ES256", kid: "1" })}.${encode({ ...claims, jti: randomUUID() })}`;
    const signature = sign("sha256", Buffer.from(text), { key: privateKey, dsaEncoding: "ieee-p1363" });
    response.end(JSON.stringify({ token: `${text}.${signature.toString("base64url")}` }));
  });
  return { url: `http://${await listen(server)}/token`, keys, scopes, server };
}

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return `127.0.0.1:${typeof address === "object" ? address?.port : address}`;
}

/** Passes requests on; after a number of them it cuts all connections and calls `end`. */
async function startProxy(target: string) {
  let left = Number.POSITIVE_INFINITY;
  let end: () => unknown = () => undefined;
  const server = createServer((incoming, response) => {
    if (left-- === 0) void end();
    if (left < 0) {
      incoming.socket.destroy();
      return;
    }
    const { method, url, headers } = incoming;
    const outgoing = request(`http://${target}${url}`, { method: method ?? "GET", headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    });
    outgoing.on("error", () => response.destroy());
    incoming.pipe(outgoing);
  });
  const host = await listen(server);
  const breakAfter = (calls: number, then: () => unknown) => {
    left = calls;
    end = then;
  };
  return { host, breakAfter, close: () => server.close() };
}
