/** The problems that docs/findings.md lists, and the findings about them. */
import { invariant } from "../lib/invariant.ts";
import { type Finding, findingRecord } from "../records/finding.ts";

/** A kind of finding may have several problems. `{name}` in their texts stands for a value. */
export type Problem = Pick<Finding, "kind" | "level" | "text" | "remedy">;

/** The subject of a finding, and its differences from the defaults. */
type About = Partial<Omit<Finding, "kind" | "text">>;

/** The names in braces of a text. */
type Names<Text extends string> = Text extends `${string}{${infer Name}}${infer Rest}`
  ? Exclude<Name, `${string} ${string}`> | Names<Rest>
  : never;

type Values<Name extends string> = Readonly<Record<Name, string | number | bigint>>;

const defineAs =
  (level: Finding["level"]) =>
  <Text extends string, Remedy extends string>(kind: string, text: Text, remedy: Remedy) => {
    const find = (values: Values<Names<Text> | Names<Remedy>>, about: About = {}): Finding => {
      const all = new Map<string, unknown>(Object.entries(values));
      return findingRecord.parse({ kind, level, remedy: fill(remedy, all), ...about, text: fill(text, all) });
    };
    return Object.assign(find, { kind, level, text, remedy });
  };

/** Defines a problem; its findings are made by calling it. */
export const error = defineAs("error");
export const warning = defineAs("warning");
export const unknown = defineAs("unknown");

function fill(text: string, values: ReadonlyMap<string, unknown>): string {
  return text.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    invariant(values.has(name), `No value for ${name} in: ${text}`);
    return String(values.get(name));
  });
}

/** Two readings of one finding have the same key: its subject, and without an address its text. */
export function keyOf({ kind, node, address, namespace, pod, interface: ifName, container, text }: Finding): string {
  return [kind, node, address, namespace, pod, ifName, ...(address === "" && container === "" ? [text] : [])].join(" ");
}
