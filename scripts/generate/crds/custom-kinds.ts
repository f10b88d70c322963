/** Names, printer columns and selectable fields of Berth's kinds. */
import { readExtensions } from "../../../host/bin/extensions.ts";
import { coordinatorSchema } from "../../../host/resources/coordinator.ts";
import { AGE, type CustomKind, column, GATEWAY, SPACE, SUBNET, wide } from "../../../host/resources/custom-kind.ts";
import { ipAllocationSchema, NAME_RULE } from "../../../host/resources/ip-allocation.ts";
import { ipPoolSchema, SOURCE_CHANGE_RULE } from "../../../host/resources/ip-pool.ts";
import { ipPoolUsageStatus } from "../../../host/resources/ip-pool-usage.ts";
import { reservedIpSchema } from "../../../host/resources/reserved-ip.ts";
import { coordinatorStatus, ipPoolStatus, reservedIpStatus, subnetStatus } from "../../../host/resources/status.ts";
import { subnetSchema } from "../../../host/resources/subnet.ts";

const READY = column("Ready", '.status.conditions[?(@.type=="Ready")].status', "Whether the object can be used.");

const REASON = wide(
  column("Reason", '.status.conditions[?(@.type=="Ready")].reason', "Why it can be used, or cannot."),
);

const HOUSE_KINDS: readonly CustomKind[] = [
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
      column("Total", ".status.total", "Addresses that may be allocated.", "integer"),
      column("Used", ".status.used", "Addresses that are not free.", "integer"),
      column("Free", ".status.free", "Addresses that are free.", "integer"),
      column("Counted", ".status.counted", "Time since these counts changed, or were written last.", "date"),
      READY,
      column("Default", ".spec.default", "Used for pods that name no pool.", "boolean"),
      column("Disabled", ".spec.disable", "Allocates no new addresses.", "boolean"),
      wide(GATEWAY),
      REASON,
      SPACE,
      wide(column("Nodes", ".spec.nodeName", "Restricted to these nodes.")),
      wide(column("Namespaces", ".spec.namespaceName", "Restricted to these namespaces.")),
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
      column("Total", ".status.total", "Addresses that may be allocated.", "integer"),
      column("Free", ".status.free", "Addresses that may be allocated and are free.", "integer"),
      column("Bound", ".status.bound", "Addresses in use by pods.", "integer"),
      column("Cooling", ".status.cooling", "Released addresses in their cooldown.", "integer"),
      column("Kept", ".status.kept", "Addresses retained for workloads.", "integer"),
      column("Quarantined", ".status.quarantined", "Addresses that must not be used.", "integer"),
      wide(column("Outside", ".status.outside", "Allocated addresses outside the ranges.", "integer")),
      wide(column("Others", ".status.others", "Addresses allocated by other pools.", "integer")),
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
      column("Total", ".status.total", "Addresses for pools.", "integer"),
      column("Assigned", ".status.assigned", "Addresses assigned to pools.", "integer"),
      READY,
      wide(GATEWAY),
      REASON,
      SPACE,
      AGE,
    ],
  },
  {
    kind: "ReservedIP",
    plural: "reservedips",
    shortNames: ["rip"],
    description: "Addresses that no pool allocates, but to their owner.",
    spec: reservedIpSchema.shape.spec,
    specDescription: "The addresses.",
    status: reservedIpStatus,
    statusDescription: "Status of the reserved addresses.",
    columns: [
      column("Addresses", ".spec.ips", "Addresses and ranges."),
      column("Namespace", ".spec.owner.namespace", "Namespace of the owner."),
      column("Owner", ".spec.owner.name", "Owner, for whom the address is reserved."),
      column("Space", ".spec.addressSpace", "Address space."),
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
      column("Address", ".spec.address", "The address."),
      column("State", ".spec.state", "Bound, Cooling, Kept or Quarantined."),
      column("Pool", ".spec.pool", "Pool that the address was allocated from."),
      column("Node", ".spec.node", "Node whose agent is responsible for the address."),
      column("Namespace", ".spec.holders[0].namespace", "Namespace of the pod."),
      column("Pod", ".spec.holders[0].pod", "Pod that has the address."),
      column("Interface", ".spec.holders[0].interface", "NIC of the pod."),
      wide(column("Workload", ".spec.workload.name", "Workload that retains the address.")),
      wide(column("Since", ".spec.since", "Time since the last state transition.", "date")),
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
      column("Mode", ".spec.mode", "Operating mode."),
      column("Phase", ".status.phase", "Whether the networks are known."),
      READY,
      wide(column("Pod-CIDRs", ".status.overlayPodCIDR", "Pod networks.")),
      wide(column("Service-CIDRs", ".status.serviceCIDR", "Service networks.")),
      wide(column("Reason", ".status.reason", "Source of the networks.")),
      AGE,
    ],
  },
];

const extensions = await readExtensions();

/** With those of the packages that are there. */
export const CUSTOM_KINDS: readonly CustomKind[] = [
  ...HOUSE_KINDS,
  ...(await Promise.all(extensions.map(({ readKinds }) => readKinds?.() ?? []))).flat(),
];
