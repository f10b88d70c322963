/** The agents' part in `berthctl blocks`. */
import type { AgentExtension } from "../../host/extension.ts";
import { openProbe } from "./probe/answer-probe.ts";

export default {
  openRoutes: openProbe,
} satisfies AgentExtension;
