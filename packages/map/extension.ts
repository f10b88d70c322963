/** The address map: a page that shows who has which address, served beside the embedded agent or the controller. */
import type { ControllerParts, Extension } from "../../host/extension.ts";
import {
  type AgentsFlags,
  addAgentsOptions,
  addMapOptions,
  agentAccessOf,
  type MapFlags,
  mapSettingsOf,
} from "./options.ts";

const NAME = "map";

export default {
  addAgentOptions: addMapOptions,
  addControllerOptions: (program) => {
    addMapOptions(program);
    addAgentsOptions(program);
  },
  agentServer: (flags, refuse) => {
    const isEmbedded = flags.config !== undefined;
    const settings = mapSettingsOf(flags as unknown as MapFlags, !isEmbedded, refuse);
    if (settings === undefined) return undefined;
    if (!isEmbedded) refuse("--map-listen: in a cluster the controller serves the address map");
    return { name: NAME, listen: async (parts) => (await import("./server/serve.ts")).serveAgent(settings, parts) };
  },
  controllerServer: (flags, refuse) => {
    const settings = mapSettingsOf(flags as unknown as MapFlags, true, refuse);
    const access = agentAccessOf(flags as unknown as AgentsFlags, refuse);
    if (settings === undefined) return undefined;
    const listen = async (parts: ControllerParts) =>
      (await import("./server/serve.ts")).serveController(settings, access, parts);
    return { name: NAME, listen };
  },
} satisfies Extension;
