/** The input and the result of the planners. */
import type { CoordinatorConf } from "../../config/coordinator-settings.ts";
import type { Ip } from "../../net/ip.ts";
import type { Mac } from "../../net/mac.ts";
import type { Prefix } from "../../net/prefix.ts";
import type { Veth } from "../../plan/operation.ts";
import type { Plan } from "../../plan/plan.ts";
import type { Observed } from "../../plan/state.ts";

/** One NIC of one pod, with its configuration and the observed state. */
export interface PlanInput {
  readonly conf: CoordinatorConf;
  readonly mode: "underlay" | "overlay";
  readonly ifName: string;
  /** The NIC for the pod's default route, by annotation or configuration; "" leaves the route unchanged. */
  readonly defaultNic: string;
  /** Addresses of this NIC as the main plugin reports them; those observed on it are added. */
  readonly addresses: readonly Ip[];
  readonly pair: Veth;
  /** Alias of the pair's host end. */
  readonly alias: string;
  /** Owner of this attachment: pod UID, or container ID. */
  readonly owner: string;
  /** MAC address that the NIC has to have; undefined leaves it unchanged. */
  readonly mac?: Mac | undefined;
  readonly observed: Observed;
  /** `hostRuleTable` of definitions that name none: the resource Coordinator's, else the default. */
  readonly clusterTable?: number | undefined;
  /** The node's gateways; no pod may have one of these addresses. */
  readonly gateways: readonly Ip[];
  /** Which of the NIC's addresses the node may route to the pod. Undefined for CHECK, which adds no routes. */
  readonly routable: RoutableAddresses | undefined;
  /** A later plugin (`sbr`) moves the NIC's routes out of the main table. Unknown to CHECK, which observes that. */
  readonly losesMainRoutes?: boolean | undefined;
  /** The pod's NICs that the registry knows and whose networks have a coordinator, this one too. */
  readonly attached: readonly AttachedNic[];
}

export interface PlanResult {
  readonly plan: Plan;
  /** Sentences for the operator about problems that do not prevent the attachment. */
  readonly warnings: readonly string[];
}

/** A NIC of the pod whose network has a coordinator. */
export interface AttachedNic {
  readonly ifName: string;
  /** Addresses that Berth gave it. */
  readonly addresses: readonly Ip[];
  readonly conf: CoordinatorConf;
}

export interface RoutableAddresses {
  /** Addresses that Berth allocated to the NIC, with the prefix length of the pool's subnet. */
  readonly allocated: readonly Prefix[];
  /** `hostRouteCIDR` of vendor-conf: networks in which the administrator permits addresses of other IPAM plugins. */
  readonly allowed: readonly Prefix[];
}
