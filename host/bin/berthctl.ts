/**
 * The executable `berthctl`: berthctl-main.ts, on a Node.js that can load it.
 */
import { requireNode } from "./run-main.ts";

requireNode("berthctl");
await import("./berthctl-main.ts");
