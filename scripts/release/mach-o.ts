/**
 * Ad-hoc signatures of macOS executables: hashes of all pages without a certificate, which macOS on arm64 demands of
 * whatever it executes. What `codesign --sign -` writes, without its empty parts (xnu, osfmk/kern/cs_blobs.h).
 */
import { createHash } from "node:crypto";

const LC_SEGMENT_64 = 0x19;
const LC_CODE_SIGNATURE = 0x1d;
const HEADER_BYTES = 32;
const PAGE_BYTES = 4096;
/** Of arm64, which segments are rounded up to. */
const MEMORY_PAGE_BYTES = 16_384n;
const HASH_BYTES = 32;

const CSMAGIC_EMBEDDED_SIGNATURE = 0xfade0cc0;
const CSMAGIC_CODEDIRECTORY = 0xfade0c02;
/** The version whose header ends with the executable segment. */
const CODE_DIRECTORY_VERSION = 0x20400;
const CODE_DIRECTORY_BYTES = 88;
const SUPER_BLOB_BYTES = 20;
const CS_ADHOC = 0x2;
const CS_HASHTYPE_SHA256 = 2;
const CS_EXECSEG_MAIN_BINARY = 1n;

interface Segment {
  /** Offset of its load command. */
  readonly command: number;
  readonly fileOffset: bigint;
  readonly fileBytes: bigint;
}

/** Returns a signed copy of a 64-bit executable without a signature, which ends with its segment __LINKEDIT. */
export function signAdHoc(unsigned: Buffer, identifier: string): Buffer {
  const start = Math.ceil(unsigned.length / 16) * 16;
  const pages = Math.ceil(start / PAGE_BYTES);
  const name = Buffer.from(`${identifier}\0`);
  const directoryBytes = CODE_DIRECTORY_BYTES + name.length + pages * HASH_BYTES;
  const signatureBytes = Math.ceil((SUPER_BLOB_BYTES + directoryBytes) / 16) * 16;
  const signed = Buffer.alloc(start + signatureBytes);
  unsigned.copy(signed);
  const { segments, end } = readCommands(signed);
  const [text, linkedit] = ["__TEXT", "__LINKEDIT"].map((each) => segments.get(each));
  if (
    text === undefined ||
    linkedit === undefined ||
    linkedit.fileOffset + linkedit.fileBytes !== BigInt(unsigned.length)
  )
    throw new Error("This executable does not end with __LINKEDIT, or is signed");

  addCommand(signed, end, start, signatureBytes);
  const fileBytes = BigInt(signed.length) - linkedit.fileOffset;
  signed.writeBigUInt64LE(
    ((fileBytes + MEMORY_PAGE_BYTES - 1n) / MEMORY_PAGE_BYTES) * MEMORY_PAGE_BYTES,
    linkedit.command + 32,
  );
  signed.writeBigUInt64LE(fileBytes, linkedit.command + 48);

  const blob = signed.subarray(start);
  // One blob in it, of slot 0, at once behind this header.
  [CSMAGIC_EMBEDDED_SIGNATURE, SUPER_BLOB_BYTES + directoryBytes, 1, 0, SUPER_BLOB_BYTES].forEach((word, index) => {
    blob.writeUInt32BE(word, index * 4);
  });
  const directory = blob.subarray(SUPER_BLOB_BYTES);
  const hashes = CODE_DIRECTORY_BYTES + name.length;
  const words = [
    CSMAGIC_CODEDIRECTORY,
    directoryBytes,
    CODE_DIRECTORY_VERSION,
    CS_ADHOC,
    hashes,
    CODE_DIRECTORY_BYTES,
    0,
  ];
  [...words, pages, start].forEach((word, index) => {
    directory.writeUInt32BE(word, index * 4);
  });
  directory.set([HASH_BYTES, CS_HASHTYPE_SHA256, 0, Math.log2(PAGE_BYTES)], 36);
  directory.writeBigUInt64BE(text.fileOffset, 64);
  directory.writeBigUInt64BE(text.fileBytes, 72);
  directory.writeBigUInt64BE(CS_EXECSEG_MAIN_BINARY, 80);
  name.copy(directory, CODE_DIRECTORY_BYTES);
  for (let page = 0; page < pages; page++) {
    const content = signed.subarray(page * PAGE_BYTES, Math.min((page + 1) * PAGE_BYTES, start));
    createHash("sha256")
      .update(content)
      .digest()
      .copy(directory, hashes + page * HASH_BYTES);
  }
  return signed;
}

/** Returns the segments by their names, and where the load commands end. */
function readCommands(file: Buffer): { segments: Map<string, Segment>; end: number } {
  const segments = new Map<string, Segment>();
  let command = HEADER_BYTES;
  for (let count = file.readUInt32LE(16); count > 0; count--) {
    if (file.readUInt32LE(command) === LC_SEGMENT_64) {
      const name = file.toString("latin1", command + 8, command + 24).replace(/\0+$/, "");
      const fileOffset = file.readBigUInt64LE(command + 40);
      segments.set(name, { command, fileOffset, fileBytes: file.readBigUInt64LE(command + 48) });
    }
    command += file.readUInt32LE(command + 4);
  }
  return { segments, end: command };
}

function addCommand(file: Buffer, at: number, offset: number, lengthBytes: number): void {
  const command = file.subarray(at, at + 16);
  if (command.some((byte) => byte !== 0)) throw new Error("There is no room for another load command");
  [LC_CODE_SIGNATURE, command.length, offset, lengthBytes].forEach((word, index) => {
    command.writeUInt32LE(word, index * 4);
  });
  file.writeUInt32LE(file.readUInt32LE(16) + 1, 16);
  file.writeUInt32LE(file.readUInt32LE(20) + command.length, 20);
}
