/**
 * The image: a root file system without a base image, as an OCI layout that `docker load` and `ctr images import`
 * also take.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { rootCertificates } from "node:tls";
import manifest from "../../package.json" with { type: "json" };
import { root } from "../setup/paths.mjs";
import { tagOf } from "../setup/version.mjs";
import { type ArchiveEntry, compress } from "./archive.ts";
import type { Facts } from "./facts.ts";
import { TRIPLES } from "./native.ts";
import { describe, json, Layout, MANIFEST, REF_NAME, TITLE } from "./oci.ts";
import { below, withDirectories } from "./product.ts";
import { type Architecture, sha256, unpackDebian } from "./sources.ts";

/** The libraries that Node.js links, and the package of each. The loader has a fixed path. */
const LIBRARIES: readonly (readonly [string, readonly string[]])[] = [
  ["libc6", ["libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "libresolv.so.2"]],
  ["libstdc++6", ["libstdc++.so.6"]],
  ["libgcc-s1", ["libgcc_s.so.1"]],
  ["libatomic1", ["libatomic.so.1"]],
];
export const IMAGE_PACKAGES: readonly string[] = LIBRARIES.map(([name]) => name);
const LOADERS = {
  amd64: { path: "lib64/ld-linux-x86-64.so.2", source: "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2" },
  arm64: { path: "lib/ld-linux-aarch64.so.1", source: "lib/aarch64-linux-gnu/ld-linux-aarch64.so.1" },
} as const;
const PROGRAMS = ["berth-agent", "berth-controller", "berthctl"];
/** The image's default user; the agent's DaemonSet asks for root. */
const NONROOT = 65_532;

interface RootOptions {
  readonly architecture: Architecture;
  readonly node: Buffer;
  readonly product: readonly ArchiveEntry[];
  /** THIRD_PARTY_LICENSES. */
  readonly notices: Buffer;
  /** Directory into which Debian packages are unpacked. */
  readonly directory: string;
}

export function rootEntries({ architecture, node, product, notices, directory }: RootOptions): ArchiveEntry[] {
  const text = (path: string, content: string) => ({ path, mode: 0o644, content: Buffer.from(content) });
  const users = `root:x:0:0:root:/:/sbin/nologin\nberth:x:${NONROOT}:${NONROOT}:berth:/:/sbin/nologin\n`;
  return withDirectories([
    text("etc/group", `root:x:0:\nberth:x:${NONROOT}:\n`),
    text("etc/passwd", users),
    text("etc/ssl/certs/ca-certificates.crt", `${rootCertificates.join("\n")}\n`),
    ...libraryEntries(architecture, directory),
    { path: "tmp", mode: 0o1777 },
    ...PROGRAMS.map((name) => ({ path: `usr/bin/${name}`, mode: 0o777, target: `../lib/berth/${name}.mjs` })),
    { path: "usr/bin/node", mode: 0o755, content: node },
    ...below("usr/lib/berth", product),
    { path: "usr/share/doc/berth/LICENSE", mode: 0o644, content: readFileSync(join(root, "LICENSE")) },
    { path: "usr/share/doc/berth/THIRD_PARTY_LICENSES", mode: 0o644, content: notices },
  ]);
}

function libraryEntries(architecture: Architecture, directory: string): ArchiveEntry[] {
  const triple = TRIPLES[architecture];
  const files = LIBRARIES.flatMap(([name, libraries]) => {
    unpackDebian(name, architecture, directory);
    return libraries.map((library) => ({
      path: `lib/${triple}/${library}`,
      mode: 0o755,
      content: readLibrary(directory, triple, library),
    }));
  });
  const { path, source } = LOADERS[architecture];
  return [...files, { path, mode: 0o755, content: readFileSync(join(directory, source)) }];
}

/** Debian's packages of this release have libraries in /lib and in /usr/lib. */
function readLibrary(directory: string, triple: string, library: string): Buffer {
  try {
    return readFileSync(join(directory, "lib", triple, library));
  } catch {
    return readFileSync(join(directory, "usr", "lib", triple, library));
  }
}

/** The annotations of an image, and the labels of a container. */
export function labelsOf({ timeSeconds, description, revision, version }: Facts): Readonly<Record<string, string>> {
  return {
    "org.opencontainers.image.created": new Date(timeSeconds * 1000).toISOString(),
    "org.opencontainers.image.description": description,
    "org.opencontainers.image.licenses": manifest.license,
    "org.opencontainers.image.revision": revision,
    "org.opencontainers.image.source": manifest.homepage,
    [TITLE]: "berth",
    "org.opencontainers.image.version": version,
  };
}

/**
 * Returns the archive of a one-layer image; `layer` is the compressed root file system, `diffId` the hash of the
 * uncompressed one.
 */
export async function writeImage(architecture: Architecture, root: Buffer, facts: Facts): Promise<Buffer> {
  const layer = await compress(root);
  const created = new Date(facts.timeSeconds * 1000).toISOString();
  const tag = tagOf(facts.version);
  const name = `localhost/berth:${tag}`;
  const labels = labelsOf(facts);
  const config = json({
    ...{ architecture, os: "linux", created },
    config: {
      User: `${NONROOT}:${NONROOT}`,
      Env: ["PATH=/usr/bin", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"],
      Cmd: ["/usr/bin/berthctl", "--help"],
      Labels: labels,
    },
    rootfs: { type: "layers", diff_ids: [`sha256:${sha256(root)}`] },
    history: [{ created, created_by: "npm run release" }],
  });
  const layout = new Layout();
  for (const content of [config, layer]) layout.add(content);
  const descriptor = layout.addManifest({
    mediaType: MANIFEST,
    config: describe("application/vnd.oci.image.config.v1+json", config),
    layers: [describe("application/vnd.oci.image.layer.v1.tar+gzip", layer)],
    annotations: labels,
  });
  layout.entries.push({
    ...{ ...descriptor, platform: { architecture, os: "linux" } },
    annotations: { "io.containerd.image.name": name, [REF_NAME]: tag },
  });
  const path = (content: Buffer): string => `blobs/sha256/${sha256(content)}`;
  const loading = json([{ Config: path(config), RepoTags: [name], Layers: [path(layer)] }]);
  return layout.write(facts.timeSeconds, [{ path: "manifest.json", mode: 0o644, content: loading }]);
}
