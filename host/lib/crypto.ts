/**
 * The functions of node:crypto that an agent calls. The module is loaded by the first call, not with this file: it takes a tenth of the time until an
 * agent answers, in each thread that loads it.
 */
let loaded: typeof import("node:crypto") | undefined;

/** Loads the module ahead of the first call. */
export function loadCrypto(): typeof import("node:crypto") {
  loaded ??= process.getBuiltinModule("node:crypto");
  return loaded;
}

/** Returns the SHA-256 of the text's UTF-8: 32 bytes. */
export function sha256(text: string): Buffer {
  return loadCrypto().hash("sha256", text, "buffer");
}

export function randomBytes(lengthBytes: number): Buffer {
  return loadCrypto().randomBytes(lengthBytes);
}
