/** THIRD_PARTY_LICENSES: each licence text once, under the components that it covers. */
import type { Component } from "./component.ts";

const RULE = "=".repeat(80);

/** The line of a component above its licence text. */
export function headingOf({ name, version, license }: Pick<Component, "name" | "version" | "license">): string {
  return [name, version, `(${license})`].filter(Boolean).join(" ");
}

/** Throws for a component without a text. */
export function writeNotices(components: readonly Component[]): Buffer {
  const groups = new Map<string, Set<string>>();
  for (const component of components) {
    const { name, text, source } = component;
    if (text.trim() === "") throw new Error(`There is no licence text of ${name}`);
    const lines = groups.get(text) ?? new Set();
    groups.set(text, lines.add(headingOf(component)));
    if (source !== undefined) lines.add(`    source code: ${source}`);
  }
  const sections = [...groups].map(([text, lines]) => `${[RULE, ...lines, RULE].join("\n")}\n\n${text}\n`);
  const title =
    "Berth is licensed under Apache-2.0 (LICENSE). It contains the software below, each under the licence that follows it.\n";
  return Buffer.from([title, ...sections].join("\n"));
}
