/** Images and artefacts of the Open Container Initiative: their JSON, and layouts as archives (image-spec 1.1). */
import { type ArchiveEntry, readTar, writeTar } from "./archive.ts";
import { withDirectories } from "./product.ts";
import { sha256 } from "./sources.ts";

export const MANIFEST = "application/vnd.oci.image.manifest.v1+json";
export const INDEX = "application/vnd.oci.image.index.v1+json";
/** The annotation by which an entry of index.json has a name: `berth:1.0.0`. */
export const REF_NAME = "org.opencontainers.image.ref.name";
/** The annotation by which a layer is a file. */
export const TITLE = "org.opencontainers.image.title";

export interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly artifactType?: string;
  readonly platform?: { readonly architecture: string; readonly os: string };
  readonly annotations?: Readonly<Record<string, string>>;
}

/** The common part of manifests and indexes. */
export interface Manifest {
  readonly mediaType: string;
  readonly artifactType?: string;
  readonly config?: Descriptor;
  readonly layers?: readonly Descriptor[];
  readonly manifests?: readonly Descriptor[];
  readonly subject?: Descriptor;
  readonly annotations?: Readonly<Record<string, string>>;
}

export const json = (value: object): Buffer => Buffer.from(JSON.stringify(value));
export const digestOf = (content: Uint8Array): string => `sha256:${sha256(content)}`;
export const describe = (mediaType: string, content: Uint8Array): Descriptor => ({
  ...{ mediaType, digest: digestOf(content), size: content.length },
});

const blobPath = (digest: string): string => `blobs/${digest.replace(":", "/")}`;

/** Contents by their digests, and the entries of the index. */
export class Layout {
  readonly entries: Descriptor[] = [];
  readonly #blobs = new Map<string, Buffer>();

  /** Returns the layout of an archive; throws if a blob does not match its name. */
  static async read(archive: Uint8Array): Promise<Layout> {
    const files = await readTar(archive);
    const layout = new Layout();
    for (const [path, content] of files) {
      if (!path.startsWith("blobs/")) continue;
      if (blobPath(layout.add(content)) !== path) throw new Error(`${path} of the layout has other bytes than it says`);
    }
    const index = files.get("index.json");
    if (index === undefined) throw new Error("There is no index.json: this is no OCI layout");
    layout.entries.push(...JSON.parse(index.toString()).manifests);
    return layout;
  }

  /** Returns the digest. */
  add(content: Buffer): string {
    const digest = digestOf(content);
    this.#blobs.set(digest, content);
    return digest;
  }

  /** Adds a manifest or an index, and returns its descriptor. */
  addManifest(manifest: Manifest): Descriptor {
    const content = json({ schemaVersion: 2, ...manifest });
    this.add(content);
    const { mediaType, artifactType, annotations } = manifest;
    const { digest, size } = describe(mediaType, content);
    const kind = artifactType === undefined ? {} : { artifactType, ...(annotations && { annotations }) };
    return { mediaType, digest, size, ...kind };
  }

  /** Adds a file that belongs to `subject`, as an artefact of one layer without configuration. */
  addReferrer(subject: Descriptor, type: string, file: readonly [name: string, content: Buffer]): Descriptor {
    const [title, content] = file;
    const nothing = json({});
    this.add(nothing);
    this.add(content);
    return this.addManifest({
      ...{ mediaType: MANIFEST, artifactType: type, config: describe("application/vnd.oci.empty.v1+json", nothing) },
      layers: [{ ...describe(type, content), annotations: { [TITLE]: title } }],
      subject: { mediaType: subject.mediaType, digest: subject.digest, size: subject.size },
      annotations: { [TITLE]: title },
    });
  }

  /** Throws if the layout lacks it. */
  require(digest: string): Buffer {
    const content = this.#blobs.get(digest);
    if (content === undefined) throw new Error(`The layout lacks ${digest}`);
    return content;
  }

  readManifest(digest: string): Manifest {
    return JSON.parse(this.require(digest).toString());
  }

  /** Returns the archive: the named entries, all blobs, and `more` files. */
  write(timeSeconds: number, more: readonly ArchiveEntry[] = []): Promise<Buffer> {
    const file = (path: string, content: Buffer) => ({ path, mode: 0o644, content });
    const index = json({ schemaVersion: 2, mediaType: INDEX, manifests: this.entries });
    const blobs = [...this.#blobs].map(([digest, content]) => file(blobPath(digest), content));
    const first = [file("oci-layout", json({ imageLayoutVersion: "1.0.0" })), file("index.json", index)];
    return writeTar(withDirectories([...first, ...more, ...blobs]), timeSeconds);
  }
}
