/**
 * Searches the gate's scenes with a fault of simulation/faults/faults.ts, in a child in which that is switched on.
 *
 *   await findFaultBySearch("an address that another pod has is written over")
 *   // { states: 218, violation: { scene: "answers lost", invariant: "one NIC", problem: "…", path: […] } }
 */
import { fileURLToPath } from "node:url";
import { requireCommand } from "../../../lab/command.ts";
import type { Violation } from "./search.ts";

export interface SearchedFault {
  /**
   * Number of states visited until the violation, in all scenes before it, too; without one in all. 0: the search does
   * not ask what has the fault.
   */
  readonly states: number;
  readonly violation?: Violation & { readonly scene: string };
}

const CHILD = fileURLToPath(new URL("search-fault.ts", import.meta.url));
const LIMIT_MS = 300_000;

/** Undefined: the product as it is. */
export async function findFaultBySearch(fault: string | undefined): Promise<SearchedFault> {
  const argv = [process.execPath, CHILD, ...(fault === undefined ? [] : [fault])];
  return JSON.parse(await requireCommand(argv, { timeoutMs: LIMIT_MS }));
}
