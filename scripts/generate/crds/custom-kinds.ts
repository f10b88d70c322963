/** Names, printer columns and selectable fields of Berth's kinds. */
import type { z } from "zod";
import type { CelRule } from "../../../host/lib/cel.ts";
import { addressRangeSchema, addressRangeStatus } from "../../../host/resources/address-range.ts";
import { coordinatorSchema } from "../../../host/resources/coordinator.ts";
import { ipAllocationSchema, NAME_RULE } from "../../../host/resources/ip-allocation.ts";
import { ipPoolSchema, SOURCE_CHANGE_RULE } from "../../../host/resources/ip-pool.ts";
import { ipPoolUsageStatus } from "../../../host/resources/ip-pool-usage.ts";
import { reservedIpSchema } from "../../../host/resources/reserved-ip.ts";
import { coordinatorStatus, ipPoolStatus, reservedIpStatus, subnetStatus } from "../../../host/resources/status.ts";
import { subnetSchema } from "../../../host/resources/subnet.ts";

export interface PrinterColumn {
  readonly name: string;
  readonly type: "string" | "integer" | "boolean" | "date";
  readonly jsonPath: string;
  readonly description: string;
  /** If above 0, shown with `-o wide` only. */
  readonly priority?: number;
}

export interface CustomKind {
  readonly kind: string;
  readonly plural: string;
  readonly shortNames: readonly string[];
  /** Shown by `kubectl explain`. */
  readonly description: string;
  /** Undefined if the kind has only a status, which is then not a subresource. */
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
  description: "Time since the object was created.",
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

const READY: PrinterColumn = {
  name: "Ready",
  type: "string",
  jsonPath: '.status.conditions[?(@.type=="Ready")].status',
  description: "Whether the object can be used.",
};

const REASON: PrinterColumn = {
  name: "Reason",
  type: "string",
  jsonPath: '.status.conditions[?(@.type=="Ready")].reason',
  description: "Why it can be used, or cannot.",
  priority: 1,
};

export const CUSTOM_KINDS: readonly CustomKind[] = [
  {
    kind: "IPPool",
    plural: "ippools",
    shortNames: ["ipp", "pool"],
    description: "Addresses of one subnet, and the pods that may use them.",
    spec: ipPoolSchema.shape.spec,
    specDescription: "The pool's addresses, and the pods that may use them.",
    rules: [SOURCE_CHANGE_RULE],
    status: ipPoolStatus,
    statusDescription: "Status of the pool, updated with some delay.",
    columns: [
      SUBNET,
      { name: "Total", type: "integer", jsonPath: ".status.total", description: "Addresses that may be allocated." },
      { name: "Used", type: "integer", jsonPath: ".status.used", description: "Addresses that are not free." },
      { name: "Free", type: "integer", jsonPath: ".status.free", description: "Addresses that are free." },
      READY,
      { name: "Default", type: "boolean", jsonPath: ".spec.default", description: "Used for pods that name no pool." },
      { name: "Disabled", type: "boolean", jsonPath: ".spec.disable", description: "Allocates no new addresses." },
      { ...GATEWAY, priority: 1 },
      REASON,
      SPACE,
      {
        name: "Nodes",
        type: "string",
        jsonPath: ".spec.nodeName",
        description: "Restricted to these nodes.",
        priority: 1,
      },
      {
        name: "Namespaces",
        type: "string",
        jsonPath: ".spec.namespaceName",
        description: "Restricted to these namespaces.",
        priority: 1,
      },
      AGE,
    ],
  },
  {
    kind: "IPPoolUsage",
    plural: "ippoolusages",
    shortNames: ["ippu"],
    description: "Usage of the pool of the same name. Written by Berth; may be outdated.",
    status: ipPoolUsageStatus,
    statusDescription: "Counts derived from the allocations.",
    columns: [
      { name: "Total", type: "integer", jsonPath: ".status.total", description: "Addresses that may be allocated." },
      {
        name: "Free",
        type: "integer",
        jsonPath: ".status.free",
        description: "Addresses that may be allocated and are free.",
      },
      { name: "Bound", type: "integer", jsonPath: ".status.bound", description: "Addresses in use by pods." },
      {
        name: "Cooling",
        type: "integer",
        jsonPath: ".status.cooling",
        description: "Released addresses in their cooldown.",
      },
      { name: "Kept", type: "integer", jsonPath: ".status.kept", description: "Addresses retained for workloads." },
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
        description: "Allocated addresses outside the ranges.",
        priority: 1,
      },
      {
        name: "Others",
        type: "integer",
        jsonPath: ".status.others",
        description: "Addresses allocated by other pools.",
        priority: 1,
      },
      AGE,
    ],
  },
  {
    kind: "Subnet",
    plural: "subnets",
    shortNames: ["ipsubnet"],
    description: "Addresses that Berth divides among generated pools.",
    spec: subnetSchema.shape.spec,
    specDescription: "The addresses, and the namespaces that may use them.",
    status: subnetStatus,
    statusDescription: "Status of the Subnet, updated with some delay.",
    columns: [
      SUBNET,
      { name: "Total", type: "integer", jsonPath: ".status.total", description: "Addresses for pools." },
      { name: "Assigned", type: "integer", jsonPath: ".status.assigned", description: "Addresses assigned to pools." },
      READY,
      { ...GATEWAY, priority: 1 },
      REASON,
      SPACE,
      AGE,
    ],
  },
  {
    kind: "AddressRange",
    plural: "addressranges",
    shortNames: ["iprange"],
    description: "A segment's addresses, leased in blocks to several clusters. Served by their hub.",
    spec: addressRangeSchema.shape.spec,
    specDescription: "The addresses, and the clusters that may lease.",
    status: addressRangeStatus,
    statusDescription: "The leases. Written by the members, each its own; nobody has a block that is not here.",
    columns: [
      SUBNET,
      { name: "Block", type: "integer", jsonPath: ".spec.blockSize", description: "Length of a block's prefix." },
      { name: "Writes", type: "integer", jsonPath: ".status.sequence", description: "Number of writes of members." },
      {
        name: "Restored",
        type: "boolean",
        jsonPath: ".status.restored",
        description: "Whether members still write again what they have.",
      },
      { ...GATEWAY, priority: 1 },
      SPACE,
      AGE,
    ],
  },
  {
    kind: "ReservedIP",
    plural: "reservedips",
    shortNames: ["rip"],
    description: "Addresses that no pool allocates.",
    spec: reservedIpSchema.shape.spec,
    specDescription: "The addresses.",
    status: reservedIpStatus,
    statusDescription: "Status of the reserved addresses.",
    columns: [
      { name: "Addresses", type: "string", jsonPath: ".spec.ips", description: "Addresses and ranges." },
      { name: "Space", type: "string", jsonPath: ".spec.addressSpace", description: "Address space." },
      READY,
      REASON,
      AGE,
    ],
  },
  {
    kind: "IPAllocation",
    plural: "ipallocations",
    shortNames: ["ipalloc", "ipa"],
    description: "One address that is not free. The object's name is the address. Written by Berth.",
    spec: ipAllocationSchema.shape.spec,
    specDescription: "The address, its state and its owner.",
    rules: [NAME_RULE],
    columns: [
      { name: "Address", type: "string", jsonPath: ".spec.address", description: "The address." },
      { name: "State", type: "string", jsonPath: ".spec.state", description: "Bound, Cooling, Kept or Quarantined." },
      {
        name: "Pool",
        type: "string",
        jsonPath: ".spec.pool",
        description: "Pool that the address was allocated from.",
      },
      {
        name: "Node",
        type: "string",
        jsonPath: ".spec.node",
        description: "Node whose agent is responsible for the address.",
      },
      {
        name: "Namespace",
        type: "string",
        jsonPath: ".spec.holders[0].namespace",
        description: "Namespace of the pod.",
      },
      { name: "Pod", type: "string", jsonPath: ".spec.holders[0].pod", description: "Pod that has the address." },
      { name: "Interface", type: "string", jsonPath: ".spec.holders[0].interface", description: "NIC of the pod." },
      {
        name: "Workload",
        type: "string",
        jsonPath: ".spec.workload.name",
        description: "Workload that retains the address.",
        priority: 1,
      },
      {
        name: "Since",
        type: "date",
        jsonPath: ".spec.since",
        description: "Time since the last state transition.",
        priority: 1,
      },
      AGE,
    ],
    selectableFields: [".spec.pool", ".spec.node", ".spec.state"],
  },
  {
    kind: "Coordinator",
    plural: "coordinators",
    shortNames: ["coord"],
    description: "Cluster-wide settings of the coordinator plugin. Only the object named `default` is used.",
    spec: coordinatorSchema.shape.spec,
    specDescription: "The settings. Keys in a network definition take precedence.",
    status: coordinatorStatus,
    statusDescription: "The networks that Berth collected.",
    columns: [
      { name: "Mode", type: "string", jsonPath: ".spec.mode", description: "Operating mode." },
      { name: "Phase", type: "string", jsonPath: ".status.phase", description: "Whether the networks are known." },
      READY,
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
      {
        name: "Reason",
        type: "string",
        jsonPath: ".status.reason",
        description: "Source of the networks.",
        priority: 1,
      },
      AGE,
    ],
  },
];
