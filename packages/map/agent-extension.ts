/** The address map beside the embedded agent. */
import type { AgentExtension } from "../../host/extension.ts";
import { addMapOptions, type MapFlags, mapSettingsOf } from "./options.ts";

export default {
  addAgentOptions: addMapOptions,
  agentServer: async (flags: MapFlags & { readonly config?: string }, refuse) => {
    const isEmbedded = flags.config !== undefined;
    const settings = mapSettingsOf(flags, !isEmbedded, refuse);
    if (settings === undefined) return undefined;
    if (!isEmbedded) refuse("--map-listen: in a cluster the controller serves the address map");
    return { name: "map", listen: async (parts) => (await import("./server/serve.ts")).serveAgent(settings, parts) };
  },
} satisfies AgentExtension;
