/** What the kernel of macOS checks of a signed executable before it runs: the hash of every page. */
import { createHash } from "node:crypto";

/** Returns the load commands: kind, and bytes. */
function loadCommands(file: Buffer): (readonly [kind: number, bytes: Buffer])[] {
  const commands: (readonly [number, Buffer])[] = [];
  for (let at = 32; commands.length < file.readUInt32LE(16); at += file.readUInt32LE(at + 4))
    commands.push([file.readUInt32LE(at), file.subarray(at, at + file.readUInt32LE(at + 4))]);
  return commands;
}

/** Returns the segments by their names: offset and length in the file. */
export function segmentsOf(file: Buffer): Map<string, readonly [offset: number, length: number]> {
  const segments = loadCommands(file).filter(([kind]) => kind === 0x19);
  return new Map(
    segments.map(([, bytes]) => [
      bytes.toString("latin1", 8, 24).replace(/\0+$/, ""),
      [Number(bytes.readBigUInt64LE(40)), Number(bytes.readBigUInt64LE(48))],
    ]),
  );
}

/** Returns the pages whose hash is not as signed, and what the code directory says of itself. */
export function checkSignature(file: Buffer): { wrongPages: number[]; isAdHoc: boolean; identifier: string } {
  const [, command] = loadCommands(file).find(([kind]) => kind === 0x1d) ?? [];
  if (command === undefined) throw new Error("There is no LC_CODE_SIGNATURE");
  const blob = file.subarray(command.readUInt32LE(8));
  if (blob.readUInt32BE(0) !== 0xfade0cc0) throw new Error("There is no embedded signature");
  const directory = blob.subarray(blob.readUInt32BE(16));
  const [hashes, identifier] = [directory.readUInt32BE(16), directory.readUInt32BE(20)];
  const [slots, limit] = [directory.readUInt32BE(28), directory.readUInt32BE(32)];
  const pageBytes = 2 ** (directory[39] ?? 0);
  const isRight = (page: number) => {
    const content = file.subarray(page * pageBytes, Math.min((page + 1) * pageBytes, limit));
    const wanted = directory.subarray(hashes + page * 32, hashes + page * 32 + 32);
    return createHash("sha256").update(content).digest().equals(wanted);
  };
  if (slots !== Math.ceil(limit / pageBytes)) throw new Error(`${slots} hashes are not those of ${limit} bytes`);
  return {
    wrongPages: Array.from({ length: slots }, (_, page) => page).filter((page) => !isRight(page)),
    isAdHoc: (directory.readUInt32BE(12) & 2) !== 0,
    identifier: directory.toString("latin1", identifier, directory.indexOf(0, identifier)),
  };
}
