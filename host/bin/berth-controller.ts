/**
 * The executable `berth-controller`: the same process again without Node.js's inspector on SIGUSR1.
 * Effects: replaces itself by berth-controller-main.mjs; exits with 1 on a Node.js that is too old for it.
 */
import { become, NO_INSPECTOR, requireNode } from "./run-main.ts";

requireNode("berth-controller");
become("berth-controller-main.mjs", [NO_INSPECTOR], {});
