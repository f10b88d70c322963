/** Parses YAML to plain values. Errors have line and column; warnings of the parser are errors. */
import { LineCounter, parseAllDocuments } from "yaml";
import { messageOf } from "../lib/describe.ts";
import { ConfigError } from "./config-error.ts";

/** One document of a text; `line` is its first line, counted from 1. */
interface YamlDocument {
  readonly value: unknown;
  readonly line: number;
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
  const lineCounter = new LineCounter();
  for (const document of parseAllDocuments(text, { stringKeys: true, lineCounter })) {
    const [fault] = [...document.errors, ...document.warnings];
    if (fault !== undefined) malformed(source, fault);
    const { line } = lineCounter.linePos(document.contents?.range?.[0] ?? 0);
    const value = toValue(document, source);
    if (value !== null) parsed.push({ value, line });
  }
  return parsed;
}

function toValue(document: { toJS(): unknown }, source: string): unknown {
  try {
    return document.toJS();
  } catch (error) {
    return malformed(source, error);
  }
}
