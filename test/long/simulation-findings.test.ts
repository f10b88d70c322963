/** Findings of the simulation with many steps or machines; the gate repeats the others. */
import { repeatFindings } from "../simulation/findings.ts";

repeatFindings("large");
