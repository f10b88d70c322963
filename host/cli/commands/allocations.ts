/** `berthctl allocations`: addresses that are not free, and the pods that have them. */
import { type Command, Option } from "commander";
import { ALLOCATION_TABLE } from "../allocation-table.ts";
import { type CommandLine, type OutputFlags, withOutput } from "../command-line.ts";
import { ProblemError } from "../exit-code.ts";
import { showList } from "../show-list.ts";
import type { AllocationFilter, Source } from "../source.ts";

const STATES = ["bound", "cooling", "kept", "quarantined"];

export interface FilterFlags {
  readonly namespace?: string;
  readonly allNamespaces?: true;
  readonly pool?: string;
  readonly state?: string;
}

export function addAllocations(cli: CommandLine): void {
  const examples = ["allocations -n shop --state bound", "allocations --pool blue -o yaml"];
  withFilter(
    withOutput(cli.command("allocations", "List the addresses in use, and their pods", examples), { canWatch: true }),
  ).action((flags: OutputFlags & FilterFlags) =>
    cli.run(flags, (call) => {
      const { pool, state } = flags;
      const namespace = namespaceOf(flags);
      const { node } = cli.options;
      return showList(call, flags, {
        kind: "allocations",
        table: ALLOCATION_TABLE,
        names: [],
        read: (source) => source.allocations({ namespace, pool, state, node }),
        gone: (record) => ({ ...record, state: "Free" }),
        explainEmpty: (source) => explainEmpty(source, { namespace, pool, state, node }),
      });
    }),
  );
}

/** Returns the namespace whose pods' allocations are selected; undefined: all. As of kubectl, -A wins over -n. */
export function namespaceOf({ namespace, allNamespaces }: FilterFlags): string | undefined {
  return allNamespaces === true ? undefined : namespace;
}

/** Adds the options that select allocations. */
export function withFilter(command: Command): Command {
  return command
    .option("-n, --namespace <name>", "only of pods in this namespace")
    .option("-A, --all-namespaces", "of all namespaces, and addresses without a pod: the default")
    .option("--pool <name>", "only of this pool")
    .addOption(new Option("--state <state>", "only in this state").choices(STATES));
}

/** Rejects with ProblemError if there is no such pool or namespace. */
async function explainEmpty(source: Source, { namespace, pool, state, node }: AllocationFilter): Promise<string> {
  if (pool !== undefined && !(await source.pools()).some(({ name }) => name === pool))
    throw new ProblemError(`There is no pool ${JSON.stringify(pool)}`);
  if (namespace !== undefined && (await source.hasNamespace?.(namespace)) === false)
    throw new ProblemError(`There is no namespace ${JSON.stringify(namespace)}`);
  const words = Object.entries({ namespace, pool, state, node });
  const conditions = words.flatMap(([key, value]) => (value === undefined ? [] : [`${key} ${value}`]));
  return `No address is in use${conditions.length === 0 ? "" : ` with ${conditions.join(", ")}`}`;
}
