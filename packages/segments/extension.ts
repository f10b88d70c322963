/** Several clusters on one segment: blocks of a hub or of an IPAM of record, the records there, and export. */
import type { Extension } from "../../host/extension.ts";
import type { SegmentFlags } from "./options.ts";

export default {
  readChartValues: async () => (await import("./chart-values.ts")).CHART_VALUES,
  readKinds: async () => (await import("./kinds.ts")).KINDS,
  readProblems: async () => [
    ...(await import("./cli/find-hub.ts")).BLOCK_PROBLEMS,
    (await import("./cli/find-records.ts")).RECORD_PROBLEM,
  ],
  addCommands: async (cli) => (await import("./cli/add-commands.ts")).addCommands(cli),
  addControllerOptions: async (program) => (await import("./options.ts")).addSegmentOptions(program),
  openControllers: async (flags: SegmentFlags, refuse) =>
    (await import("./open-controllers.ts")).openControllers(flags, refuse),
  addMetrics: async (set, measured) => (await import("./segment-metrics.ts")).addSegmentMetrics(set, measured),
} satisfies Extension;
