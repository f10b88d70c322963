/**
 * `npm run publish -- REGISTRY`: sends a release to a registry of images: images and chart with their tags, SBOMs and
 * provenance as their referrers. Existing contents are not sent again, and a tag of other contents is refused before
 * anything is sent.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { root } from "../setup/paths.mjs";
import { credentialsFile, findCredentials } from "./credentials.ts";
import { findProblems } from "./find-problems.ts";
import { type Descriptor, INDEX, Layout } from "./oci.ts";
import { attachProvenance, planPublication, type Upload } from "./publication.ts";
import { parsePlace, Registry, referrersTag, withReferrer } from "./registry.ts";
import { sha256 } from "./sources.ts";

const USAGE = "npm run publish -- REGISTRY[/PATH] [--release DIR] [--dry-run] [--plain-http]";

const WORTH_A_LINE_BYTES = 1_000_000;

class Publisher {
  readonly #registry: Registry;
  readonly #prefix: string;
  readonly #isDry: boolean;
  pushed = 0;
  present = 0;

  constructor(registry: Registry, prefix: string, isDry: boolean) {
    this.#registry = registry;
    this.#prefix = prefix;
    this.#isDry = isDry;
  }

  #name(repository: string): string {
    return `${this.#prefix}${repository}`;
  }

  /** Throws if a tag stands for something else. */
  async requireTags(uploads: readonly Upload[]): Promise<void> {
    const taken: string[] = [];
    for (const { repository, tag, descriptor } of uploads) {
      if (tag === undefined) continue;
      const found = await this.#registry.findManifest(this.#name(repository), tag);
      if (found === undefined || sha256(found) === descriptor.digest.slice("sha256:".length)) continue;
      const place = `${this.#registry.host}/${this.#name(repository)}:${tag}`;
      taken.push(`${place} is sha256:${sha256(found)}, and this release's is ${descriptor.digest}`);
    }
    if (taken.length > 0) throw new Error(`${taken.join("\n")}\nNothing was sent: a published version does not change`);
  }

  async send(upload: Upload, content: Buffer): Promise<void> {
    const { repository, descriptor, manifest, tag, title } = upload;
    const name = this.#name(repository);
    const { digest, mediaType } = descriptor;
    if (manifest === undefined) {
      const isThere = await this.#registry.hasBlob(name, digest);
      const isWorthLine = content.length >= WORTH_A_LINE_BYTES;
      await this.#count(isThere, isWorthLine ? title : "", () => this.#registry.pushBlob(name, digest, content));
      return;
    }
    const reference = tag ?? digest;
    const isThere = (await this.#registry.findManifest(name, reference)) !== undefined;
    await this.#count(isThere, title, () => this.#registry.pushManifest(name, reference, { mediaType, content }));
    if (tag === undefined && manifest.subject !== undefined)
      await this.#list(name, manifest.subject.digest, descriptor);
  }

  /** Registries without the API of referrers have them in an index with a tag of its own. */
  async #list(name: string, subject: string, entry: Descriptor): Promise<void> {
    if (await this.#registry.knowsReferrers(name, subject)) return;
    const tag = referrersTag(subject);
    const content = withReferrer(await this.#registry.findManifest(name, tag), entry);
    await this.#count(content === undefined, "", () =>
      this.#registry.pushManifest(name, tag, { mediaType: INDEX, content: content ?? Buffer.alloc(0) }),
    );
  }

  /** Without a title it is counted, and not named. */
  async #count(isThere: boolean, title: string, push: () => Promise<void>): Promise<void> {
    if (isThere) {
      this.present++;
      return;
    }
    if (!this.#isDry) await push();
    this.pushed++;
    if (title !== "") console.log(`${this.#isDry ? "Would send" : "Sent"} ${title}`);
  }
}

/** Returns the layout of a release with its provenance; throws unless all is as released. */
async function openRelease(directory: string): Promise<Layout> {
  const problems = findProblems(directory);
  if (problems.length > 0) throw new Error(`${directory} is no whole release:\n${problems.join("\n")}`);
  const names = readdirSync(directory);
  const read = (name: string): Buffer => readFileSync(join(directory, name));
  const archive = names.find((name) => name.endsWith("-oci.tar"));
  if (archive === undefined) throw new Error(`${directory} has no layout *-oci.tar: build it with npm run release`);
  const layout = await Layout.read(read(archive));
  for (const name of names) if (name.endsWith(".provenance.json")) attachProvenance(layout, name, read(name));
  return layout;
}

async function publish(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      release: { type: "string", default: join(root, "dist", "release") },
      "dry-run": { type: "boolean", default: false },
      "plain-http": { type: "boolean", default: false },
    },
  });
  const [text = "", ...more] = positionals;
  const place = parsePlace(text);
  if (place === undefined || more.length > 0)
    throw new Error(`"${positionals.join(" ")}" is no registry such as registry.example:5000/network\n${USAGE}`);
  const { host, prefix, isLoopback } = place;
  const isDry = values["dry-run"];
  const layout = await openRelease(values.release);
  const uploads = planPublication(layout);
  const isPlain = values["plain-http"] || isLoopback;
  const registry = new Registry(host, isPlain, findCredentials(host, credentialsFile()));
  const publisher = new Publisher(registry, prefix, isDry);
  await publisher.requireTags(uploads);
  for (const upload of uploads) await publisher.send(upload, layout.require(upload.descriptor.digest));
  const { pushed, present } = publisher;
  console.log(`${isDry ? "Would send" : "Sent"} ${pushed} parts to ${text}; ${present} were there already`);
  for (const { repository, tag, descriptor } of uploads)
    if (tag !== undefined) console.log(`${host}/${prefix}${repository}:${tag} is ${descriptor.digest}`);
}

try {
  await publish();
} catch (error) {
  console.error(`Not published. ${(error as Error).message}`);
  process.exitCode = 1;
}
