/** A tar archive (POSIX ustar) of texts, compressed, of bounded size; and the files of such an archive. */
import { gunzipSync, gzipSync } from "node:zlib";
import { redact } from "./redact.ts";

/** Longest file of a support bundle: bytes. Its end is kept: of a log that is the newest part. */
export const MAX_BUNDLE_FILE = 2 * 1024 * 1024;

/** Largest support bundle of a host before it is compressed: bytes. Files that do not fit are left out, and listed. */
export const MAX_BUNDLE = 24 * 1024 * 1024;

/** The list of what is missing, in the bundle itself. */
export const LEFT_OUT = "LEFT-OUT";

/** Longest list of what is missing: lines. */
const MAX_LEFT_OUT = 10_000;

const BLOCK = 512;

export interface BundleFile {
  /** Below the bundle's folder, without `..`. */
  readonly path: string;
  readonly text: string;
  /** What is missing in the text, or why there is none. */
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
  /** What was cut and left out. */
  readonly notes: readonly string[];
}

/** Returns the archive, in which every text is redacted. The last file lists what was cut and left out. */
export function packBundle(
  files: readonly BundleFile[],
  { folder, timeS, maxBytes = MAX_BUNDLE }: BundleOptions,
): Bundle {
  const parts: Buffer[] = [];
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
    parts.push(entryOf(`${folder}/${path}`, content, timeS));
  }
  const listed = notes.length === 0 ? ["Everything is complete"] : notes.slice(0, MAX_LEFT_OUT);
  const list = Buffer.from(`${listed.join("\n")}\n`);
  parts.push(entryOf(`${folder}/${LEFT_OUT}`, list, timeS), Buffer.alloc(2 * BLOCK));
  return { archive: gzipSync(Buffer.concat(parts)), notes };
}

/** Returns the files of an archive that {@link packBundle} made, below their folder. Throws for anything else, and for more than `maxBytes`. */
export function unpackBundle(archive: Buffer, maxBytes: number): BundleFile[] {
  const tar = gunzipSync(archive, { maxOutputLength: maxBytes });
  const files: BundleFile[] = [];
  for (let at = 0; at + BLOCK <= tar.length; ) {
    const header = tar.subarray(at, at + BLOCK);
    if (header[0] === 0) break;
    if (textAt(header, 257, 5) !== "ustar") throw new TypeError("The archive is no ustar archive");
    const prefix = textAt(header, 345, 155);
    const path = `${prefix === "" ? "" : `${prefix}/`}${textAt(header, 0, 100)}`;
    const length = Number.parseInt(textAt(header, 124, 12), 8);
    // A negative one would lead back: the archive is another machine's.
    if (!(length >= 0)) throw new TypeError("The archive is no ustar archive");
    const start = at + BLOCK;
    files.push({
      path: path.split("/").slice(1).filter(isPart).join("/"),
      text: tar.toString("utf8", start, start + length),
    });
    at = start + Math.ceil(length / BLOCK) * BLOCK;
  }
  return files;
}

function isPart(part: string): boolean {
  return part !== "" && part !== "." && part !== "..";
}

function textAt(header: Buffer, start: number, length: number): string {
  return header.toString("utf8", start, start + length).replace(/\0.*$/s, "");
}

/** A header, and the content filled up to whole blocks. */
function entryOf(path: string, content: Buffer, timeS: number): Buffer {
  const header = Buffer.alloc(BLOCK);
  const octal = (value: number, width: number): string =>
    `${Math.floor(value)
      .toString(8)
      .padStart(width - 1, "0")}\0`;
  const { name, prefix } = splitPath(path);
  header.write(name, 0, 100);
  header.write(octal(0o600, 8), 100);
  header.write(octal(0, 8), 108);
  header.write(octal(0, 8), 116);
  header.write(octal(content.length, 12), 124);
  header.write(octal(timeS, 12), 136);
  header.write(" ".repeat(8), 148);
  header.write("0", 156);
  header.write("ustar\u000000", 257);
  header.write(prefix, 345, 155);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return Buffer.concat([header, content, Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK)]);
}

/** A name has at most 100 bytes, the folders before it 155. A longer name loses its end. */
function splitPath(path: string): { readonly name: string; readonly prefix: string } {
  if (Buffer.byteLength(path) <= 100) return { name: path, prefix: "" };
  const parts = path.split("/");
  const name = parts.pop() ?? "";
  return {
    name: Buffer.from(name).toString("utf8", 0, 100),
    prefix: Buffer.from(parts.join("/")).toString("utf8", 0, 155),
  };
}
