/**
 * YAML text to plain values, with the place of the first fault; what YAML merely warns of is a fault, too.
 * Called for manifests and for `conf.yml`.
 */
import { LineCounter, parseAllDocuments } from "yaml";
import { messageOf } from "../lib/describe.ts";
import { ConfigError } from "./config-error.ts";

/** One document of a text; `line` is where it begins, from 1. */
export interface YamlDocument {
  readonly value: unknown;
  readonly line: number;
}

function malformed(source: string, error: unknown): never {
  const [first = ""] = messageOf(error).split("\n");
  const got = first.replace(/:$/, "");
  throw new ConfigError(source, [{ path: "", got, wanted: "well-formed YAML" }], `Malformed YAML: ${got}`);
}

/**
 * The documents of a text, without those that hold nothing. Throws ConfigError: a key given twice, an unknown tag,
 * an alias to nothing or too many of them are faults like any other.
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
