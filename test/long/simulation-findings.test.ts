/** Findings of the simulation with eight machines and forty pods; the gate repeats the others. */
import { repeatFindings } from "../simulation/findings.ts";

repeatFindings("large");
