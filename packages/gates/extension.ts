/** Pods that are not scheduled before the pools that they select have room. */
import type { Extension } from "../../host/extension.ts";

export default {
  readChartValues: async () => (await import("./chart-values.ts")).CHART_VALUES,
  openControllers: async () => ({ controllers: { gates: (await import("./gates-controller.ts")).startGates } }),
} satisfies Extension;
