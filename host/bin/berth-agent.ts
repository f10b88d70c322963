/** The executable `berth-agent`. */
import { AGENT_SETTINGS, become, requireNode } from "./run-main.ts";

requireNode("berth-agent");
await become("berth-agent-main.mjs", AGENT_SETTINGS);
