/** The page docs/resources.md, from the schemas that decode the resources and the settings. */

import type { z } from "zod";
import { ipamConfSchema } from "../../../host/config/ipam-conf.ts";
import { vendorConfSchema } from "../../../host/config/vendor-conf.ts";
import { formatPrefix } from "../../../host/net/prefix.ts";
import { SPECIAL_PREFIXES } from "../../../host/net/special.ts";
import { coordinatorSchema } from "../../../host/resources/coordinator.ts";
import { MAX_RANGES, MAX_ROUTES } from "../../../host/resources/fields/address-spec.ts";
import { API_VERSION } from "../../../host/resources/fields/metadata.ts";
import { subnetPoolSpec } from "../../../host/resources/fields/subnet-pool.ts";
import { ipAllocationSchema, OWNER_LABEL, POD_UID_LABEL } from "../../../host/resources/ip-allocation.ts";
import { ipPoolSchema } from "../../../host/resources/ip-pool.ts";
import { ipPoolUsageStatus } from "../../../host/resources/ip-pool-usage.ts";
import { reservedIpSchema } from "../../../host/resources/reserved-ip.ts";
import { subnetSchema } from "../../../host/resources/subnet.ts";
import { referenceTable } from "./reference-table.ts";

interface Section {
  readonly title: string;
  readonly text: string;
  readonly schema: z.ZodType;
  /** A schema with fields in common, which its own section describes. */
  readonly described?: z.ZodType;
}

const SECTIONS: readonly Section[] = [
  {
    title: "IPPool",
    text: `Addresses of one subnet, and which pods may use them. Cluster-wide. At most ${MAX_RANGES} ranges, which do not overlap, and ${MAX_ROUTES} routes. Never
handed out: network and broadcast address of an IPv4 subnet wider than /31, routers, excluded and reserved addresses, and what the node
has ([never allocated](allocation.md#never-allocated)). The first address of an IPv6 subnet is handed out; exclude it where routers use it as
anycast address (RFC 4291 §2.6.1). Two pools of one address space have equal or disjoint subnets; with equal ones they may share addresses, each of
which is given out once. Edits affect only new pods.`,
    schema: ipPoolSchema.shape.spec,
  },
  {
    title: "Subnet",
    text: "Addresses from which pools are generated. Cluster-wide. The fields from `ipVersion` to `addressSpace` are those of an [IPPool](#ippool). In addition:",
    schema: subnetSchema.shape.spec,
    described: ipPoolSchema.shape.spec,
  },
  {
    title: "ReservedIP",
    text: "Addresses that no pool of the address space hands out. Cluster-wide.",
    schema: reservedIpSchema.shape.spec,
  },
  {
    title: "Coordinator",
    text: `The cluster's settings of the [coordinator](coordinator.md). Cluster-wide; only the one named \`default\` counts. The coordinator's entry in a network definition takes
the same keys except \`podCIDRType\`, and wins, key by key.`,
    schema: coordinatorSchema.shape.spec,
  },
  {
    title: "The `ipam` object in a network definition",
    text: "Other keys are refused: neither runtime, Multus nor main plugins add keys here.",
    schema: ipamConfSchema,
  },
  {
    title: "ConfigMap `vendor-conf`, key `conf.yml`",
    text: "The settings, as YAML. A change applies without a restart; without a valid one the last stays, which is reported; `{}` means the defaults. At least one family must be enabled.",
    schema: vendorConfSchema,
  },
];

/** Kinds that Berth alone writes. */
const WRITTEN: readonly Section[] = [
  { title: "IPPool, `spec.generated`", text: "Of a pool generated out of a Subnet.", schema: subnetPoolSpec },
  {
    title: "IPPoolUsage",
    text: `How much of the pool of the same name is in use, and which addresses. Cluster-wide; owned by the pool, written by the controller alone from the allocations.
It has a \`status\` and no \`spec\`. It may be late and is only a hint for an agent's search. \`total\` - \`free\` = \`bound\` + \`cooling\` + \`kept\` +
\`quarantined\` - \`outside\` + \`others\`, unless an address that must not be handed out has an allocation.`,
    schema: ipPoolUsageStatus,
  },
  {
    title: "IPAllocation",
    text: `One address that is not free. Cluster-wide; only in a cluster, written by Berth alone. Its name is the address, so its creator has the address: IPv6
in eight groups of four digits with dashes between, in a named address space \`<address>.<space>\`. Labels: \`${POD_UID_LABEL}\` is the first holder's UID,
\`${OWNER_LABEL}\` a hash of the workload's namespace, UID and member. States: [allocation](allocation.md). Unknown keys are ignored, so that
an older agent reads what a newer one wrote.`,
    schema: ipAllocationSchema.shape.spec,
  },
];

const INTRODUCTION = `# Resources and settings

Berth's kinds have \`apiVersion: ${API_VERSION}\`. In a cluster they are custom resources; \`kubectl get berth\` lists them all, \`kubectl
explain\` has the texts of these tables. In embedded mode they are YAML or JSON in a watched directory, also several documents in a file,
or a \`List\` of kubectl; Namespace, Pod and the ConfigMap \`vendor-conf\` (\`apiVersion: v1\`) are read there too. An
unknown or duplicate key in a \`spec\` is an error. A key whose value is null counts as absent.

The API server checks all that one object says, without a webhook. The agent checks the order of a range's ends, overlap of ranges in a list, and what
spans objects, such as partly overlapping subnets: a condition reports it, and allocations are refused.

IPAllocations, one for each address that is not free, and IPPoolUsages are [written by Berth alone](develop/resources.md).

Types: a *CIDR* is a network without host bits (\`10.6.0.0/16\`), a *range* an address or \`first-last\`, a *duration* is written \`30s\`, \`200ms\` or \`1h30m\`, a
*label selector* is Kubernetes' (\`matchLabels\`, \`matchExpressions\`).

## Special addresses

No pod can have an address of ${SPECIAL_PREFIXES.map(formatPrefix).join(", ")}: the \`subnet\` of a pool or Subnet is none of these
networks, and no range begins or ends in one. Their addresses inside a range are left out. The rest of 240.0.0.0/4 is served.

A router (\`gateway\`, \`routes[].gw\`) is inside the subnet and neither its network nor its broadcast address, or it has an IPv6 link-local
address. The routes of a pool go over the NIC that has the pool's address; a route of the annotation \`ipam.vendor.io/routes\` with a
link-local \`gw\` goes over the first NIC whose pool names that address as \`gateway\` or in \`routes\`, or over a pod's only NIC.

Pools and Subnets that were stored before these rules remain, and pods keep their addresses; special ones are no longer given out. \`berthctl check\` and the condition [\`InvalidValues\`](pool-status.md#conditions) name the fields.`;

function pageOf(introduction: string, sections: readonly Section[]): string {
  const texts = sections.map(
    ({ title, text, schema, described }) => `## ${title}\n\n${text}\n\n${referenceTable(schema, described)}`,
  );
  return `${[introduction, ...texts].join("\n\n")}\n`;
}

/** Returns the page for users, without the rows of fields that the controller alone may set. */
export function resourcesPage(): string {
  return pageOf(INTRODUCTION, SECTIONS).replaceAll(/^\| `generated\..*\n/gm, "");
}

/** Returns the page for developers. */
export function writtenResourcesPage(): string {
  return pageOf(
    "# Objects that Berth writes\n\nThe kinds that users write are in [resources](../resources.md). `kubectl explain` has the same texts.",
    WRITTEN,
  );
}
