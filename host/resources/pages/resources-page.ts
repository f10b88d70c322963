/**
 * The page docs/resources.md, out of the schemas that decode the resources and the settings.
 * Called by the test that compares the committed page with it.
 * Effects: none.
 */
import type { z } from "zod";
import { ipamConfSchema } from "../../config/ipam-conf.ts";
import { vendorConfSchema } from "../../config/vendor-conf.ts";
import { coordinatorSchema } from "../coordinator.ts";
import { API_VERSION } from "../fields/metadata.ts";
import { ipPoolSchema } from "../ip-pool.ts";
import { MAX_RANGES, MAX_ROUTES } from "../limits.ts";
import { reservedIpSchema } from "../reserved-ip.ts";
import { subnetSchema } from "../subnet.ts";
import { referenceTable } from "./reference-table.ts";

interface Section {
  readonly title: string;
  readonly text: string;
  readonly schema: z.ZodType;
}

const SECTIONS: readonly Section[] = [
  {
    title: "IPPool",
    text: `A set of addresses of one subnet, and who may use it. Cluster-wide. Ranges lie inside the subnet and do not overlap inside their list (at most ${MAX_RANGES} of them,
at most ${MAX_ROUTES} routes). Never handed out: the network and the broadcast address of an IPv4 subnet wider than /31, the gateway, excluded and
reserved addresses. The first address of an IPv6 subnet is handed out like any other; exclude it where routers use it as their anycast address (RFC 4291 §2.6.1).
Two pools of one address space have equal or disjoint subnets; with equal ones their ranges may share addresses, each of which is still
given out once. Name lists win over the matching affinity. Editing a pool changes only new pods.`,
    schema: ipPoolSchema.shape.spec,
  },
  {
    title: "Subnet",
    text: "Addresses out of which pools are generated. Cluster-wide.",
    schema: subnetSchema.shape.spec,
  },
  {
    title: "ReservedIP",
    text: "Addresses that no pool of the address space hands out. Cluster-wide.",
    schema: reservedIpSchema.shape.spec,
  },
  {
    title: "Coordinator",
    text: `The cluster's settings of the coordinator plugin. Cluster-wide; the one named \`default\` counts. The coordinator's entry in a network definition
takes the same keys without \`podCIDRType\`, and what it says wins, key by key. Modes: \`underlay\`, all NICs of the pod are underlay NICs and a veth pair leads to the
host; \`overlay\`, the first NIC belongs to an overlay network, through which services are reached; \`auto\` finds out; \`disable\` does nothing.`,
    schema: coordinatorSchema.shape.spec,
  },
  {
    title: "The `ipam` object in a network definition",
    text: "Nothing else is accepted in it: neither the runtime nor Multus nor the main plugins add keys here.",
    schema: ipamConfSchema,
  },
  {
    title: "ConfigMap `vendor-conf`, key `conf.yml`",
    text: "The service's settings, as YAML. A change takes effect without a restart; a bad value keeps the last good ones and is reported. One of the two families is enabled.",
    schema: vendorConfSchema,
  },
];

const INTRODUCTION = `# Resources and settings

Berth's own kinds are of \`apiVersion: ${API_VERSION}\`. In the embedded mode they stand as YAML or JSON in a watched directory, several documents
to a file if you like, or a \`List\` as \`kubectl get -o yaml\` prints it; there Namespace, Pod and the ConfigMap \`vendor-conf\` (\`apiVersion: v1\`) are
read, too. An unknown key in a \`spec\` is an error that names the nearest known one, and so is a key given twice.

Types: a *CIDR* is a network without host bits (\`10.6.0.0/16\`), a *range* an address or \`first-last\`, a *duration* is written \`30s\`, \`200ms\` or \`1h30m\`, a
*label selector* is that of Kubernetes (\`matchLabels\`, \`matchExpressions\`).`;

export function resourcesPage(): string {
  const sections = SECTIONS.map(({ title, text, schema }) => `## ${title}\n\n${text}\n\n${referenceTable(schema)}`);
  return `${[INTRODUCTION, ...sections].join("\n\n")}\n`;
}
