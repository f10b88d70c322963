/** The page docs/resources.md, out of the schemas that decode the resources and the settings. */

import type { z } from "zod";
import { ipamConfSchema } from "../../../host/config/ipam-conf.ts";
import { vendorConfSchema } from "../../../host/config/vendor-conf.ts";
import { coordinatorSchema } from "../../../host/resources/coordinator.ts";
import { MAX_RANGES, MAX_ROUTES } from "../../../host/resources/fields/address-spec.ts";
import { API_VERSION } from "../../../host/resources/fields/metadata.ts";
import { ipAllocationSchema, OWNER_LABEL, POD_UID_LABEL } from "../../../host/resources/ip-allocation.ts";
import { ipPoolSchema } from "../../../host/resources/ip-pool.ts";
import { reservedIpSchema } from "../../../host/resources/reserved-ip.ts";
import { subnetSchema } from "../../../host/resources/subnet.ts";
import { ipPoolUsageStatus } from "../../../host/resources/usage/ip-pool-usage.ts";
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
    title: "IPPoolUsage",
    text: `How much of the pool of the same name is in use, and which of its addresses. Cluster-wide; written by the controller alone, out of the allocations, and owned by the pool. It has a
\`status\` and no \`spec\`. It may be late, and is never more than a hint: an agent that misses reads it to know where to look next. \`total\` - \`free\` = \`bound\` + \`cooling\` + \`kept\` +
\`quarantined\` - \`outside\` + \`others\`, as long as no allocation has an address of the ranges that is not to be handed out.`,
    schema: ipPoolUsageStatus,
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
    title: "IPAllocation",
    text: `One address that is not free. Cluster-wide; written by Berth alone, in a cluster only. Its name is the address, so that whoever creates it has the address: IPv6 in eight groups of
four digits with dashes between, and in a named address space \`<address>.<space>\`. Labels: \`${POD_UID_LABEL}\` has the UID of the first holder,
\`${OWNER_LABEL}\` a hash of the workload's namespace, UID and member. States and transitions: [allocation.md](allocation.md). Unknown keys are passed over, so that an older agent reads
what a newer one wrote.`,
    schema: ipAllocationSchema.shape.spec,
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

In a cluster they are custom resources; \`deploy/crds\` is generated from the same schemas as these tables. \`kubectl get berth\` lists them all.

| Checked | By |
|---|---|
| types, required keys, list and text lengths, unknown keys (with \`--validate=strict\`, kubectl's default) | the API server, in its own words |
| canonical form of networks, form of addresses, names, labels and durations, both ends of a range inside the subnet, families, gateway, next hops, a second route to one network, two spellings of one setting, what does not change | the API server, by rules in CEL with the words of the embedded mode |
| an allocation's name is its address; holders, workload and quarantine go with its state; another node takes over only what cools, is in quarantine, or is of the same member of a workload | the API server, by rules in CEL |
| order of the two ends of a range, overlap of ranges inside a list, and all that spans objects: subnets that partly overlap, ranges that share addresses | the agent: reported as a condition and refused at allocation |

Where a rule compares the entries of a list with another field, the API server names the list, the embedded mode the entry. There is no webhook. A key whose value is null is absent.

Types: a *CIDR* is a network without host bits (\`10.6.0.0/16\`), a *range* an address or \`first-last\`, a *duration* is written \`30s\`, \`200ms\` or \`1h30m\`, a
*label selector* is that of Kubernetes (\`matchLabels\`, \`matchExpressions\`).`;

export function resourcesPage(): string {
  const sections = SECTIONS.map(({ title, text, schema }) => `## ${title}\n\n${text}\n\n${referenceTable(schema)}`);
  return `${[INTRODUCTION, ...sections].join("\n\n")}\n`;
}
