/** Makes findings, and tells whether two readings found the same. */
import type { About, Finding } from "../records/finding.ts";

const NOTHING = {
  ...{ node: "", address: "", pool: "", namespace: "", pod: "", interface: "", owner: "", container: "" },
  isReleasable: false,
};

export function error(kind: string, text: string, remedy: string, about: About = {}): Finding {
  return { kind, level: "error", ...NOTHING, ...about, text, remedy };
}

export function warning(kind: string, text: string, remedy: string, about: About = {}): Finding {
  return { kind, level: "warning", ...NOTHING, ...about, text, remedy };
}

/** Two readings of one finding have the same key: what they name, and for findings about no address their text. */
export function keyOf({ kind, node, address, namespace, pod, interface: ifName, container, text }: Finding): string {
  return [kind, node, address, namespace, pod, ifName, ...(address === "" && container === "" ? [text] : [])].join(" ");
}
