/**
 * The packages that extend the agent. They have their own list: modules shared with other programs would be split into
 * many chunks, and each chunk takes memory to load.
 */
import type { AgentExtension } from "../extension.ts";
import { fail, readAll } from "./read-packages.ts";

export const readAgentExtensions = (): Promise<readonly AgentExtension[]> =>
  readAll<AgentExtension>({
    convert: () => import("../../packages/convert/agent-extension.ts" as string).catch(fail),
    map: () => import("../../packages/map/agent-extension.ts" as string).catch(fail),
    netavark: () => import("../../packages/netavark/agent-extension.ts" as string).catch(fail),
    segments: () => import("../../packages/segments/agent-extension.ts" as string).catch(fail),
  });
