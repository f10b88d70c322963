/** Image, tarball and packages for one processor, each with its SBOM. */
import { mkdtempDisposableSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tagOf } from "../setup/version.mjs";
import { writeFolder, writeTar } from "./archive.ts";
import { rootEntries, writeImage } from "./image.ts";
import { buildNative, TRIPLES } from "./native.ts";
import { FORMATS, packageEntries, writePackage } from "./packages.ts";
import { productEntries } from "./product.ts";
import { writeSbom } from "./sbom.ts";
import { type Architecture, readNode, sha256 } from "./sources.ts";
import type { Artifact, Release } from "./step.ts";
import { hostEntries, writeTarball } from "./tarball.ts";

/** Also writes the image's files to the folder rootfs/ARCHITECTURE, for deploy/Containerfile. */
export async function build(architecture: Architecture, release: Omit<Release, "site">): Promise<Artifact[]> {
  const { facts, output, inventories, notices } = release;
  using folder = mkdtempDisposableSync(join(tmpdir(), "berth-release-"));
  const { path: directory } = folder;
  const files = await readNode(architecture);
  const node = files.get("package/bin/node") as Buffer;
  const { version, revision } = facts;
  const tag = tagOf(version);
  const native = buildNative({ architecture, node: files, version, build: revision.slice(0, 12), directory });
  const product = productEntries(native, "#!/usr/bin/node");
  const tree = rootEntries({ architecture, node, product, notices, directory: join(directory, "packages") });
  writeFolder(tree, join(output, "rootfs", architecture));
  const image = await writeImage(architecture, await writeTar(tree, facts.timeSeconds), facts);

  const atomic = `lib/${TRIPLES[architecture]}/libatomic.so.1`;
  const libatomic = tree.find(({ path }) => path === atomic)?.content as Buffer;
  const forHosts = productEntries(native, "#!/usr/bin/env node");
  const host = hostEntries({ version, node, libatomic, product: forHosts, notices });
  const tarball = await writeTarball(architecture, host, facts);

  const entries = packageEntries(host, facts);
  const packages = FORMATS.map(
    (format) =>
      [`berth-${tag}-linux-${architecture}.${format}`, writePackage(format, architecture, entries, facts)] as const,
  );
  const names = [`berth-${tag}-image-${architecture}`, `berth-${tag}-linux-${architecture}`] as const;
  const subjects = [
    { name: `${names[0]}.tar`, type: "container", sha256: sha256(image) },
    { name: `${names[1]}.tar.gz`, type: "application", sha256: sha256(tarball) },
  ] as const;
  const inventory = inventories[architecture];
  return [
    [subjects[0].name, image],
    [`${names[0]}.cdx.json`, writeSbom(subjects[0], inventory.image, facts)],
    [subjects[1].name, tarball],
    [`${names[1]}.cdx.json`, writeSbom(subjects[1], inventory.tarball, facts)],
    ...packages.flatMap(([name, content]): Artifact[] => [
      [name, content],
      [`${name}.cdx.json`, writeSbom({ name, type: "application", sha256: sha256(content) }, inventory.tarball, facts)],
    ]),
  ];
}
