/** `berthctl allocations`: addresses that are not free, and the pods that have them. */
import { Option } from "commander";
import { ALLOCATION_TABLE } from "../allocation-table.ts";
import { type CommandLine, type OutputFlags, withOutput } from "../command-line.ts";
import { showList } from "../show-list.ts";

const STATES = ["bound", "cooling", "kept", "quarantined"];

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
