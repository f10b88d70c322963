/** A tar archive (POSIX ustar) of texts, compressed, of bounded size. */
import { gzipSync } from "node:zlib";
import { redact } from "./redact.ts";

/** Longest file of a support bundle: bytes. Its end is kept: of a log that is the newest part. @limit */
export const MAX_BUNDLE_FILE = 2 * 1024 * 1024;

/** Largest support bundle before it is compressed: bytes. Files that do not fit are left out, and listed. @limit */
export const MAX_BUNDLE = 24 * 1024 * 1024;

const BLOCK = 512;

export interface BundleFile {
  /** Below the bundle's folder; at most 80 bytes. */
  readonly path: string;
  readonly text: string;
}

/** Returns the archive; every text is redacted. The last file lists what was cut and left out. */
export function packBundle(folder: string, files: readonly BundleFile[], timeS: number): Buffer {
  const parts: Buffer[] = [];
  const notes: string[] = [];
  let size = 0;
  for (const { path, text } of files) {
    const whole = Buffer.from(redact(text));
    const content = whole.subarray(Math.max(0, whole.length - MAX_BUNDLE_FILE));
    if (size + content.length > MAX_BUNDLE) {
      notes.push(`${path}: left out, ${whole.length} bytes`);
      continue;
    }
    if (content.length < whole.length) notes.push(`${path}: the last ${content.length} of ${whole.length} bytes`);
    size += content.length;
    parts.push(entryOf(`${folder}/${path}`, content, timeS));
  }
  const list = notes.length === 0 ? "Everything is complete" : notes.join("\n");
  parts.push(entryOf(`${folder}/LEFT-OUT`, Buffer.from(`${list}\n`), timeS), Buffer.alloc(2 * BLOCK));
  return gzipSync(Buffer.concat(parts));
}

/** A header, and the content filled up to whole blocks. */
function entryOf(path: string, content: Buffer, timeS: number): Buffer {
  const header = Buffer.alloc(BLOCK);
  const octal = (value: number, width: number): string =>
    `${Math.floor(value)
      .toString(8)
      .padStart(width - 1, "0")}\0`;
  header.write(path, 0, 100);
  header.write(octal(0o600, 8), 100);
  header.write(octal(0, 8), 108);
  header.write(octal(0, 8), 116);
  header.write(octal(content.length, 12), 124);
  header.write(octal(timeS, 12), 136);
  header.write(" ".repeat(8), 148);
  header.write("0", 156);
  header.write("ustar\u000000", 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return Buffer.concat([header, content, Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK)]);
}
