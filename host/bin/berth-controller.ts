/**
 * The executable `berth-controller`: the same process again without Node.js's inspector on SIGUSR1.
 */
import { become, DISABLE_SIGUSR1, requireNode } from "./run-main.ts";

requireNode("berth-controller");
become("berth-controller-main.mjs", [DISABLE_SIGUSR1], {});
