/**
 * Preloaded by Node.js before a program of the product that runs from its source: switches on the fault of
 * simulation/faults/faults.ts that the module's own URL names.
 *
 *   node --import file:///…/test/lab/switch-fault.ts?fault=a%20DEL%20is%20ignored host/bin/berth-agent.ts
 *
 * Worker threads preload it, too.
 */
import { FAULTS } from "../simulation/faults/faults.ts";
import { replaceExports } from "../simulation/faults/replace-exports.ts";

const name = new URL(import.meta.url).searchParams.get("fault") ?? "";
const fault = FAULTS[name];
if (fault === undefined) throw new Error(`There is no fault "${name}"`);
replaceExports([fault.replaced]);
