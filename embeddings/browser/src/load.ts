/**
 * Finds and compiles berth-core.wasm, which lies beside this package's module.
 * Effects: one request, or in Node.js one file read.
 */

/** Source of the core: its address, its bytes, or a module that is compiled already. */
export type WasmSource = URL | Uint8Array<ArrayBuffer> | ArrayBuffer | WebAssembly.Module;

/** Compiles the core off the main thread. Throws when it is not found or is no WebAssembly. */
export async function compileCore(
  wasm: WasmSource = new URL("./berth-core.wasm", import.meta.url),
): Promise<WebAssembly.Module> {
  if (wasm instanceof WebAssembly.Module) return wasm;
  if (!(wasm instanceof URL)) return WebAssembly.compile(wasm);
  if (wasm.protocol === "file:") return WebAssembly.compile(await readCoreFile(wasm));
  const response = await fetch(wasm);
  if (!response.ok) throw new Error(`Cannot load ${wasm.href}: status ${response.status}`);
  // Browsers compile a stream only when the server names its type.
  const isNamed = response.headers.get("content-type")?.startsWith("application/wasm");
  return isNamed ? WebAssembly.compileStreaming(response) : WebAssembly.compile(await response.arrayBuffer());
}

/** Without an import of node:fs, which bundlers for browsers could not resolve. */
async function readCoreFile(url: URL): Promise<Uint8Array<ArrayBuffer>> {
  const fs = globalThis.process?.getBuiltinModule?.("node:fs/promises");
  if (fs === undefined) throw new Error(`Cannot load ${url.href}: serve it over HTTP, or pass the bytes to Core.open`);
  return new Uint8Array(await fs.readFile(url));
}
