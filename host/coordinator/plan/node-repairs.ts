/** The part of a difference that the agent repairs by itself, and the words in which it reports the repair. */
import type { Operation } from "../../plan/operation.ts";
import { POD_VETH } from "./constants.ts";

export type RepairKind = "rule" | "route" | "neighbour" | "nftables" | "sysctl" | "link";

/** Returns undefined for an operation that the agent leaves to ADD. */
export function repairKindOf({ kind }: Operation): RepairKind | undefined {
  switch (kind) {
    case "add-rule":
    case "delete-rule":
      return "rule";
    case "add-route":
    case "delete-route":
      return "route";
    case "add-neighbour":
    case "delete-neighbour":
      return "neighbour";
    case "add-table":
    case "delete-table":
      return "nftables";
    case "set-sysctl":
      return "sysctl";
    case "set-link":
      return "link";
    default:
      return undefined;
  }
}

/** The alias and group of a pair name the NIC that made it: each NIC's plan has its own. */
function isAboutMaker(operation: Operation): boolean {
  return operation.kind === "set-link" && operation.to.up === undefined;
}

/** Returns the operations on the pod's path to its node if the node's addresses changed; none without the pair. */
export function selectPodUpdates(operations: readonly Operation[]): Operation[] {
  if (operations.some(({ kind }) => kind === "add-veth")) return [];
  const inPod = operations.filter((each) => "place" in each && each.place === "pod");
  const isOverPair = (each: Operation): boolean => "route" in each && each.route.link === POD_VETH;
  const isOutdated = inPod.some((each) => "neighbour" in each);
  return isOutdated ? inPod.filter((each) => "neighbour" in each || each.kind === "add-rule" || isOverPair(each)) : [];
}

/** Returns the operations on the node; none if the pod's pair is gone, without which nothing there leads to the pod. */
export function selectNodeRepairs(operations: readonly Operation[]): Operation[] {
  if (operations.some(({ kind }) => kind === "add-veth")) return [];
  return operations.filter(
    (operation) =>
      "place" in operation &&
      operation.place === "host" &&
      repairKindOf(operation) !== undefined &&
      !isAboutMaker(operation),
  );
}
