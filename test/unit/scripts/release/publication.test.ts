import { writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { delimiter, join } from "node:path";
import { describe, expect, it } from "vitest";
import { writeTar } from "../../../../scripts/release/archive.ts";
import { findCredentials } from "../../../../scripts/release/credentials.ts";
import { INDEX, Layout, MANIFEST, REF_NAME } from "../../../../scripts/release/oci.ts";
import { attachProvenance, planPublication } from "../../../../scripts/release/publication.ts";
import { parsePlace, Registry, withReferrer } from "../../../../scripts/release/registry.ts";
import { temporaryDirectory } from "../../../world/temporary-directory.ts";

const directory = temporaryDirectory("berth-publication-");

it.each([
  ["registry.example:5000/a/b-c/", { host: "registry.example:5000", prefix: "a/b-c/", isLoopback: false }],
  ["localhost:5000", { host: "localhost:5000", prefix: "", isLoopback: true }],
  ["[::1]:5000", { host: "[::1]:5000", prefix: "", isLoopback: true }],
  ["127.0.0.1.example", { host: "127.0.0.1.example", prefix: "", isLoopback: false }],
  ["https://registry.example", undefined],
  ["user:secret@registry.example", undefined],
  ["registry.example/../v2", undefined],
  ["registry.example/a?b", undefined],
  ["", undefined],
])("a registry's place: %j is %j", (text, wanted) => expect(parsePlace(text)).toEqual(wanted));

describe("credentials", () => {
  const encode = (text: string): string => Buffer.from(text).toString("base64");
  const find = (config: object | string): unknown => {
    const file = join(directory, "config.json");
    writeFileSync(file, typeof config === "string" ? config : JSON.stringify(config));
    return findCredentials("registry.example", file);
  };
  const auths = (host: string, auth: string) => ({ auths: { [host]: { auth: encode(auth) } } });

  it.each([
    ["of the registry", auths("registry.example", "me:a:b"), { user: "me", password: "a:b" }],
    ["with a scheme", auths("https://registry.example", "me:x"), { user: "me", password: "x" }],
    ["of another registry", auths("registry.example:5000", "me:x"), undefined],
    ["of none", {}, undefined],
    ["that are empty", { auths: { "registry.example": {} } }, undefined],
  ])("%s", (_, config, wanted) => expect(find(config)).toEqual(wanted));

  it("are none without a file", () =>
    expect(findCredentials("registry.example", join(directory, "gone"))).toBeUndefined());

  it.each([
    ["a file that is no JSON", `{"auths": "c2VjcmV0"`, /config\.json is not the JSON that docker login writes$/],
    ["an identity token", { auths: { "registry.example": { identitytoken: "x" } } }, /identity token .* not supported/],
    ["a helper with a path", { credsStore: "../x" }, /"\.\.\/x" is no name of a credential helper/],
    ["a helper that is gone", { credsStore: "berth-gone" }, /docker-credential-berth-gone gives no credentials/],
  ])("%s is refused", (_, config, reason) => expect(() => find(config)).toThrow(reason));

  it("of a helper, which is asked for this registry", () => {
    const answer = JSON.stringify({ Username: "me", Secret: "x" });
    const script = `#!/bin/sh\n[ "$1 $(cat)" = "get registry.example" ] && echo '${answer}'\n`;
    writeFileSync(join(directory, "docker-credential-berth"), script, { mode: 0o755 });
    const { PATH } = process.env;
    process.env.PATH = [directory, PATH].join(delimiter);
    try {
      expect(find({ credHelpers: { "registry.example": "berth" } })).toEqual({ user: "me", password: "x" });
    } finally {
      process.env.PATH = PATH;
    }
  });
});

it("a store to which a registry leads gets the bytes, and no password", async () => {
  const seen: string[] = [];
  const listen = (server: Server): Promise<string> =>
    new Promise((resolve) =>
      server.listen(0, "127.0.0.1", () => resolve(`127.0.0.1:${(server.address() as AddressInfo).port}`)),
    );
  const store = createServer(({ method, url, headers }, response) => {
    seen.push(`${method} ${url} ${headers.authorization}`);
    response.writeHead(201).end();
  });
  const place = await listen(store);
  const registry = createServer(({ headers }, response) => {
    seen.push(String(headers.authorization));
    const isKnown = headers.authorization !== undefined;
    const location = `http://${place}/upload?state=1`;
    response.writeHead(isKnown ? 202 : 401, isKnown ? { location } : { "www-authenticate": 'Basic realm="lab"' }).end();
  });
  const host = await listen(registry);
  try {
    const credentials = { user: "me", password: "x" };
    await new Registry(host, true, credentials).pushBlob("berth", "sha256:1", Buffer.from("a blob"));
  } finally {
    for (const server of [store, registry]) server.close();
  }
  const login = `Basic ${Buffer.from("me:x").toString("base64")}`;
  expect(seen).toEqual(["undefined", login, "PUT /upload?state=1&digest=sha256%3A1 undefined"]);
});

const entry = { mediaType: MANIFEST, digest: "sha256:1", size: 1 };
it("the index of referrers gets an entry once, and keeps others' entries", () => {
  const first = withReferrer(undefined, { ...entry, digest: "sha256:0" });
  const second = withReferrer(first, entry);
  const digests = JSON.parse(String(second)).manifests.map(({ digest }: { digest: string }) => digest);
  expect(digests).toEqual(["sha256:0", "sha256:1"]);
  expect(withReferrer(second, entry)).toBeUndefined();
});

describe("a publication", () => {
  const image = Buffer.from("a layer");

  /** An index of one image with an SBOM. */
  function makeLayout(): Layout {
    const layout = new Layout();
    const layer = { mediaType: "text/plain", digest: layout.add(image), size: image.length };
    const manifest = layout.addManifest({ mediaType: MANIFEST, layers: [layer] });
    const sbom = layout.addReferrer(manifest, "sbom", ["x.cdx.json", Buffer.from("a list")]);
    const index = layout.addManifest({ mediaType: INDEX, manifests: [manifest] });
    layout.entries.push({ ...index, annotations: { [REF_NAME]: "berth:1" } }, sbom);
    return layout;
  }

  it("has each part after those that it names, and the tag at the end", () => {
    const layout = makeLayout();
    attachProvenance(layout, "x.provenance.json", Buffer.from("a statement"));
    expect(planPublication(layout).map(({ title }) => title.replace(/^.* MB of .*/, "-"))).toEqual([
      ...["-", "image for undefined", "-", "-", "x.cdx.json", "berth:1", "-", "x.provenance.json"],
      "the tag 1 of berth",
    ]);
  });

  it("is the same after writing and reading the layout", async () => {
    const layout = makeLayout();
    expect(planPublication(await Layout.read(await layout.write(0)))).toEqual(planPublication(layout));
  });

  it.each<[what: string, change: (archive: Buffer) => Buffer | Promise<Buffer>, reason: RegExp]>([
    ["is cut off", (archive) => archive.subarray(0, 3_000), /end of data/i],
    [
      "has other bytes",
      (archive) => Buffer.from(archive.toString("latin1").replace("a layer", "a liar?"), "latin1"),
      /blobs\/sha256\/\w+ of the layout has other bytes/,
    ],
    ["is another archive", () => writeTar([], 0), /no index\.json/],
  ])("is refused for a layout that %s", async (_, change, reason) => {
    await expect(Layout.read(await change(await makeLayout().write(0)))).rejects.toThrow(reason);
  });

  it("is refused for a layout that lacks a part", () => {
    const layout = makeLayout();
    const lacking = { mediaType: "text/plain", digest: "sha256:3", size: 1 };
    const manifest = layout.addManifest({ mediaType: MANIFEST, layers: [lacking] });
    layout.entries.push({ ...manifest, annotations: { [REF_NAME]: "other:1" } });
    expect(() => planPublication(layout)).toThrow("The layout lacks sha256:3");
  });
});
