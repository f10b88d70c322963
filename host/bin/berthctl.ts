#!/usr/bin/env node
/** The executable `berthctl`: berthctl-main.ts, on a Node.js that can load it. */
import { requireNode } from "./require-node.ts";

requireNode("berthctl");
await import("./berthctl-main.ts");
