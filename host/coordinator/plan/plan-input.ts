/**
 * All that a plan is made of.
 * Filled by the plugin, read by the planners.
 */
import type { CoordinatorConf } from "../../config/coordinator-settings.ts";
import type { Ip } from "../../net/ip.ts";
import type { Mac } from "../../net/mac.ts";
import type { Veth } from "../../plan/operation.ts";
import type { Plan } from "../../plan/plan.ts";
import type { Observed } from "../../plan/state.ts";
import type { RoutableAddresses } from "./address-policy.ts";

/** One NIC of one pod, and what is around it. */
export interface PlanInput {
  readonly conf: CoordinatorConf;
  readonly mode: "underlay" | "overlay";
  readonly ifName: string;
  /** The NIC that is to carry the pod's default route, "" to leave it: the pod's annotation, else the configuration. */
  readonly defaultNic: string;
  /** Of this NIC, as the main plugin says; those that are observed on it are added. */
  readonly addresses: readonly Ip[];
  readonly pair: Veth;
  /** What the pair's host end is to be labelled with. */
  readonly alias: string;
  /** Of this attachment: pod UID, or container ID. */
  readonly owner: string;
  /** The NIC's MAC address as it has to be; undefined leaves it alone. */
  readonly mac?: Mac | undefined;
  readonly observed: Observed;
  /** `hostRuleTable` of those who name none: the resource Coordinator's, else the default. */
  readonly clusterTable?: number | undefined;
  /** By which the node reaches other networks; no pod may have one of these addresses. */
  readonly gateways?: readonly Ip[] | undefined;
  /** Which of the NIC's addresses the node may route to the pod. Undefined where nothing new is routed: for CHECK. */
  readonly routable: RoutableAddresses | undefined;
}

export interface PlanResult {
  readonly plan: Plan;
  /** What an operator should know although it stops nothing; whole sentences. */
  readonly warnings: readonly string[];
}
