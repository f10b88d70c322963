/** The address map: a page that shows who has which address, served beside the embedded agent or the controller. */
import type { ControllerParts, Extension } from "../../host/extension.ts";
import type { AgentsFlags, MapFlags } from "./options.ts";

const NAME = "map";
const readOptions = () => import("./options.ts");

export default {
  readChartValues: async () => (await import("./chart-values.ts")).CHART_VALUES,
  addAgentOptions: async (program) => (await readOptions()).addMapOptions(program),
  addControllerOptions: async (program) => {
    const { addMapOptions, addAgentsOptions } = await readOptions();
    addMapOptions(program);
    addAgentsOptions(program);
  },
  agentServer: async (flags: MapFlags & { readonly config?: string }, refuse) => {
    const isEmbedded = flags.config !== undefined;
    const settings = (await readOptions()).mapSettingsOf(flags, !isEmbedded, refuse);
    if (settings === undefined) return undefined;
    if (!isEmbedded) refuse("--map-listen: in a cluster the controller serves the address map");
    return { name: NAME, listen: async (parts) => (await import("./server/serve.ts")).serveAgent(settings, parts) };
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
