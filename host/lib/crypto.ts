/**
 * The functions of node:crypto that an agent calls. The module is loaded by the first call, not with this file: that takes 8 ms in each thread, which
 * an agent has while it waits for its registry.
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
