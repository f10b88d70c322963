/** A tar archive of texts, compressed, of bounded size; and the files of such an archive. */
import { gunzipSync, gzipSync } from "node:zlib";
import { extract, pack } from "tar-stream";
import { redact } from "./redact.ts";

/** Longest file of a support bundle: bytes. Its end is kept: of a log that is the newest part. */
export const MAX_BUNDLE_FILE = 2 * 1024 * 1024;

/** Largest support bundle of a host before it is compressed: bytes. Files that do not fit are left out, and listed. */
export const MAX_BUNDLE = 24 * 1024 * 1024;

/** The same of a cluster. */
export const MAX_CLUSTER_BUNDLE = 64 * 1024 * 1024;

/** The list of missing parts, in the bundle itself. */
export const LEFT_OUT = "LEFT-OUT";

/** Longest list of missing parts: lines. */
const MAX_LEFT_OUT = 10_000;

export interface BundleFile {
  /** Below the bundle's folder, without `..`. */
  readonly path: string;
  readonly text: string;
  /** Describes the part that is missing in the text, or the reason why there is none. */
  readonly note?: string | undefined;
}

interface BundleOptions {
  readonly folder: string;
  /** Seconds since 1970. */
  readonly timeS: number;
  /** Default: {@link MAX_BUNDLE}. */
  readonly maxBytes?: number;
}

export interface Bundle {
  readonly archive: Buffer;
  /** Notes on the parts that were cut and left out. */
  readonly notes: readonly string[];
}

/** Returns the archive, in which every text is redacted. The last file lists the parts that were cut or left out. */
export async function packBundle(
  files: readonly BundleFile[],
  { folder, timeS, maxBytes = MAX_BUNDLE }: BundleOptions,
): Promise<Bundle> {
  const tar = pack();
  const attributes = { mode: 0o600, mtime: new Date(timeS * 1_000), uid: 0, gid: 0 };
  const add = (path: string, content: Buffer) => tar.entry({ ...attributes, name: `${folder}/${path}` }, content);
  const notes: string[] = [];
  let size = 0;
  for (const { path, text, note } of files) {
    if (note !== undefined) notes.push(`${path}: ${redact(note)}`);
    const whole = Buffer.from(redact(text));
    const content = whole.subarray(Math.max(0, whole.length - MAX_BUNDLE_FILE));
    if (size + content.length > maxBytes) {
      notes.push(`${path}: left out, ${whole.length} bytes`);
      continue;
    }
    if (content.length < whole.length) notes.push(`${path}: the last ${content.length} of ${whole.length} bytes`);
    size += content.length;
    add(path, content);
  }
  const listed = notes.length === 0 ? ["Everything is complete"] : notes.slice(0, MAX_LEFT_OUT);
  add(LEFT_OUT, Buffer.from(`${listed.join("\n")}\n`));
  tar.finalize();
  return { archive: gzipSync(Buffer.concat(await Array.fromAsync(tar as AsyncIterable<Buffer>))), notes };
}

/**
 * Returns the files of an archive that {@link packBundle} made, below their folder. Rejects for anything else, and
 * for more than `maxBytes`.
 */
export async function unpackBundle(archive: Buffer, maxBytes: number): Promise<BundleFile[]> {
  const tar = extract();
  tar.end(gunzipSync(archive, { maxOutputLength: maxBytes }));
  const files: BundleFile[] = [];
  for await (const entry of tar) {
    const content = Buffer.concat(await Array.fromAsync(entry as AsyncIterable<Buffer>));
    const path = entry.header.name.split("/").slice(1).filter(isPart).join("/");
    if (entry.header.type === "file") files.push({ path, text: content.toString("utf8") });
  }
  return files;
}

function isPart(part: string): boolean {
  return part !== "" && part !== "." && part !== "..";
}
