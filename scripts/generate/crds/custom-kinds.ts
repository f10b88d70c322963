/** Berth's own kinds as the API server presents them: names, columns, fields to select by. */
import type { z } from "zod";
import type { CelRule } from "../../../host/lib/cel.ts";
import { coordinatorSchema } from "../../../host/resources/coordinator.ts";
import { NAME_RULE } from "../../../host/resources/fields/allocation-rules.ts";
import { ipAllocationSchema } from "../../../host/resources/ip-allocation.ts";
import { ipPoolSchema } from "../../../host/resources/ip-pool.ts";
import { reservedIpSchema } from "../../../host/resources/reserved-ip.ts";
import { coordinatorStatus, ipPoolStatus, reservedIpStatus, subnetStatus } from "../../../host/resources/status.ts";
import { subnetSchema } from "../../../host/resources/subnet.ts";
import { ipPoolUsageStatus } from "../../../host/resources/usage/ip-pool-usage.ts";

export interface PrinterColumn {
  readonly name: string;
  readonly type: "string" | "integer" | "boolean" | "date";
  readonly jsonPath: string;
  readonly description: string;
  /** Above 0: shown with `-o wide`. */
  readonly priority?: number;
}

export interface CustomKind {
  readonly kind: string;
  readonly plural: string;
  readonly shortNames: readonly string[];
  /** Of the kind, for `kubectl explain`. */
  readonly description: string;
  /** Absent: the kind has nothing but a status, which is then no subresource. */
  readonly spec?: z.ZodType;
  readonly specDescription?: string;
  /** Rules about the whole object. */
  readonly rules?: readonly CelRule[];
  readonly status?: z.ZodType;
  readonly statusDescription?: string;
  readonly columns: readonly PrinterColumn[];
  /** JSON paths. */
  readonly selectableFields?: readonly string[];
}

const AGE: PrinterColumn = {
  name: "Age",
  type: "date",
  jsonPath: ".metadata.creationTimestamp",
  description: "Time since the object was made.",
};

const SUBNET: PrinterColumn = {
  name: "Subnet",
  type: "string",
  jsonPath: ".spec.subnet",
  description: "Network of the addresses.",
};

const GATEWAY: PrinterColumn = {
  name: "Gateway",
  type: "string",
  jsonPath: ".spec.gateway",
  description: "Default gateway.",
};

const SPACE: PrinterColumn = {
  name: "Space",
  type: "string",
  jsonPath: ".spec.addressSpace",
  description: "Address space.",
  priority: 1,
};

