/** The page docs/annotations.md, out of the schemas that decode the annotations. */
import {
  type AnnotationSchema,
  MAX_LISTED_NAMES,
  MAX_PATTERNS,
  MAX_POD_NICS,
  MAX_POD_ROUTES,
  NAMESPACE_ANNOTATIONS,
  POD_ANNOTATIONS,
  SERVICE_ANNOTATIONS,
} from "../../../host/config/annotation-schemas.ts";
import { ANNOTATION_PREFIX } from "../../../host/config/annotations.ts";
import { referenceTable } from "./reference-table.ts";

const INTRODUCTION = `# Annotations

Annotations of pods, namespaces and Services. An invalid value, an unknown key, or an unknown annotation under \`${ANNOTATION_PREFIX}\` refuses the pod with
CNI error code 102 and a message that names annotation, place, found and expected value. Which one counts, and patterns:
[selection.md](selection.md#order-of-precedence). \`ipv4\` and \`ipv6\` are required while \`enableIPv4\` and \`enableIPv6\` are true, unless
\`allowSingleFamily\` is. An annotation has at most ${MAX_POD_NICS} NICs, ${MAX_LISTED_NAMES} names in each list, ${MAX_PATTERNS} different patterns in all, and ${MAX_POD_ROUTES} routes.

Berth also reads \`k8s.v1.cni.cncf.io/networks\` and \`v1.multus-cni.io/default-network\`, as Multus does: unknown keys are ignored, keys have any case, of
a repeated one the last value counts. An entry that cannot be read refuses its own NIC, and a text that cannot be read all NICs but the first.`;

const OTHERS = `## Annotations of other IPAMs

Berth ignores them. A pod that it serves and that has some, but none of Berth's, gets the Warning event \`AnnotationIgnored\`.
[\`berthctl convert\`](migration.md) writes Berth's.

| Other IPAM | Its annotation | Berth's |
|---|---|---|
| Spiderpool | \`ipam.spidernet.io/ippool\`, \`ippools\` | \`ipam.vendor.io/ippool\`, \`ippools\`: the same form |
| Spiderpool | \`ipam.spidernet.io/subnet\`, \`subnets\`, \`ippool-ip-number\`, \`ippool-reclaim\` | \`ipam.vendor.io/subnet\` and the others of its name: [subnets](subnets.md) |
| Spiderpool | \`ipam.spidernet.io/routes\` | \`ipam.vendor.io/routes\` |
| Calico | \`cni.projectcalico.org/ipv4pools\`, \`ipv6pools\` | \`ipam.vendor.io/ippool\`, with names of pools in place of networks |
| Calico | \`cni.projectcalico.org/ipAddrs\`, \`ipAddrsNoIpam\` | [\`ipam.vendor.io/ips\`](fixed-addresses.md) |
| Whereabouts | \`whereabouts.cni.cncf.io/…\` | \`ipam.vendor.io/ippool\` |

Calico's are reported for the pod's first NIC only: beside Calico they concern another NIC.`;

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
    "## On Services",
    "Both together, on a Service without a selector ([services.md](services.md)).",
    overview(SERVICE_ANNOTATIONS),
    OTHERS,
  ];
  return `${sections.join("\n\n")}\n`;
}
