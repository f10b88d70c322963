/** Parses JSON of people. Errors have line and column; a repeated key is one, though JSON.parse keeps the last. */
import { describeValue } from "./describe.ts";

/** Longest part of malformed JSON that an error shows: UTF-16 units. */
const MAX_SHOWN_JSON = 12;

/** `line` and `column` count from 1, in UTF-16 units; `found` and `wanted` are phrases. */
export class JsonError extends Error {
  override readonly name = "JsonError";
  readonly line: number;
  readonly column: number;
  readonly found: string;
  readonly wanted: string;

  constructor(text: string, offset: number, found: string, wanted: string) {
    const before = text.slice(0, offset).split("\n");
    const line = before.length;
    const column = (before.at(-1) ?? "").length + 1;
    super(`Malformed JSON at line ${line}, column ${column}: found ${found}, want ${wanted}`);
    this.line = line;
    this.column = column;
    this.found = found;
    this.wanted = wanted;
  }
}

const BLANK = /[ \t\n\r]*/y;
const TOKEN =
  /[{}[\],:]|"(?:[^"\\\p{Cc}]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|[\u007f-\u009f])*"|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null/uy;

/** The suffix of a repeated key. */
const REPEATED = /\0[0-9]+$/;

type Expected =
  | "a value"
  | 'a value or "]"'
  | "a key in quotes"
  | 'a key in quotes or "}"'
  | '":"'
  | '"," or "}"'
  | '"," or "]"'
  | "the end";

/** Checks the tokens of RFC 8259 without recursion, so that deep nesting cannot overflow the stack. */
class Checker {
  readonly text: string;
  /** Default: a repeated key is an error. Called with the end of its token, also of a key that looks like one. */
  readonly onRepeated: ((end: number) => void) | undefined;
  offset = 0;
  expected: Expected = "a value";
  /** The open brackets; `keys` are the object's keys so far, undefined for a list. */
  readonly open: { readonly keys: Set<string> | undefined }[] = [];

  constructor(text: string, onRepeated?: (end: number) => void) {
    this.text = text;
    this.onRepeated = onRepeated;
  }

  check(): void {
    while (true) {
      BLANK.lastIndex = this.offset;
      this.offset += BLANK.exec(this.text)?.[0].length ?? 0;
      if (this.expected === "the end" && this.offset === this.text.length) return;
      TOKEN.lastIndex = this.offset;
      const token = TOKEN.exec(this.text)?.[0];
      if (token === undefined) this.fail();
      this.accept(token);
      this.offset += token.length;
    }
  }

  accept(token: string): void {
    const { expected } = this;
    if ((token === "}" || token === "]") && expected.endsWith(`"${token}"`)) this.close();
    else if (expected.startsWith("a value")) this.acceptValue(token);
    else if (expected.startsWith("a key")) this.acceptKey(token);
    else if (expected === '":"' && token === ":") this.expected = "a value";
    else if (expected === '"," or "}"' && token === ",") this.expected = "a key in quotes";
    else if (expected === '"," or "]"' && token === ",") this.expected = "a value";
    else this.fail();
  }

  acceptValue(token: string): void {
    if (token === "{" || token === "[") {
      this.open.push({ keys: token === "{" ? new Set() : undefined });
      this.expected = token === "{" ? 'a key in quotes or "}"' : 'a value or "]"';
      return;
    }
    if ("}],:".includes(token)) this.fail();
    this.afterValue();
  }

  acceptKey(token: string): void {
    if (!token.startsWith('"')) this.fail();
    const key = String(JSON.parse(token));
    const keys = this.open.at(-1)?.keys;
    const isRepeated = keys?.has(key) === true;
    if (isRepeated && this.onRepeated === undefined)
      this.fail(`the key ${describeValue(key)} a second time`, "each key once");
    if (isRepeated || REPEATED.test(key)) this.onRepeated?.(this.offset + token.length);
    keys?.add(key);
    this.expected = '":"';
  }

  close(): void {
    this.open.pop();
    this.afterValue();
  }

  afterValue(): void {
    const around = this.open.at(-1);
    this.expected = around === undefined ? "the end" : around.keys === undefined ? '"," or "]"' : '"," or "}"';
  }

  fail(found?: string, wanted?: string): never {
    const rest = this.text.slice(this.offset, this.offset + MAX_SHOWN_JSON);
    const shown = rest === "" ? "the end of the text" : describeValue(rest);
    throw new JsonError(this.text, this.offset, found ?? shown, wanted ?? this.expected);
  }
}

/** Returns the value. Throws {@link JsonError} if the text is not one JSON value. */
export function parseJson(text: string): unknown {
  new Checker(text).check();
  return JSON.parse(text);
}

/** Like {@link parseJson}, and keeps repeated keys: {@link membersOf} returns them in the order of the text. */
export function parseJsonWithRepeats(text: string): unknown {
  const parts: string[] = [];
  let start = 0;
  new Checker(text, (end) => {
    parts.push(text.slice(start, end - 1), `\\u0000${parts.length}`);
    start = end - 1;
  }).check();
  return JSON.parse([...parts, text.slice(start)].join(""));
}

export function membersOf(object: object): (readonly [key: string, value: unknown])[] {
  return Object.entries(object).map(([key, value]) => [key.replace(REPEATED, ""), value] as const);
}
