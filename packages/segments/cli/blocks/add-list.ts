/** `berthctl blocks`: the owners of blocks, and the addresses that keep one from being returned. */

import type { Command } from "commander";
import { type CommandLine, type OutputFlags, withOutput } from "../../../../host/cli/command-line.ts";
import { ExitCode } from "../../../../host/cli/exit-code.ts";
import type { Table } from "../../../../host/cli/output.ts";
import type { Style } from "../../../../host/cli/text.ts";
import { listSome } from "../../../../host/lib/describe.ts";
import { type BlockRow, describeRange, listBlocks } from "./list-blocks.ts";

/** Most owners of addresses that one cell shows. */
const MAX_SHOWN_OWNERS = 3;

const STATE_STYLES: Readonly<Record<string, Style>> = { Resting: "dim", Draining: "yellow", Returning: "yellow" };

const count = (of: (row: BlockRow) => number | undefined) => (row: BlockRow) => of(row)?.toString();

const BLOCK_TABLE: Table<BlockRow> = {
  nameOf: ({ block }) => block,
  columns: [
    { title: "RANGE", cell: ({ range }) => range },
    { title: "BLOCK", cell: ({ block }) => block },
    { title: "CLUSTER", cell: ({ member }) => member },
    { title: "POOL", cell: ({ pool }) => pool },
    {
      title: "STATE",
      cell: ({ state }) => state,
      style: ({ state = "" }) => (state === "Disputed" ? "red" : STATE_STYLES[state]),
    },
    { title: "USED", cell: count(({ used }) => used), isNumber: true },
    { title: "FREE", cell: count(({ free }) => free), isNumber: true },
    { title: "PINNED", cell: count(({ pinnedBy }) => pinnedBy?.length), isNumber: true },
    { title: "BY", cell: ownersOf, isOptional: true },
  ],
};

export function addListBlocks(cli: CommandLine, blocks: Command): void {
  const list = blocks
    .command("list", { isDefault: true })
    .description("List the blocks of each pool, what keeps one from being returned, and what other clusters have");
  withOutput(list).action((flags: OutputFlags) =>
    cli.run(flags, async (call) => {
      const source = await call.source();
      const [pools, allocations, scope] = await Promise.all([source.pools(), source.allocations({}), source.scope()]);
      const found = listBlocks(pools, allocations);
      if (call.out.isDocument) await call.out.value(found);
      else {
        if (call.out.hasTitles) await call.out.report(found.ranges.map(describeRange), found);
        await call.out.list(BLOCK_TABLE, found.blocks, scope);
      }
      if (found.ranges.length === 0 && call.out.hasTitles) call.note("No pool has spec.source");
      return ExitCode.Success;
    }),
  );
}

/** `shop/web-0, shop/web-1 and 4 more` */
function ownersOf({ pinnedBy = [] }: BlockRow): string {
  const owners = [...new Set(pinnedBy.map(({ owner, state, address }) => owner || `(${state} ${address})`))];
  return listSome(owners, MAX_SHOWN_OWNERS);
}
