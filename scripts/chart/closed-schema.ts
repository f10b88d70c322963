/** Settings and specs in the chart's schema: closed, as the schemas that decode them. */
import { z } from "zod";
import type { CelRule } from "../../host/lib/cel.ts";

/** Patterns of texts for which CEL has functions: roughly an address, and a network with a length that exists. */
const IPV4 = String.raw`[0-9]{1,3}(\.[0-9]{1,3}){3}`;
const IPV6 = "[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*";
const PATTERNS: Readonly<Record<string, string>> = {
  "isIP(self)": `^(${IPV4}|${IPV6})$`,
  "isCIDR(self)": `^(${IPV4}/([0-9]|[12][0-9]|3[0-2])|${IPV6}/([0-9]|[1-9][0-9]|1[01][0-9]|12[0-8]))$`,
};

/** Returns the pattern that a text must match if the rule holds; undefined if the rule says something else. */
function patternOf({ rule }: CelRule): string | undefined {
  const [, regExp] = /^(?:self != '' && )?self\.matches\(r'([^']*)'\)(?: && |$)/.exec(rule) ?? [];
  return regExp ?? PATTERNS[rule];
}

/** Replaces CEL rules, which only the API server knows, by equivalents of JSON Schema. */
function override({ jsonSchema }: { readonly jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  const rules = (jsonSchema["x-kubernetes-validations"] ?? []) as readonly CelRule[];
  const pattern = rules.map(patternOf).find((each) => each !== undefined);
  if (jsonSchema.type === "string" && pattern !== undefined) jsonSchema.pattern = pattern;
  delete jsonSchema["x-kubernetes-validations"];
}

/** Returns the schema of an object that is passed on as it is, described as `decoder` wants it. */
export function closed(title: string, decoder: z.ZodType) {
  const { $schema: _, ...described } = z.toJSONSchema(decoder, { io: "input", target: "draft-7", override });
  return z.record(z.string(), z.unknown()).meta({ ...described, title });
}
