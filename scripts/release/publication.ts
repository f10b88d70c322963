/** The contents of a release for a registry, each manifest after the contents that it names, and tags last. */
import type { Descriptor, Layout, Manifest } from "./oci.ts";
import { INDEX, REF_NAME } from "./oci.ts";

const PROVENANCE_TYPE = "application/vnd.in-toto+json";

export interface Upload {
  /** Below the registry, without a prefix: `charts/berth`. */
  readonly repository: string;
  /** For people. */
  readonly title: string;
  readonly descriptor: Descriptor;
  /** Absent: a blob. */
  readonly manifest?: Manifest;
  /** Only for the tag of a manifest that is there. */
  readonly tag?: string;
}

/** The provenance is the image's. */
export function attachProvenance(layout: Layout, name: string, content: Buffer): void {
  const image = layout.entries.find(({ mediaType }) => mediaType === INDEX);
  if (image !== undefined) layout.entries.push(layout.addReferrer(image, PROVENANCE_TYPE, [name, content]));
}

/** Throws if the layout lacks a part. */
export function planPublication(layout: Layout): Upload[] {
  const referrers = layout.entries
    .map((descriptor) => ({ descriptor, subject: layout.readManifest(descriptor.digest).subject?.digest }))
    .filter(({ subject }) => subject !== undefined);
  return layout.entries.flatMap((entry) => {
    const [, repository, tag] = /^(.+):(.+)$/.exec(entry.annotations?.[REF_NAME] ?? "") ?? [];
    if (repository === undefined || tag === undefined) return [];
    const uploads = new Map<string, Upload>();
    const visit = (descriptor: Descriptor, title: string): void => {
      if (uploads.has(descriptor.digest)) return;
      const manifest = layout.readManifest(descriptor.digest);
      const { config, layers = [], manifests = [] } = manifest;
      for (const each of manifests) visit(each, `image for ${each.platform?.architecture}`);
      for (const each of config === undefined ? layers : [config, ...layers]) {
        layout.require(each.digest);
        uploads.set(each.digest, {
          repository,
          title: `${(each.size / 1e6).toFixed(1)} MB of ${title}`,
          descriptor: each,
        });
      }
      uploads.set(descriptor.digest, { repository, title, descriptor, manifest });
      for (const { descriptor: each, subject } of referrers)
        if (subject === descriptor.digest) visit(each, each.annotations?.["org.opencontainers.image.title"] ?? "");
    };
    visit(entry, `${repository}:${tag}`);
    const last = uploads.get(entry.digest) as Upload;
    return [...uploads.values(), { ...last, title: `the tag ${tag} of ${repository}`, tag }];
  });
}
