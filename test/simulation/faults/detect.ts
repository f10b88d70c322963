/**
 * `npm run simulate:faults`: switches each fault on and says by which seed and after how many steps the simulation
 * notices it. Fails if it does not within the limit, or by another violation, or if the product without the fault
 * violates an invariant with the same seed. `--only TEXT`, once or more: faults whose name has such a text.
 */
import { constants, setPriority } from "node:os";
import { parseArgs } from "node:util";
import type { Answer } from "./detect-one.ts";
import { FAULTS, type Fault } from "./faults.ts";
import { askSimulation, findFaultBySimulation } from "./find-fault.ts";

/** Returns the failure; undefined if the simulation notices the fault, and finds nothing without it. */
function findFailure({ profile, violation, limit }: Fault, found: Answer): string | undefined {
  if (found.violation === undefined || found.steps > limit) return `not noticed within ${limit} steps`;
  if (!found.violation.includes(violation)) return `noticed by another violation than "${violation}"`;
  const control = askSimulation({ fault: undefined, profile, firstSeed: found.seed, limit: 1 });
  return control.violation === undefined ? undefined : `violated without the fault, too: ${control.violation}`;
}

const { values } = parseArgs({ options: { only: { type: "string", multiple: true, default: [""] } } });
setPriority(constants.priority.PRIORITY_LOW);
const wanted = Object.entries(FAULTS).filter(([name]) => values.only.some((text) => name.includes(text)));
if (wanted.length === 0) throw new Error("No fault has such a name");
for (const [name, fault] of wanted) {
  const found = findFaultBySimulation(name, fault);
  const { seed, steps, violation = "no violation" } = found;
  console.log(`${name}: ${fault.profile}, seed ${seed}, ${steps} steps: ${violation}`);
  const failure = findFailure(fault, found);
  if (failure === undefined) continue;
  console.error(`${name}: ${failure}`);
  process.exitCode = 1;
}
