/** The rows of new objects by kind, for a real API server and for the one in memory. */
import { addressRows } from "./address-rows.ts";
import { ALLOCATION_ROWS } from "./allocation-rows.ts";
import { COORDINATOR_ROWS } from "./coordinator-rows.ts";
import { POOL_ROWS, RESERVED_ROWS } from "./pool-rows.ts";
import type { Row } from "./rows.ts";

/** Each row under a name of its own, unless it has one. */
export const named = (rows: readonly Row[]): [title: string, row: Row][] =>
  rows.map((row, index) => [`${row.kind} ${row.title}`, { name: `row-${index}`, ...row }]);

export const KINDS: [kind: string, rows: readonly Row[]][] = [
  ["IPPool", [...addressRows("IPPool"), ...POOL_ROWS]],
  ["Subnet", addressRows("Subnet")],
  ["ReservedIP", RESERVED_ROWS],
  ["IPAllocation", ALLOCATION_ROWS],
  ["Coordinator", COORDINATOR_ROWS],
];