export const CUSTOM_KINDS: readonly CustomKind[] = [
  {
    kind: "IPPool",
    plural: "ippools",
    shortNames: ["ipp", "pool"],
    description: "A set of addresses of one subnet, and who may use it.",
    spec: ipPoolSchema.shape.spec,
    specDescription: "What the pool hands out, and to whom.",
    status: ipPoolStatus,
    statusDescription: "What Berth reports about the pool; it follows with some delay.",
    columns: [
      SUBNET,
      { name: "Default", type: "boolean", jsonPath: ".spec.default", description: "For pods that name no pool." },
      { name: "Disabled", type: "boolean", jsonPath: ".spec.disable", description: "No new addresses." },
      GATEWAY,
      { name: "Total", type: "integer", jsonPath: ".status.total", description: "Addresses that may be handed out." },
      { name: "Used", type: "integer", jsonPath: ".status.used", description: "Addresses that are not free." },
      SPACE,
      { name: "Nodes", type: "string", jsonPath: ".spec.nodeName", description: "Only these nodes.", priority: 1 },
      {
        name: "Namespaces",
        type: "string",
        jsonPath: ".spec.namespaceName",
        description: "Only these namespaces.",
        priority: 1,
      },
      AGE,
    ],
  },
  {
    kind: "IPPoolUsage",
    plural: "ippoolusages",
    shortNames: ["ippu"],
    description: "How much of the pool of the same name is in use. Written by Berth alone; a hint, which may be late.",
    status: ipPoolUsageStatus,
    statusDescription: "Counted from the allocations.",
    columns: [
      { name: "Total", type: "integer", jsonPath: ".status.total", description: "Addresses that may be handed out." },
      { name: "Free", type: "integer", jsonPath: ".status.free", description: "Of those, addresses that nobody has." },
      { name: "Bound", type: "integer", jsonPath: ".status.bound", description: "Addresses that pods hold." },
      { name: "Cooling", type: "integer", jsonPath: ".status.cooling", description: "Addresses that are free soon." },
      { name: "Kept", type: "integer", jsonPath: ".status.kept", description: "Addresses kept for workloads." },
      {
        name: "Quarantined",
        type: "integer",
        jsonPath: ".status.quarantined",
        description: "Addresses that must not be used.",
      },
      {
        name: "Outside",
        type: "integer",
        jsonPath: ".status.outside",
        description: "Addresses that the ranges no longer have.",
        priority: 1,
      },
      {
        name: "Others",
        type: "integer",
        jsonPath: ".status.others",
        description: "Addresses that other pools handed out.",
        priority: 1,
      },
      AGE,
    ],
  },
  {
    kind: "Subnet",
    plural: "subnets",
    shortNames: ["ipsubnet"],
    description: "Addresses out of which pools are generated.",
    spec: subnetSchema.shape.spec,
    specDescription: "The addresses.",
    status: subnetStatus,
    statusDescription: "What Berth reports about the subnet; it follows with some delay.",
    columns: [
      SUBNET,
      GATEWAY,
      { name: "Total", type: "integer", jsonPath: ".status.total", description: "Addresses for pools." },
      { name: "Assigned", type: "integer", jsonPath: ".status.assigned", description: "Addresses that pools have." },
      SPACE,
      AGE,
    ],
  },
  {
    kind: "ReservedIP",
    plural: "reservedips",
    shortNames: ["rip"],
    description: "Addresses that no pool hands out.",
    spec: reservedIpSchema.shape.spec,
    specDescription: "The addresses.",
    status: reservedIpStatus,
    statusDescription: "What Berth reports about the addresses.",
    columns: [
      { name: "Addresses", type: "string", jsonPath: ".spec.ips", description: "Addresses and ranges." },
      { name: "Space", type: "string", jsonPath: ".spec.addressSpace", description: "Address space." },
      AGE,
    ],
  },
  {
    kind: "IPAllocation",
    plural: "ipallocations",
    shortNames: ["ipalloc", "ipa"],
    description: "One address that is not free; its name is the address. Written by Berth alone.",
    spec: ipAllocationSchema.shape.spec,
    specDescription: "Who has the address.",
    rules: [NAME_RULE],
    columns: [
      { name: "Address", type: "string", jsonPath: ".spec.address", description: "The address." },
      { name: "State", type: "string", jsonPath: ".spec.state", description: "Bound, Cooling, Kept or Quarantined." },
      { name: "Pool", type: "string", jsonPath: ".spec.pool", description: "Pool that the address was taken from." },
      { name: "Node", type: "string", jsonPath: ".spec.node", description: "Node whose agent answers for it." },
      {
        name: "Namespace",
        type: "string",
        jsonPath: ".spec.holders[0].namespace",
        description: "Namespace of the pod.",
      },
      { name: "Pod", type: "string", jsonPath: ".spec.holders[0].pod", description: "Pod that has the address." },
      { name: "Interface", type: "string", jsonPath: ".spec.holders[0].interface", description: "NIC of the pod." },
      { name: "Workload", type: "string", jsonPath: ".spec.workload.name", description: "What keeps it.", priority: 1 },
      { name: "Since", type: "date", jsonPath: ".spec.since", description: "Time in this state.", priority: 1 },
      AGE,
    ],
    selectableFields: [".spec.pool", ".spec.node", ".spec.state"],
  },
  {
    kind: "Coordinator",
    plural: "coordinators",
    shortNames: ["coord"],
    description: "The cluster's settings of the coordinator plugin; the one named `default` counts.",
    spec: coordinatorSchema.shape.spec,
    specDescription: "The settings; what a network definition says wins, key by key.",
    status: coordinatorStatus,
    statusDescription: "The networks that Berth found.",
    columns: [
      { name: "Mode", type: "string", jsonPath: ".spec.mode", description: "Operating mode." },
      { name: "Phase", type: "string", jsonPath: ".status.phase", description: "Whether the networks are known." },
      {
        name: "Pod-CIDRs",
        type: "string",
        jsonPath: ".status.overlayPodCIDR",
        description: "Pod networks.",
        priority: 1,
      },
      {
        name: "Service-CIDRs",
        type: "string",
        jsonPath: ".status.serviceCIDR",
        description: "Service networks.",
        priority: 1,
      },
      { name: "Reason", type: "string", jsonPath: ".status.reason", description: "Where they come from.", priority: 1 },
      AGE,
    ],
  },
];
