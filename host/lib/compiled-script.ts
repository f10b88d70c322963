/**
 * Runs a bundle that is one script, with the code that V8 compiled of it in an earlier run. Node.js' own cache (NODE_COMPILE_CACHE) is made before a module
 * runs, so it lacks each function that is compiled by its first call: nearly all.
 */
import * as fs from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import { constants, Script } from "node:vm";
import { crc32 } from "node:zlib";
import { replaceFile } from "./replace-file.ts";

/**
 * Behind V8's code: checksums of the script and of the code, and 1 if the code is complete; 32 bits each, the least significant byte first. V8 itself compares no
 * more of a script than its length.
 */
const TRAILER_BYTES = 12;

export type KeepCode = (isComplete: boolean) => Promise<void>;

interface CompiledScript<T> {
  /** What the script has assigned to `module.exports`. */
  readonly exports: T;
  /**
   * Writes what V8 has compiled until now for the next run. V8 takes 20 ms for the code of 1 MB of text, with the event loop standing still. Rejects with the
   * file system's error. `isComplete`: the next run need not keep more. Undefined if this run has found complete code, or there is no directory.
   */
  readonly keepCode: KeepCode | undefined;
}

/**
 * Runs the function that the script at `path` consists of: `(function (exports, require, module, __filename, __dirname) { … })`, in ASCII.
 * `cacheDirectory`: where code is kept, for the user of this process alone; undefined: nowhere. A file there that is missing, damaged, of another script or of
 * another V8 is ignored. Throws what the script throws.
 */
export function runScript<T>(path: string, cacheDirectory: string | undefined): CompiledScript<T> {
  const text = fs.readFileSync(path);
  const checksum = crc32(text);
  const codePath = cacheDirectory === undefined ? undefined : join(cacheDirectory, `${basename(path)}.code`);
  const found = codePath === undefined ? undefined : readCode(codePath, checksum);
  const script = new Script(text.toString("latin1"), {
    filename: path,
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
    ...(found === undefined ? {} : { cachedData: found.code }),
  });
  const module = { exports: {} as T };
  script.runInThisContext()(module.exports, createRequire(path), module, path, dirname(path));
  const { exports } = module;
  const hasFoundAll = found?.isComplete === true && script.cachedDataRejected === false;
  if (codePath === undefined || hasFoundAll) return { exports, keepCode: undefined };
  const keepCode = (isComplete: boolean): Promise<void> =>
    writeCode(codePath, { checksum, isComplete, code: script.createCachedData() });
  return { exports, keepCode };
}

interface KeptCode {
  readonly code: Buffer;
  readonly isComplete: boolean;
}

/** Returns undefined unless the file is whole and of the script with this checksum. */
function readCode(path: string, checksum: number): KeptCode | undefined {
  const bytes = readIfPresent(path);
  const end = (bytes?.length ?? 0) - TRAILER_BYTES;
  if (bytes === undefined || end < 0 || bytes.readUInt32LE(end) !== checksum) return undefined;
  const code = bytes.subarray(0, end);
  if (bytes.readUInt32LE(end + 4) !== crc32(code)) return undefined;
  return { code, isComplete: bytes.readUInt32LE(end + 8) === 1 };
}

function readIfPresent(path: string): Buffer | undefined {
  try {
    return fs.readFileSync(path);
  } catch {
    return undefined;
  }
}

async function writeCode(
  path: string,
  { checksum, isComplete, code }: KeptCode & { readonly checksum: number },
): Promise<void> {
  const trailer = Buffer.alloc(TRAILER_BYTES);
  trailer.writeUInt32LE(checksum, 0);
  trailer.writeUInt32LE(crc32(code), 4);
  trailer.writeUInt32LE(isComplete ? 1 : 0, 8);
  const temporary = `${path}.${process.pid}`;
  // Of a process that was killed meanwhile and had the same number, as each has in a container.
  await fs.promises.rm(temporary, { force: true });
  await replaceFile(path, { content: Buffer.concat([code, trailer]), mode: 0o600, temporary });
}
