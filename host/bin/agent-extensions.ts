/**
 * The packages that add to the agent. A list of its own: what its modules share with those of other programs would be
 * cut into many parts, each of which takes memory to load.
 */
import type { AgentExtension } from "../extension.ts";
import { fail, readAll } from "./read-packages.ts";

export const readAgentExtensions = (): Promise<readonly AgentExtension[]> =>
  readAll<AgentExtension>({
    map: () => import("../../packages/map/agent-extension.ts" as string).catch(fail),
    netavark: () => import("../../packages/netavark/agent-extension.ts" as string).catch(fail),
    segments: () => import("../../packages/segments/agent-extension.ts" as string).catch(fail),
  });
