/**
 * `npm run release`: writes images, tarballs and their SHA256SUMS into dist/release. It needs no network once the set-up has run, and the same commit
 * gives the same bytes.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { root } from "../setup/paths.mjs";
import { writeTar } from "./archive.ts";
import { type Facts, readFacts } from "./facts.ts";
import { rootEntries, writeImage } from "./image.ts";
import { buildNative, TRIPLES } from "./native.ts";
import { productEntries } from "./product.ts";
import { ARCHITECTURES, type Architecture, readNode, sha256 } from "./sources.ts";
import { hostEntries, writeTarball } from "./tarball.ts";

type Artifact = readonly [name: string, content: Buffer];

/** What a release consists of, in the order of the work. */
const steps: readonly ((facts: Facts) => Promise<Artifact[]>)[] = [
  ...ARCHITECTURES.map((architecture) => (facts: Facts) => buildArchitecture(architecture, facts)),
];

async function buildArchitecture(architecture: Architecture, facts: Facts): Promise<Artifact[]> {
  const directory = mkdtempSync(join(tmpdir(), "berth-release-"));
  try {
    const files = await readNode(architecture);
    const node = files.get("package/bin/node") as Buffer;
    const native = buildNative({ architecture, node: files, build: facts.revision.slice(0, 12), directory });
    const packages = join(directory, "packages");
    const product = productEntries(native, "#!/usr/bin/node");
    const image = rootEntries({ architecture, node, product, directory: packages });
    const atomic = `lib/${TRIPLES[architecture]}/libatomic.so.1`;
    const libatomic = image.find(({ path }) => path === atomic)?.content as Buffer;
    const forHosts = productEntries(native, "#!/usr/bin/env node");
    const host = hostEntries({ version: facts.version, node, libatomic, product: forHosts, documents: [] });
    return [
      [
        `berth-${facts.version}-image-${architecture}.tar`,
        await writeImage(architecture, await writeTar(image, facts.timeSeconds), facts),
      ],
      [`berth-${facts.version}-linux-${architecture}.tar.gz`, await writeTarball(architecture, host, facts)],
    ];
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

const { values } = parseArgs({ options: { output: { type: "string", default: join(root, "dist", "release") } } });
const facts = readFacts();
rmSync(values.output, { recursive: true, force: true });
mkdirSync(values.output, { recursive: true });
const sums: string[] = [];
for (const step of steps) {
  for (const [name, content] of await step(facts)) {
    writeFileSync(join(values.output, name), content);
    sums.push(`${sha256(content)}  ${name}\n`);
    console.log(`${name.padEnd(40)} ${(content.length / 1e6).toFixed(1).padStart(6)} MB`);
  }
}
writeFileSync(join(values.output, "SHA256SUMS"), sums.sort().join(""));
