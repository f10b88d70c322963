/** The commands of this package, and its searches in `check` of a cluster. */
import { Option } from "commander";
import type { CommandLine } from "../../../host/cli/command-line.ts";
import { addBlocks } from "./blocks-command.ts";
import { addExport } from "./export-command.ts";

export function addCommands(cli: CommandLine): void {
  addExport(cli);
  addBlocks(cli);
  cli.addClusterCheck({
    option: new Option("--hub-kubeconfig <file>", "of a cluster: ask the hub of its blocks, too, with this kubeconfig"),
    find: async (api, facts, file) => {
      const [{ findHub }, { findRecords }] = await Promise.all([import("./find-hub.ts"), import("./find-records.ts")]);
      const opened = file === undefined ? undefined : await cli.openCluster(file);
      try {
        const hub = file === undefined || opened === undefined ? undefined : { api: opened.api, file };
        return [...(await findHub({ ...facts, hub })), ...(await findRecords(api, Date.now()))];
      } finally {
        await opened?.close();
      }
    },
  });
}
