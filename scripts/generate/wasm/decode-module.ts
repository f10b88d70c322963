/**
 * Decodes a WebAssembly module into functions with nested instructions, for what turns the core into another language.
 * Takes what the core may consist of (docs/wasm-abi.md): functions of i32 and i64, one memory, exports; and throws on
 * anything else, such as imports, tables, globals, data, floats.
 */

export type ValueType = "i32" | "i64";

/** A block, a loop, or an `if`, with what it leaves on the stack; or any other instruction with what follows its opcode. */
export type Instruction =
  | { readonly op: "block" | "loop"; readonly result: ValueType | undefined; readonly body: readonly Instruction[] }
  | {
      readonly op: "if";
      readonly result: ValueType | undefined;
      readonly body: readonly Instruction[];
      readonly otherwise: readonly Instruction[];
    }
  | { readonly op: "i64.const"; readonly value: bigint }
  | { readonly op: MemoryOp; readonly offset: number }
  | { readonly op: IndexOp; readonly index: number }
  | { readonly op: PlainOp };

export interface WasmFunction {
  readonly params: readonly ValueType[];
  readonly result: ValueType | undefined;
  /** The locals after the parameters. */
  readonly locals: readonly ValueType[];
  readonly body: readonly Instruction[];
}

export interface WasmModule {
  readonly functions: readonly WasmFunction[];
  /** Exported functions, by their names: indices of `functions`. */
  readonly exports: ReadonlyMap<string, number>;
  /** In pages of 64 KiB. */
  readonly memory: { readonly initial: number; readonly maximum: number };
}

/** Every instruction, those of blocks after the block itself. */
export function* walk(body: readonly Instruction[]): Generator<Instruction> {
  for (const instruction of body) {
    yield instruction;
    if ("body" in instruction) yield* walk(instruction.body);
    if ("otherwise" in instruction) yield* walk(instruction.otherwise);
  }
}

const MEMORY_OPS = {
  40: "i32.load",
  41: "i64.load",
  44: "i32.load8_s",
  45: "i32.load8_u",
  46: "i32.load16_s",
  47: "i32.load16_u",
  49: "i64.load8_u",
  51: "i64.load16_u",
  53: "i64.load32_u",
  54: "i32.store",
  55: "i64.store",
  58: "i32.store8",
  59: "i32.store16",
  60: "i64.store8",
  61: "i64.store16",
  62: "i64.store32",
} as const;

/** What follows is the index of a local, a label or a function, or the number itself. */
const INDEX_OPS = {
  12: "br",
  13: "br_if",
  16: "call",
  32: "local.get",
  33: "local.set",
  34: "local.tee",
  65: "i32.const",
} as const;

const PLAIN_OPS = {
  0: "unreachable",
  1: "nop",
  15: "return",
  26: "drop",
  27: "select",
  63: "memory.size",
  64: "memory.grow",
  69: "i32.eqz",
  70: "i32.eq",
  71: "i32.ne",
  72: "i32.lt_s",
  73: "i32.lt_u",
  74: "i32.gt_s",
  75: "i32.gt_u",
  76: "i32.le_s",
  77: "i32.le_u",
  78: "i32.ge_s",
  79: "i32.ge_u",
  80: "i64.eqz",
  81: "i64.eq",
  82: "i64.ne",
  83: "i64.lt_s",
  84: "i64.lt_u",
  85: "i64.gt_s",
  86: "i64.gt_u",
  87: "i64.le_s",
  88: "i64.le_u",
  89: "i64.ge_s",
  90: "i64.ge_u",
  103: "i32.clz",
  104: "i32.ctz",
  105: "i32.popcnt",
  106: "i32.add",
  107: "i32.sub",
  108: "i32.mul",
  110: "i32.div_u",
  112: "i32.rem_u",
  113: "i32.and",
  114: "i32.or",
  115: "i32.xor",
  116: "i32.shl",
  117: "i32.shr_s",
  118: "i32.shr_u",
  119: "i32.rotl",
  120: "i32.rotr",
  121: "i64.clz",
  122: "i64.ctz",
  123: "i64.popcnt",
  124: "i64.add",
  125: "i64.sub",
  126: "i64.mul",
  128: "i64.div_u",
  130: "i64.rem_u",
  131: "i64.and",
  132: "i64.or",
  133: "i64.xor",
  134: "i64.shl",
  135: "i64.shr_s",
  136: "i64.shr_u",
  137: "i64.rotl",
  138: "i64.rotr",
  167: "i32.wrap_i64",
  172: "i64.extend_i32_s",
  173: "i64.extend_i32_u",
} as const;

/** After the prefix 252. */
const BULK_OPS = { 10: "memory.copy", 11: "memory.fill" } as const;

export type MemoryOp = (typeof MEMORY_OPS)[keyof typeof MEMORY_OPS];
export type IndexOp = (typeof INDEX_OPS)[keyof typeof INDEX_OPS];
export type PlainOp = (typeof PLAIN_OPS)[keyof typeof PLAIN_OPS] | (typeof BULK_OPS)[keyof typeof BULK_OPS];

const OPCODE = { block: 2, loop: 3, if: 4, else: 5, end: 11, constant64: 66, bulk: 252 };
const SECTION = { custom: 0, type: 1, function: 3, memory: 5, export: 7, code: 10 };
const HEADER = [0, 97, 115, 109, 1, 0, 0, 0];

