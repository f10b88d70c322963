/** `berthctl pools`: pools and how much of them is in use. */
import type { PoolRecord } from "../../records/pool-record.ts";
import { splitList } from "../arguments.ts";
import { type CommandLine, type OutputFlags, withOutput } from "../command-line.ts";
import type { Table } from "../output.ts";
import { showList } from "../show-list.ts";
import { formatCount, formatPercent, type Style } from "../text.ts";

/** From here on a pool is shown in yellow, and in red: percent of its addresses in use. */
const NEARLY_FULL = { warning: 80n, critical: 95n };

const counted = (text: string | undefined): string | undefined =>
  text === undefined ? undefined : formatCount(BigInt(text));
const inState =
  (state: keyof PoolRecord["states"]) =>
  ({ states }: PoolRecord) =>
    String(states[state] ?? 0);

const POOL_TABLE: Table<PoolRecord> = {
  nameOf: ({ name }) => name,
  columns: [
    { title: "POOL", cell: ({ name }) => name },
    { title: "SUBNET", cell: ({ subnet }) => subnet },
    { title: "SPACE", cell: ({ addressSpace }) => addressSpace, isWide: true },
    { title: "GATEWAY", cell: ({ gateway }) => gateway, isWide: true },
    { title: "TOTAL", cell: ({ total }) => counted(total), isNumber: true },
    { title: "USED", cell: ({ used }) => counted(used), isNumber: true },
    { title: "FREE", cell: ({ free }) => counted(free), isNumber: true },
    { title: "USED%", cell: percentOf, isNumber: true, style: fullness },
    { title: "BOUND", cell: inState("Bound"), isNumber: true, isWide: true },
    { title: "KEPT", cell: inState("Kept"), isNumber: true, isWide: true },
    { title: "COOLING", cell: inState("Cooling"), isNumber: true },
    {
      title: "QUARANTINED",
      cell: inState("Quarantined"),
      isNumber: true,
      style: ({ states }) => ((states.Quarantined ?? 0) > 0 ? "yellow" : undefined),
    },
    { title: "FOR", cell: ({ generatedFor }) => generatedFor, isWide: true },
    {
      title: "NOTES",
      cell: notesOf,
      style: ({ refused, gone }) => (refused === undefined && gone !== true ? undefined : "red"),
    },
  ],
};

export function addPools(cli: CommandLine): void {
  const command = cli.command("pools", "List pools and how much of them is in use", [
    "pools -o wide",
    "pools blue --watch",
  ]);
  withOutput(command, { canWatch: true })
    .argument("[pool...]", "names of pools; default: all", splitList, [])
    .action((names: readonly string[], flags: OutputFlags) =>
      cli.run(flags, (call) =>
        showList(call, flags, {
          kind: "pools",
          table: POOL_TABLE,
          names,
          read: async (source) => {
            const pools = await source.pools();
            return names.length === 0 ? pools : pools.filter(({ name }) => names.includes(name));
          },
          gone: (pool) => ({ ...pool, gone: true }),
        }),
      ),
    );
}

function usage({ used, total }: PoolRecord): readonly [used: bigint, total: bigint] {
  return [BigInt(used ?? 0), BigInt(total ?? 0)];
}

function percentOf(pool: PoolRecord): string | undefined {
  return pool.used === undefined ? undefined : formatPercent(...usage(pool));
}

function fullness(pool: PoolRecord): Style | undefined {
  const [used, total] = usage(pool);
  if (total === 0n) return undefined;
  const percent = (used * 100n) / total;
  return percent >= NEARLY_FULL.critical ? "red" : percent >= NEARLY_FULL.warning ? "yellow" : undefined;
}

function notesOf({ default: isDefault, disabled, gone, deleting, refused }: PoolRecord): string {
  const notes = [
    isDefault && "default",
    disabled && "disabled",
    deleting && "being deleted",
    gone && "deleted",
    refused !== undefined && "refused",
  ];
  return notes.filter(Boolean).join(",");
}
