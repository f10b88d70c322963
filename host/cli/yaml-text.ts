/** Values as YAML. Loaded only when it is asked for. */
import { Document, Scalar, visit } from "yaml";
import { escapeUnprintable } from "./text.ts";

/** Texts with unprintable characters are quoted, because only quoted text has escapes. */
export function formatYaml(value: unknown): string {
  const document = new Document(value, { aliasDuplicateObjects: false });
  visit(document, {
    Scalar: (_, node) => {
      if (typeof node.value === "string" && escapeUnprintable(node.value.replaceAll("\n", "\0")) !== node.value)
        node.type = Scalar.QUOTE_DOUBLE;
    },
  });
  return escapeUnprintable(document.toString({ lineWidth: 0 }));
}
