/** The part of a difference that the agent repairs by itself, and the words in which it reports the repair. */
import { isOnNode, type Operation } from "../../plan/operation.ts";
import { POD_VETH } from "./constants.ts";

const KINDS = {
  "add-rule": "rule",
  "delete-rule": "rule",
  "add-route": "route",
  "delete-route": "route",
  "add-neighbour": "neighbour",
  "delete-neighbour": "neighbour",
  "add-table": "nftables",
  "delete-table": "nftables",
  "set-sysctl": "sysctl",
  "set-link": "link",
} as const;

export type RepairKind = (typeof KINDS)[keyof typeof KINDS];

/** Returns undefined for an operation that the agent leaves to ADD. */
export function repairKindOf({ kind }: Operation): RepairKind | undefined {
  return kind in KINDS ? KINDS[kind as keyof typeof KINDS] : undefined;
}

/** The alias and group of a pair name the NIC that made it: each NIC's plan has its own. */
function isAboutMaker(operation: Operation): boolean {
  return operation.kind === "set-link" && operation.to.up === undefined;
}

/** Returns the operations on the pod's path to its node if the node's addresses changed. */
export function selectPodUpdates(operations: readonly Operation[]): Operation[] {
  const inPod = operations.filter((each) => "place" in each && each.place === "pod");
  const isOverPair = (each: Operation): boolean => "route" in each && each.route.link === POD_VETH;
  const isOutdated = inPod.some((each) => "neighbour" in each);
  return isOutdated ? inPod.filter((each) => "neighbour" in each || each.kind === "add-rule" || isOverPair(each)) : [];
}

/** Returns the operations on the node. */
export function selectNodeRepairs(operations: readonly Operation[]): Operation[] {
  return operations.filter((each) => isOnNode(each) && repairKindOf(each) !== undefined && !isAboutMaker(each));
}
