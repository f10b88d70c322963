/** The columns of allocations. */
import type { AllocationRecord } from "../records/allocation-record.ts";
import { describeWorkload } from "../resources/member.ts";
import type { Table } from "./output.ts";
import type { Style } from "./text.ts";

const STATE_STYLES: Readonly<Record<string, Style>> = { Cooling: "dim", Kept: "dim", Quarantined: "yellow" };

export const ALLOCATION_TABLE: Table<AllocationRecord> = {
  nameOf: ({ cursor }) => cursor,
  columns: [
    { title: "ADDRESS", cell: ({ address }) => address },
    { title: "SPACE", cell: ({ addressSpace }) => addressSpace, isWide: true },
    { title: "POOL", cell: ({ pool }) => pool },
    { title: "STATE", cell: ({ state }) => state, style: ({ state }) => STATE_STYLES[state] },
    { title: "POD", cell: describeOwner },
    { title: "INTERFACE", cell: (record) => record.interface },
    { title: "NODE", cell: ({ node }) => node, isOptional: true },
    { title: "CONTAINER", cell: ({ containerId }) => containerId?.slice(0, 12), isOptional: true },
    { title: "NETWORK", cell: ({ network }) => network, isWide: true },
    { title: "SINCE", cell: ({ since }) => since, isWide: true },
    { title: "OWNER", cell: ({ owner }) => owner, isWide: true },
  ],
};

/** The pods, or the member that the address is retained for, or the machine that answered for it. */
export function describeOwner({ namespace, pod, second, workload, quarantine, state }: AllocationRecord): string {
  const pods = [{ namespace, pod }, ...(second === undefined ? [] : [second])];
  if (pod !== "") return pods.map((each) => `${each.namespace}/${each.pod}`).join(", ");
  if (state === "Kept" && workload !== undefined)
    return `(${describeWorkload({ ...workload, name: workload.member })})`;
  if (quarantine === undefined) return "";
  const { reason, mac, parent } = quarantine;
  if (reason === "NodeLost") return "(node lost)";
  const machine = mac === undefined || mac === "" ? "unknown MAC" : mac;
  return parent === "" ? `(${machine})` : `(${machine} behind ${parent})`;
}
