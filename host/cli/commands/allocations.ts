/** `berthctl allocations`: addresses that are not free, and the pods that have them. */
import { Option } from "commander";
import type { AllocationRecord } from "../../records/allocation-record.ts";
import { type CommandLine, type OutputFlags, withOutput } from "../command-line.ts";
import type { Table } from "../output.ts";
import { showList } from "../show-list.ts";
import type { Style } from "../text.ts";

const STATES = ["bound", "cooling", "kept", "quarantined"];

const STATE_STYLES: Readonly<Record<string, Style>> = { Cooling: "dim", Kept: "dim", Quarantined: "yellow" };

const ALLOCATION_TABLE: Table<AllocationRecord> = {
  nameOf: ({ cursor }) => cursor,
  columns: [
    { title: "ADDRESS", cell: ({ address }) => address },
    { title: "SPACE", cell: ({ addressSpace }) => addressSpace, isWide: true },
    { title: "POOL", cell: ({ pool }) => pool },
    { title: "STATE", cell: ({ state }) => state, style: ({ state }) => STATE_STYLES[state] },
    { title: "POD", cell: describeOwner },
    { title: "INTERFACE", cell: (record) => record.interface },
    { title: "NODE", cell: ({ node }) => node },
    { title: "CONTAINER", cell: ({ containerId }) => containerId?.slice(0, 12) },
    { title: "NETWORK", cell: ({ network }) => network, isWide: true },
    { title: "SINCE", cell: ({ since }) => since, isWide: true },
    { title: "OWNER", cell: ({ owner }) => owner, isWide: true },
  ],
};

interface FilterFlags {
  readonly namespace?: string;
  readonly pool?: string;
  readonly state?: string;
}

export function addAllocations(cli: CommandLine): void {
  withOutput(cli.command("allocations", "List the addresses in use, and their pods"), { canWatch: true })
    .option("-n, --namespace <name>", "only of pods in this namespace")
    .option("--pool <name>", "only of this pool")
    .addOption(new Option("--state <state>", "only in this state").choices(STATES))
    .action((flags: OutputFlags & FilterFlags) =>
      cli.run(flags, (call) => {
        const { namespace, pool, state } = flags;
        const { node } = cli.options;
        return showList(call, flags, {
          kind: "allocations",
          table: ALLOCATION_TABLE,
          names: [],
          read: (source) => source.allocations({ namespace, pool, state, node }),
          gone: (record) => ({ ...record, state: "Free" }),
        });
      }),
    );
}

/** The pods, or the member that the address is retained for, or the machine that answered for it. */
function describeOwner({ namespace, pod, second, workload, quarantine, state }: AllocationRecord): string {
  const pods = [{ namespace, pod }, ...(second === undefined ? [] : [second])];
  if (pod !== "") return pods.map((each) => `${each.namespace}/${each.pod}`).join(", ");
  if (state === "Kept" && workload !== undefined) return `(${workload.kind} ${workload.namespace}/${workload.member})`;
  if (quarantine === undefined) return "";
  const { reason, mac, parent } = quarantine;
  if (reason === "NodeLost") return "(node lost)";
  const machine = mac === undefined || mac === "" ? "unknown MAC" : mac;
  return parent === "" ? `(${machine})` : `(${machine} behind ${parent})`;
}