class Reader {
  readonly #bytes: Uint8Array;
  at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.at >= this.#bytes.length;
  }

  byte(): number {
    const value = this.#bytes[this.at++];
    if (value === undefined) throw new Error(`The module ends at byte ${this.at - 1}`);
    return value;
  }

  /** Unsigned LEB128. */
  unsigned(): number {
    return Number(BigInt.asUintN(32, this.#leb128(false)));
  }

  signed(): bigint {
    return this.#leb128(true);
  }

  #leb128(isSigned: boolean): bigint {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = this.byte();
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return isSigned && byte >= 64 ? value - (1n << (shift + 7n)) : value;
    }
  }

  part(): Reader {
    const length = this.unsigned();
    this.at += length;
    return new Reader(this.#bytes.subarray(this.at - length, this.at));
  }

  list<T>(item: () => T): T[] {
    return Array.from({ length: this.unsigned() }, item);
  }

  text(): string {
    return new TextDecoder().decode(Uint8Array.from(this.list(() => this.byte())));
  }
}

function readValueType(code: number): ValueType {
  if (code === 0x7f) return "i32";
  if (code === 0x7e) return "i64";
  throw new Error(`Value type ${code} is none that the core uses`);
}

function readResult(reader: Reader): ValueType | undefined {
  const code = reader.byte();
  return code === 0x40 ? undefined : readValueType(code);
}

/** The instructions up to `end`, or `else`, which is left out, too: and which of them it was. */
function readBody(reader: Reader): { readonly body: Instruction[]; readonly end: number } {
  const body: Instruction[] = [];
  for (;;) {
    const code = reader.byte();
    if (code === OPCODE.end || code === OPCODE.else) return { body, end: code };
    body.push(readInstruction(reader, code));
  }
}

function readInstruction(reader: Reader, code: number): Instruction {
  if (code === OPCODE.block || code === OPCODE.loop) {
    return { op: code === OPCODE.block ? "block" : "loop", result: readResult(reader), body: readBody(reader).body };
  }
  if (code === OPCODE.if) {
    const result = readResult(reader);
    const { body, end } = readBody(reader);
    return { op: "if", result, body, otherwise: end === OPCODE.else ? readBody(reader).body : [] };
  }
  if (code === OPCODE.constant64) return { op: "i64.const", value: BigInt.asUintN(64, reader.signed()) };
  if (code in MEMORY_OPS) {
    reader.unsigned(); // the alignment is a hint
    return { op: MEMORY_OPS[code as keyof typeof MEMORY_OPS], offset: reader.unsigned() };
  }
  if (code in INDEX_OPS) {
    const op = INDEX_OPS[code as keyof typeof INDEX_OPS];
    const index = op === "i32.const" ? Number(BigInt.asUintN(32, reader.signed())) : reader.unsigned();
    return { op, index };
  }
  if (code === OPCODE.bulk) {
    const op = BULK_OPS[reader.unsigned() as keyof typeof BULK_OPS];
    if (op === undefined) throw new Error(`Byte ${reader.at}: a bulk operation that the core does not use`);
    for (let memories = op === "memory.copy" ? 2 : 1; memories > 0; memories--) reader.byte();
    return { op };
  }
  const op = PLAIN_OPS[code as keyof typeof PLAIN_OPS];
  if (op === undefined) throw new Error(`Opcode ${code} is none that the core uses`);
  if (op === "memory.size" || op === "memory.grow") reader.byte();
  return { op };
}

function readMemory(reader: Reader): WasmModule["memory"] {
  if (reader.byte() !== 1) throw new Error("The memory has no maximum");
  return { initial: reader.unsigned(), maximum: reader.unsigned() };
}

type Signature = Pick<WasmFunction, "params" | "result">;

function readSignature(reader: Reader): Signature {
  if (reader.byte() !== 0x60) throw new Error("A type that is no function");
  const params = reader.list(() => readValueType(reader.byte()));
  return { params, result: reader.list(() => readValueType(reader.byte()))[0] };
}

function readCode(reader: Reader): Pick<WasmFunction, "locals" | "body"> {
  const code = reader.part();
  const groups = code.list(() => {
    const length = code.unsigned();
    return Array.from<ValueType>({ length }).fill(readValueType(code.byte()));
  });
  return { locals: groups.flat(), body: readBody(code).body };
}

export function decodeModule(wasm: Uint8Array): WasmModule {
  const reader = new Reader(wasm);
  for (const wanted of HEADER) if (reader.byte() !== wanted) throw new Error("These bytes are no module");
  let types: Signature[] = [];
  let signatures: Signature[] = [];
  let codes: Pick<WasmFunction, "locals" | "body">[] = [];
  let memory: WasmModule["memory"] = { initial: 0, maximum: 0 };
  const exports = new Map<string, number>();
  while (!reader.isAtEnd) {
    const section = reader.byte();
    const part = reader.part();
    if (section === SECTION.type) types = part.list(() => readSignature(part));
    else if (section === SECTION.function) signatures = part.list(() => types[part.unsigned()] as Signature);
    else if (section === SECTION.memory) [memory = memory] = part.list(() => readMemory(part));
    else if (section === SECTION.export) {
      part.list(() => {
        const name = part.text();
        const isFunction = part.byte() === 0;
        const index = part.unsigned();
        if (isFunction) exports.set(name, index);
      });
    } else if (section === SECTION.code) codes = part.list(() => readCode(part));
    else if (section !== SECTION.custom) throw new Error(`Section ${section} is none that the core has`);
  }
  const functions = signatures.map((signature, index) => ({
    ...signature,
    ...(codes[index] ?? { locals: [], body: [] }),
  }));
  return { functions, exports, memory };
}
