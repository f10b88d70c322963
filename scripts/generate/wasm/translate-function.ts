/**
 * Translates a function of a Wasm module into statements of a language with blocks, for the embeddings that run the core
 * without a runtime. Every value on Wasm's stack becomes a variable of its own, `tN`; parameters and locals are `lN`. A
 * comparison stays a condition until a number is wanted. What a language has its own words for is in its {@link Dialect}.
 */
import type { Instruction, PlainOp, ValueType, WasmFunction, WasmModule } from "./decode-module.ts";

/** Names of binary instructions with operands and a result of one type. */
export type Arithmetic = "add" | "sub" | "mul" | "div_u" | "rem_u" | "and" | "or" | "xor";
export type Shift = "shl" | "shr_u" | "shr_s";
export type Rotation = "rotl" | "rotr";
export type Count = "clz" | "ctz" | "popcnt";

/** How a language writes what the translation needs: expressions, and lines of statements. Both i32 and i64 are unsigned. */
export interface Dialect {
  literal(value: bigint, type: ValueType): string;
  /** A value as a signed number; of a literal its signed value. */
  signed(value: Value): string;
  /** 1 or 0 as an i32. */
  numberOf(condition: string): string;
  arithmetic(name: Arithmetic, a: string, b: string, type: ValueType): string;
  /** `by` is below the number of bits. */
  shift(name: Shift, a: string, by: string | number, type: ValueType): string;
  rotate(name: Rotation, a: string, by: string, type: ValueType): string;
  count(name: Count, a: string, type: ValueType): string;
  /** The low half of an i64. */
  wrap(a: string): string;
  /** An i32 as an i64. */
  extend(a: string, isSigned: boolean): string;
  call(index: number, args: readonly string[]): string;
  load(bits: number, at: string, offset: number, type: ValueType): string;
  store(bits: number, at: string, offset: number, value: string, type: ValueType): string;
  memorySize(): string;
  memoryGrow(pages: string): string;
  memoryCopy(to: string, from: string, length: string): string;
  memoryFill(at: string, value: string, length: string): string;
  /** A variable that never changes. */
  constant(name: string, text: string): string;
  /** A variable that is assigned to. */
  variable(name: string, type: ValueType): string;
  assign(name: string, text: string): string;
  /** An expression for what it does. */
  statement(text: string): string;
  return(text: string | undefined): string;
  break(label: string): string;
  continue(label: string): string;
  trap(): string;
  /** Lines that `break` leaves. */
  block(label: string, lines: readonly string[]): string[];
  /** Lines that `continue` begins anew; behind their end it is left, if the end is reached. */
  loop(label: string, lines: readonly string[], isEndReachable: boolean): string[];
}

/** A value on the stack: the text of a variable or a literal, or of a condition. */
export interface Value {
  readonly text: string;
  readonly type: ValueType | "condition";
  /** What a literal stands for. */
  readonly literal?: bigint;
}

/** What a branch may leave. */
interface Label {
  readonly name: string;
  readonly kind: "function" | "loop" | "block";
  /** The variable for what the block leaves on the stack. */
  readonly result: Value | undefined;
  isUsed: boolean;
}

const COMPARISONS: Readonly<Record<string, string>> = { eq: "==", ne: "!=", lt: "<", gt: ">", le: "<=", ge: ">=" };

export function indent(lines: readonly string[]): string[] {
  return lines.map((line) => `\t${line}`);
}

/** The lines of an `if`, which many languages write alike. */
function branchLines(condition: string, yes: readonly string[], no: readonly string[] = []): string[] {
  const otherwise = no.length === 0 ? [] : ["} else {", ...indent(no)];
  return [`if ${condition} {`, ...indent(yes), ...otherwise, "}"];
}

/** The lines of a function's body; the variables of its parameters are there already, and are assigned to. */
export function translateFunction(module: WasmModule, own: WasmFunction, dialect: Dialect): string[] {
  return new Translation(module.functions, own, dialect).lines();
}

