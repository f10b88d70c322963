/** Declarations of a Wasm binary, read from its sections (WebAssembly 1.0 §5.5). */

const VALUE_TYPES: Readonly<Record<number, string>> = { 127: "i32", 126: "i64", 125: "f32", 124: "f64" };
const EXPORT_KINDS = ["function", "table", "memory", "global"];

export interface WasmSections {
  /** Section identifiers in the order of the file. */
  readonly ids: readonly number[];
  readonly imports: number;
  readonly mutableGlobals: number;
  readonly memories: readonly { readonly initial: number; readonly maximum: number | undefined }[];
  readonly exports: readonly { readonly name: string; readonly kind: string; readonly type: string | undefined }[];
}

class Reader {
  readonly #bytes: Uint8Array;
  at: number;

  constructor(bytes: Uint8Array, at = 0) {
    this.#bytes = bytes;
    this.at = at;
  }

  byte(): number {
    const byte = this.#bytes[this.at++];
    if (byte === undefined) throw new Error("the module ends too early");
    return byte;
  }

  u32(): number {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = this.byte();
      value |= (byte & 127) << shift;
      if (byte < 128) return value >>> 0;
    }
  }

  text(): string {
    const length = this.u32();
    this.at += length;
    return new TextDecoder().decode(this.#bytes.subarray(this.at - length, this.at));
  }

  list<T>(item: () => T): T[] {
    return Array.from({ length: this.u32() }, item);
  }
}

function readTypes(reader: Reader): string[] {
  const valueType = () => VALUE_TYPES[reader.byte()] ?? "other";
  return reader.list(() => {
    reader.byte();
    return `(${reader.list(valueType).join(",")})->(${reader.list(valueType).join(",")})`;
  });
}

function readGlobals(reader: Reader): boolean[] {
  return reader.list(() => {
    reader.byte();
    const mutable = reader.byte() === 1;
    while (reader.byte() !== 0x0b); // the initial value, up to its `end`
    return mutable;
  });
}

export function readSections(bytes: Uint8Array): WasmSections {
  const sections = new Map<number, Reader>();
  const reader = new Reader(bytes, 8);
  while (reader.at < bytes.length) {
    const id = reader.byte();
    const length = reader.u32();
    sections.set(id, new Reader(bytes, reader.at));
    reader.at += length;
  }
  const section = <T>(id: number, read: (reader: Reader) => T[]): T[] => {
    const found = sections.get(id);
    return found === undefined ? [] : read(found);
  };
  const types = section(1, readTypes);
  const functions = section(3, (own) => own.list(() => own.u32()));
  const memories = section(5, (own) =>
    own.list(() => {
      const limited = own.byte() === 1;
      return { initial: own.u32(), maximum: limited ? own.u32() : undefined };
    }),
  );
  const exports = section(7, (own) =>
    own.list(() => {
      const name = own.text();
      const kind = EXPORT_KINDS[own.byte()] ?? "other";
      const index = own.u32();
      return { name, kind, type: kind === "function" ? types[functions[index] ?? -1] : undefined };
    }),
  );
  const mutableGlobals = section(6, readGlobals).filter((mutable) => mutable).length;
  const imports = section(2, (own) => [own.u32()])[0] ?? 0;
  return { ids: [...sections.keys()], imports, mutableGlobals, memories, exports };
}
