/**
 * The part of the WebAssembly JavaScript interface that host/core uses: the compiler's library has it only together
 * with the browser's document model, which nothing in `host` may see.
 */
declare namespace WebAssembly {
  class Module {
    constructor(bytes: Uint8Array | ArrayBuffer);
    static exports(module: Module): { name: string; kind: string }[];
    static imports(module: Module): { module: string; name: string; kind: string }[];
  }
  class Instance {
    readonly exports: Record<string, unknown>;
    constructor(module: Module, imports: Record<string, never>);
  }
  class Memory {
    readonly buffer: ArrayBuffer;
    grow(pages: number): number;
  }
}
