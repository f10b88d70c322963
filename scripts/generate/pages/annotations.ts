/** The page docs/annotations.md, out of the schemas that decode the annotations. */
import {
  type AnnotationSchema,
  MAX_LISTED_NAMES,
  MAX_PATTERNS,
  MAX_POD_NICS,
  MAX_POD_ROUTES,
  NAMESPACE_ANNOTATIONS,
  POD_ANNOTATIONS,
} from "../../../host/config/annotation-schemas.ts";
import { ANNOTATION_PREFIX } from "../../../host/config/annotations.ts";
import { referenceTable } from "./reference-table.ts";

const INTRODUCTION = `# Annotations

What pods and namespaces may ask for. Every value is text; where the format is JSON, the text is JSON. A value that cannot be read prevents
the pod, with CNI error code 102 and a message that names the annotation, the place, what was found and what is wanted. So does an unknown key, and an
unknown annotation under \`${ANNOTATION_PREFIX}\`: a typing mistake must not become a default.

Which of them counts: \`subnets\`, then \`subnet\`, \`ippools\`, \`ippool\`, the namespace's pools, the pools named in the CNI configuration,
pools with \`default: true\`. The first that is present replaces the later ones whole; families of two of them are never mixed.

A pool name may be a pattern: \`*\` any text, \`?\` one character, \`[a-c]\` one of them, \`[!a-c]\` any other. Patterns are matched with the pools of their family,
sorted by name; one that matches nothing is an error. \`ipv4\` and \`ipv6\` are required while \`enableIPv4\` and \`enableIPv6\` are true, unless
\`allowSingleFamily\` lets a pod take one of two.

An annotation has at most ${MAX_POD_NICS} NICs, ${MAX_LISTED_NAMES} names in each list, ${MAX_PATTERNS} different patterns in all, and ${MAX_POD_ROUTES} routes.

Beside its own, Berth reads \`k8s.v1.cni.cncf.io/networks\` and \`v1.multus-cni.io/default-network\`.`;

function overview(annotations: Readonly<Record<string, AnnotationSchema>>): string {
  const rows = Object.entries(annotations).map(([key, { format, meaning }]) => {
    return `| \`${ANNOTATION_PREFIX}${key}\` | ${format} | ${meaning} |`;
  });
  return ["| Annotation | Format | Meaning |", "|---|---|---|", ...rows].join("\n");
}

function details(annotations: Readonly<Record<string, AnnotationSchema>>): string[] {
  return Object.entries(annotations).flatMap(([key, { schema }]) => {
    const table = referenceTable(schema);
    return table === "" ? [] : [`### \`${ANNOTATION_PREFIX}${key}\``, table];
  });
}

export function annotationsPage(): string {
  const sections = [
    INTRODUCTION,
    "## On pods",
    overview(POD_ANNOTATIONS),
    ...details(POD_ANNOTATIONS),
    "## On namespaces",
    "Each value is a list of pool names or patterns, tried in the order written.",
    overview(NAMESPACE_ANNOTATIONS),
  ];
  return `${sections.join("\n\n")}\n`;
}