class Translation {
  readonly #functions: readonly WasmFunction[];
  readonly #own: WasmFunction;
  readonly #dialect: Dialect;
  readonly #types: readonly ValueType[];
  readonly #labels: Label[] = [{ name: "", kind: "function", result: undefined, isUsed: false }];
  #lines: string[] = [];
  #stack: Value[] = [];
  #count = 0;
  /** False behind a branch, up to the end of the block. */
  #isReachable = true;

  constructor(functions: readonly WasmFunction[], own: WasmFunction, dialect: Dialect) {
    this.#functions = functions;
    this.#own = own;
    this.#dialect = dialect;
    this.#types = [...own.params, ...own.locals];
  }

  lines(): string[] {
    const { params, result, body, locals } = this.#own;
    for (const [index, type] of locals.entries()) this.#emit(this.#dialect.variable(`l${params.length + index}`, type));
    this.#run(body);
    if (this.#isReachable && result !== undefined) this.#emit(this.#dialect.return(this.#popNumber()));
    return this.#lines;
  }

  #emit(...lines: readonly string[]): void {
    this.#lines.push(...lines);
  }

  #pop(): Value {
    const value = this.#stack.pop();
    if (value === undefined) throw new Error("The stack is empty");
    return value;
  }

  /** The text of a value as a number. */
  #number(value: Value | undefined): string {
    if (value === undefined) throw new Error("The stack is empty");
    return value.type === "condition" ? this.#dialect.numberOf(value.text) : value.text;
  }

  #popNumber(): string {
    return this.#number(this.#pop());
  }

  /** That a value is not 0, or that it is. */
  #condition(value: Value, isTrue = true): string {
    if (value.type === "condition") return isTrue ? value.text : `!${value.text}`;
    return `${value.text} ${isTrue ? "!=" : "=="} 0`;
  }

  #push(text: string, type: Value["type"]): void {
    const name = `t${this.#count++}`;
    this.#emit(this.#dialect.constant(name, text));
    this.#stack.push({ text: name, type });
  }

  #pushLiteral(literal: bigint, type: ValueType): void {
    this.#stack.push({ text: this.#dialect.literal(literal, type), type, literal });
  }

  #pushLocal(index: number): void {
    this.#stack.push({ text: `l${index}`, type: this.#types[index] as ValueType });
  }

  /** Lines that `work` emits, without their standing here. */
  #apart(work: () => void): string[] {
    const before = this.#lines;
    this.#lines = [];
    work();
    const lines = this.#lines;
    this.#lines = before;
    return lines;
  }

  #run(body: readonly Instruction[]): void {
    for (const instruction of body) {
      if (!this.#isReachable) return;
      this.#translate(instruction);
    }
  }

  #translate(one: Instruction): void {
    if ("body" in one) {
      if (one.op === "if") this.#if(one);
      else this.#block(one.op, one.result, one.body);
    } else if ("offset" in one) this.#access(one.op, one.offset);
    else if ("value" in one) this.#pushLiteral(one.value, "i64");
    else if ("index" in one) this.#indexed(one);
    else this.#plain(one.op);
  }

  #indexed({ op, index }: Extract<Instruction, { index: number }>): void {
    switch (op) {
      case "br":
        this.#branch(index);
        this.#isReachable = false;
        break;
      case "br_if": {
        const condition = this.#condition(this.#pop());
        this.#emit(
          ...branchLines(
            condition,
            this.#apart(() => this.#branch(index)),
          ),
        );
        break;
      }
      case "call":
        this.#call(index);
        break;
      case "local.get":
        this.#pushLocal(index);
        break;
      case "local.set":
        this.#setLocal(index);
        break;
      case "local.tee":
        this.#setLocal(index);
        this.#pushLocal(index);
        break;
      default:
        this.#pushLiteral(BigInt(index), "i32");
    }
  }

  #plain(op: PlainOp): void {
    switch (op) {
      case "nop":
        break;
      case "drop":
        this.#pop();
        break;
      case "return":
        this.#branch(this.#labels.length - 1);
        this.#isReachable = false;
        break;
      case "unreachable":
        this.#emit(this.#dialect.trap());
        this.#isReachable = false;
        break;
      case "select":
        this.#select();
        break;
      case "memory.copy":
      case "memory.fill": {
        const [length, from, to] = [this.#popNumber(), this.#popNumber(), this.#popNumber()];
        const { memoryCopy, memoryFill } = this.#dialect;
        this.#emit(this.#dialect.statement((op === "memory.copy" ? memoryCopy : memoryFill)(to, from, length)));
        break;
      }
      default: {
        const { text, type } = this.#compute(op);
        this.#push(text, type);
      }
    }
  }

  /** A copy of what the stack has of locals that may change from here on: of this one, or of all. */
  #keepLocals(index?: number): void {
    for (const [depth, value] of this.#stack.entries()) {
      if (index === undefined ? !value.text.startsWith("l") : value.text !== `l${index}`) continue;
      this.#push(value.text, value.type);
      this.#stack[depth] = this.#pop();
    }
  }

  #setLocal(index: number): void {
    const value = this.#popNumber();
    this.#keepLocals(index);
    this.#emit(this.#dialect.assign(`l${index}`, value));
  }

  #call(index: number): void {
    const { params, result } = this.#functions[index] as WasmFunction;
    const args = params.map(() => this.#popNumber()).reverse();
    const text = this.#dialect.call(index, args);
    if (result === undefined) this.#emit(this.#dialect.statement(text));
    else this.#push(text, result);
  }

  #select(): void {
    const condition = this.#condition(this.#pop());
    const [otherwise, value] = [this.#pop(), this.#pop()];
    const result = this.#declare(value.type === "condition" ? "i32" : value.type);
    const lines = [value, otherwise].map((one) => [this.#dialect.assign(result.text, this.#number(one))]);
    this.#emit(...branchLines(condition, lines[0] ?? [], lines[1]));
    this.#stack.push(result);
  }

  /** Leaves a block, or goes on at the start of a loop. */
  #branch(depth: number): void {
    const label = this.#labels.at(-1 - depth) as Label;
    label.isUsed = true;
    const top = (): string => this.#number(this.#stack.at(-1));
    if (label.kind === "function") {
      this.#emit(this.#dialect.return(this.#own.result === undefined ? undefined : top()));
    } else if (label.kind === "loop") {
      this.#emit(this.#dialect.continue(label.name));
    } else {
      if (label.result !== undefined) this.#emit(this.#dialect.assign(label.result.text, top()));
      this.#emit(this.#dialect.break(label.name));
    }
  }

  #declare(type: ValueType): Value {
    const name = `t${this.#count++}`;
    this.#emit(this.#dialect.variable(name, type));
    return { text: name, type };
  }

  /** A label for a block that leaves this on the stack. */
  #label(kind: "block" | "loop", type: ValueType | undefined): Label {
    this.#keepLocals();
    return {
      name: `L${this.#count++}`,
      kind,
      result: type === undefined ? undefined : this.#declare(type),
      isUsed: false,
    };
  }

  /** The inside of a block: its lines, and whether its end is reached. */
  #inside(label: Label, body: readonly Instruction[]): { readonly lines: string[]; readonly isReachable: boolean } {
    const outside = this.#stack;
    this.#stack = [];
    this.#labels.push(label);
    const lines = this.#apart(() => {
      this.#run(body);
      if (this.#isReachable && label.result !== undefined)
        this.#emit(this.#dialect.assign(label.result.text, this.#popNumber()));
    });
    this.#labels.pop();
    this.#stack = outside;
    const isReachable = this.#isReachable;
    this.#isReachable = true;
    return { lines, isReachable };
  }

  #leave({ result }: Label, isReachable: boolean): void {
    this.#isReachable = isReachable;
    if (isReachable && result !== undefined) this.#stack.push(result);
  }

  #block(kind: "block" | "loop", type: ValueType | undefined, body: readonly Instruction[]): void {
    const label = this.#label(kind, type);
    const { lines, isReachable } = this.#inside(label, body);
    if (!label.isUsed) this.#emit(...lines);
    else if (kind === "loop") this.#emit(...this.#dialect.loop(label.name, lines, isReachable));
    else this.#emit(...this.#dialect.block(label.name, lines));
    this.#leave(label, isReachable || (kind === "block" && label.isUsed));
  }

  #if({ result, body, otherwise }: Extract<Instruction, { op: "if" }>): void {
    const condition = this.#pop();
    const label = this.#label("block", result);
    const yes = this.#inside(label, body);
    const no = this.#inside(label, otherwise);
    const lines =
      yes.lines.length === 0
        ? branchLines(this.#condition(condition, false), no.lines)
        : branchLines(this.#condition(condition), yes.lines, no.lines);
    this.#emit(...(label.isUsed ? this.#dialect.block(label.name, lines) : lines));
    this.#leave(label, yes.isReachable || no.isReachable || label.isUsed);
  }

  #access(op: string, offset: number): void {
    const [type, name = ""] = op.split(".") as [ValueType, string];
    const bits = Number(/\d+/.exec(name)?.[0] ?? type.slice(1));
    if (name.endsWith("_s")) throw new Error(`${op} is not translated`);
    if (name.startsWith("load")) {
      this.#push(this.#dialect.load(bits, this.#popNumber(), offset, type), type);
      return;
    }
    const [value, at] = [this.#popNumber(), this.#popNumber()];
    this.#emit(this.#dialect.statement(this.#dialect.store(bits, at, offset, value, type)));
  }

  /** What an instruction makes of what it takes from the stack. */
  #compute(op: PlainOp): { readonly text: string; readonly type: Value["type"] } {
    const [prefix = "", name = ""] = op.split(".");
    const { wrap, extend, memoryGrow, memorySize } = this.#dialect;
    if (prefix === "memory")
      return { text: name === "size" ? memorySize() : memoryGrow(this.#popNumber()), type: "i32" };
    const type = prefix as ValueType;
    switch (name) {
      case "eqz":
        return { text: this.#condition(this.#pop(), false), type: "condition" };
      case "wrap_i64":
        return { text: wrap(this.#popNumber()), type };
      case "extend_i32_u":
      case "extend_i32_s":
        return { text: extend(this.#popNumber(), name === "extend_i32_s"), type };
      case "clz":
      case "ctz":
      case "popcnt":
        return { text: this.#dialect.count(name, this.#popNumber(), type), type };
    }
    const [b, a] = [this.#pop(), this.#pop()];
    switch (name) {
      case "shl":
      case "shr_u":
      case "shr_s": {
        const most = type === "i32" ? 31 : 63;
        const by = b.literal === undefined ? this.#masked(b, most, type) : Number(b.literal & BigInt(most));
        return { text: this.#dialect.shift(name, this.#number(a), by, type), type };
      }
      case "rotl":
      case "rotr":
        return { text: this.#dialect.rotate(name, this.#number(a), this.#number(b), type), type };
      case "add":
      case "sub":
      case "mul":
      case "div_u":
      case "rem_u":
      case "and":
      case "or":
      case "xor":
        return { text: this.#dialect.arithmetic(name, this.#number(a), this.#number(b), type), type };
      default:
        return { text: this.#compare(name, a, b), type: "condition" };
    }
  }

  #masked(by: Value, most: number, type: ValueType): string {
    return this.#dialect.arithmetic("and", this.#number(by), this.#dialect.literal(BigInt(most), type), type);
  }

  #compare(name: string, a: Value, b: Value): string {
    const [comparison = "", sign] = name.split("_");
    const operator = COMPARISONS[comparison];
    if (operator === undefined) throw new Error(`${name} is not translated`);
    const side = (value: Value): string => (sign === "s" ? this.#dialect.signed(value) : this.#number(value));
    return `${side(a)} ${operator} ${side(b)}`;
  }
}
