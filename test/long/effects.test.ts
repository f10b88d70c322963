/** Faults at every effect of ADD and DEL, by number; the gate takes every fifth. */
import { describeEffects } from "../e2e/fault-effects.ts";

describeEffects(1);
