/** The agents' part of `berthctl adopt`. */
import type { AgentExtension } from "../../host/extension.ts";
import { openAdoption } from "./adoption/adopt.ts";

export default {
  openRoutes: openAdoption,
} satisfies AgentExtension;
