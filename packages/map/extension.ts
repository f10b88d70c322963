/** The address map: a page of all addresses and their owners, served beside the embedded agent or the controller. */
import type { ControllerParts, Extension } from "../../host/extension.ts";
import type { AgentsFlags, MapFlags } from "./options.ts";

const NAME = "map";
const readOptions = () => import("./options.ts");

export default {
  readChartValues: async () => (await import("./chart-values.ts")).CHART_VALUES,
  addControllerOptions: async (program) => {
    const { addMapOptions, addAgentsOptions } = await readOptions();
    addMapOptions(program);
    addAgentsOptions(program);
  },
  controllerServer: async (flags: MapFlags & AgentsFlags, refuse) => {
    const { mapSettingsOf, agentAccessOf } = await readOptions();
    const [settings, access] = [mapSettingsOf(flags, true, refuse), agentAccessOf(flags, refuse)];
    if (settings === undefined) return undefined;
    const listen = async (parts: ControllerParts) =>
      (await import("./server/serve.ts")).serveController(settings, access, parts);
    return { name: NAME, listen };
  },
} satisfies Extension;
