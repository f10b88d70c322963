/** The executable `berth-controller`. */
import { become, CONTROLLER_SETTINGS, requireNode } from "./run-main.ts";

requireNode("berth-controller");
await become("berth-controller-main.mjs", CONTROLLER_SETTINGS);
