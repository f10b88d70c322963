/**
 * The executable `berthctl`: berthctl-main.ts, on a Node.js that can load it.
 * Effects: those of berthctl-main.ts; exits with 1 on a Node.js that is too old for it.
 */
import { requireNode } from "./run-main.ts";

requireNode("berthctl");
await import("./berthctl-main.ts");
