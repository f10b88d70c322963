/** Parses YAML to plain values. Errors have line and column; warnings of the parser are errors. */

import { Composer, isMap, isPair, isScalar, isSeq, LineCounter, type Node, Parser, parseAllDocuments } from "yaml";
import { messageOf } from "../lib/describe.ts";
import { tryOr } from "../lib/try-or.ts";
import { ConfigError } from "./config-error.ts";

const OPTIONS = { stringKeys: true } as const;

/** The nodes of a text's documents, with positions, and its lines. */
interface Positions {
  readonly contents: readonly unknown[];
  readonly lines: LineCounter;
}

/** Returns a function that reads them at its first call: they take several times the memory of the values. */
function openPositions(text: string): () => Positions {
  let found: Positions | undefined;
  return () => {
    if (found !== undefined) return found;
    const lines = new LineCounter();
    const documents = parseAllDocuments(text, { ...OPTIONS, lineCounter: lines });
    found = { contents: Array.from(documents, ({ contents }) => contents), lines };
    return found;
  };
}

/** One document of a text; `line` is its first line, counted from 1. */
class YamlDocument {
  readonly value: unknown;
  readonly line: number;
  readonly #positions: () => Positions;
  readonly #index: number;

  constructor(value: unknown, line: number, positions: () => Positions, index: number) {
    this.value = value;
    this.line = line;
    this.#positions = positions;
    this.#index = index;
  }

  /** Returns the line of the field of a mismatch; for a missing field that of the innermost one around it. */
  lineOf(path: string): number {
    const { contents, lines } = this.#positions();
    let node = contents[this.#index];
    let line = this.line;
    for (const [, index, quoted, plain = ""] of path.matchAll(/\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]|([^.[\]]+)/g)) {
      const key = quoted === undefined ? plain : tryOr(() => String(JSON.parse(quoted)), quoted);
      const inner = index === undefined ? findPair(node, key) : findItem(node, Number(index));
      if (inner === undefined) return line;
      line = lineAt(lines, inner.place);
      node = inner.value;
    }
    return line;
  }

  /** Decodes the value; `source` names the text. A ConfigError has the line of its first field. */
  decode<T>(source: string, decode: (value: unknown, source: string) => T): T {
    const place = `${source}, line ${this.line}`;
    try {
      return decode(this.value, place);
    } catch (error) {
      if (!(error instanceof ConfigError) || !error.source.startsWith(place)) throw error;
      const rest = error.source.slice(place.length);
      throw error.at(`${source}, line ${this.lineOf(placeIn(rest, error.path))}${rest}`);
    }
  }
}

/** The path in the document for an error's source that continues with `rest`: an item, or a text in a ConfigMap. */
function placeIn(rest: string, path: string): string {
  const item = /^, item (\d+)/.exec(rest)?.[1];
  const key = /, key ("[^"]+")/.exec(rest)?.[1];
  const inner = key === undefined ? path : `data[${key}]`;
  return item === undefined ? inner : `items[${item}].${inner}`;
}

/** A value inside a node, and the node that has its line. */
interface Inner {
  readonly place: unknown;
  readonly value: unknown;
}

function findPair(node: unknown, key: string): Inner | undefined {
  if (!isMap(node)) return undefined;
  const pair = node.items.find((each) => isPair(each) && isScalar(each.key) && String(each.key.value) === key);
  return pair && { place: pair.key, value: pair.value };
}

function findItem(node: unknown, index: number): Inner | undefined {
  const item = isSeq(node) ? node.items[index] : undefined;
  return item === undefined ? undefined : { place: item, value: item };
}

function lineAt(lines: LineCounter, node: unknown): number {
  return lines.linePos((node as Node | null | undefined)?.range?.[0] ?? 0).line;
}

function malformed(source: string, error: unknown): never {
  const [first = ""] = messageOf(error).split("\n");
  const got = first.replace(/:$/, "");
  throw new ConfigError(source, [{ path: "", got, wanted: "well-formed YAML" }], `Malformed YAML: ${got}`);
}

/**
 * Returns the documents of a text, without empty ones. Throws ConfigError, also for a repeated key, an unknown tag,
 * an unresolved alias or too many aliases.
 */
export function parseYaml(text: string, source: string): YamlDocument[] {
  const parsed: YamlDocument[] = [];
  const lines = new LineCounter();
  const positions = openPositions(text);
  let index = 0;
  // One after the other, as the nodes of a long text would fill the heap.
  for (const document of new Composer(OPTIONS).compose(new Parser(lines.addNewLine).parse(text))) {
    if (document.errors.length + document.warnings.length > 0) malformed(source, firstFault(text));
    const value = toValue(document, source);
    if (value !== null) parsed.push(new YamlDocument(value, lineAt(lines, document.contents), positions, index));
    index++;
  }
  return parsed;
}

/** Returns the first error or warning of the text, with its place. */
function firstFault(text: string): unknown {
  for (const { errors, warnings } of parseAllDocuments(text, OPTIONS)) {
    const [fault] = [...errors, ...warnings];
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function toValue(document: { toJS(): unknown }, source: string): unknown {
  try {
    return document.toJS();
  } catch (error) {
    return malformed(source, error);
  }
}
